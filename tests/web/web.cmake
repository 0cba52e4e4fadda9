# Reports in a browser and against published schemas; needs npm and Chromium.
add_test(NAME report_web COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/web.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}
         ${CMAKE_CURRENT_BINARY_DIR}/web)
set_tests_properties(report_web PROPERTIES LABELS full TIMEOUT 1200)
