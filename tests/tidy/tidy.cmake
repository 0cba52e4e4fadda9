# Rules of the tree and of the linked programs.
add_test(NAME tidy COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/tidy.sh ${PROJECT_SOURCE_DIR})
add_test(NAME symbols COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/symbols.sh ${PROJECT_BINARY_DIR})
set_tests_properties(tidy symbols PROPERTIES LABELS ci)
