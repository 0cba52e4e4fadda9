# The corpus: initial weights, data files, templates, tokenizer, recipes.
fl_unit_test(corpus_init_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/corpus_init_test.c LIBS cor_init)

add_test(NAME corpus_test
    COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/corpus_test.py ${PROJECT_SOURCE_DIR}/corpus
        $<TARGET_FILE:faultline-init>)
set_tests_properties(corpus_test PROPERTIES LABELS ci TIMEOUT 300)
