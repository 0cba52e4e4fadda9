# Bad input for every program: exit codes, messages, and that earlier results stay.
add_test(NAME bad_input COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/bad_input.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
# Findings of a sanitizer are likely here, but it takes minutes there: tier full.
set(FL_BAD_INPUT_LABELS ci)
if(NOT FL_SANITIZE STREQUAL "")
    set(FL_BAD_INPUT_LABELS slow_sanitize)
endif()
set_tests_properties(bad_input PROPERTIES LABELS "${FL_BAD_INPUT_LABELS}" TIMEOUT 900)
# What both stacks read from the same files is the same.
add_test(NAME text_equality COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/text_equality.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(text_equality PROPERTIES LABELS "${FL_BAD_INPUT_LABELS}" TIMEOUT 600)
