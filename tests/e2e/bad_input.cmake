# Bad input for every program: exit codes, messages, and that earlier results stay.
add_test(NAME bad_input COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/bad_input.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(bad_input PROPERTIES LABELS ci TIMEOUT 600)
