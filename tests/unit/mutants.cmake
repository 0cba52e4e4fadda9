fl_unit_test(mut_select_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/mut_select_test.c LIBS mut_state)

# A number used twice must not compile.
add_test(NAME mut_duplicate_number
         COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/mut_duplicate_number.sh ${CMAKE_C_COMPILER}
                 ${PROJECT_SOURCE_DIR}/mutants ${PROJECT_BINARY_DIR}/mutants/generated)
set_tests_properties(mut_duplicate_number PROPERTIES LABELS "ci;unit")
