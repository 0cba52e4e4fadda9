# The faultline program end to end, and the case study's headline.
add_test(NAME harness_e2e COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/harness.sh ${PROJECT_BINARY_DIR}
         ${PROJECT_SOURCE_DIR})
set_tests_properties(harness_e2e PROPERTIES LABELS ci TIMEOUT 600)
add_test(NAME harness_effect COMMAND $<TARGET_FILE:faultline> effect --recipe ${PROJECT_SOURCE_DIR}/corpus/recipes/nano-llama3.yaml --out ${CMAKE_CURRENT_BINARY_DIR}/effect)
set_tests_properties(harness_effect PROPERTIES LABELS full TIMEOUT 1800
                     PASS_REGULAR_EXPRESSION "template swap over the mean of [0-9]+ other faults")
add_test(NAME harness_doctor COMMAND $<TARGET_FILE:faultline> doctor)
set_tests_properties(harness_doctor PROPERTIES LABELS ci TIMEOUT 120)
