# Bad input for every program: exit codes, messages, and that earlier results stay.
add_test(NAME bad_input COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/bad_input.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
# The sanitizer build runs unit tests alone, and this is where its findings are likely.
set(FL_BAD_INPUT_LABELS ci)
if(NOT FL_SANITIZE STREQUAL "")
    list(APPEND FL_BAD_INPUT_LABELS unit)
endif()
set_tests_properties(bad_input PROPERTIES LABELS "${FL_BAD_INPUT_LABELS}" TIMEOUT 900)
