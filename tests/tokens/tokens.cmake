# Tokens of the trainer against the definition and against peers from npm.
add_executable(encode_ids ${CMAKE_CURRENT_LIST_DIR}/encode_ids.c)
target_link_libraries(encode_ids PRIVATE eng_production)
add_test(NAME tokens_smoke COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/tokens.sh ${CMAKE_BINARY_DIR} smoke)
set_tests_properties(tokens_smoke PROPERTIES LABELS ci TIMEOUT 120)
add_test(NAME tokens_peers COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/tokens.sh ${CMAKE_BINARY_DIR} peers)
set_tests_properties(tokens_peers PROPERTIES LABELS full TIMEOUT 7200 SKIP_RETURN_CODE 77)
