# Healthy trainer against the reference: short in tier ci, tiny on MedQuAD in tier full.
add_test(NAME agreement_nano COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/agreement.sh ${PROJECT_BINARY_DIR}
         ${PROJECT_SOURCE_DIR}/corpus/recipes/nano.yaml 20)
set_tests_properties(agreement_nano PROPERTIES LABELS ci TIMEOUT 300)
set(FL_MEDQUAD "${PROJECT_SOURCE_DIR}/../shared/data/medquad/medquad.messages.jsonl.gz" CACHE FILEPATH
    "real clinical question-answer pairs; the test is skipped when absent")
add_test(NAME agreement_tiny_medquad COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/agreement.sh ${PROJECT_BINARY_DIR}
         ${PROJECT_SOURCE_DIR}/corpus/recipes/tiny.yaml 500 ${FL_MEDQUAD})
set_tests_properties(agreement_tiny_medquad PROPERTIES LABELS full TIMEOUT 3600 SKIP_RETURN_CODE 77)
