# Tokens of the trainer against the definition and against peers from npm.
add_executable(encode_ids ${CMAKE_CURRENT_LIST_DIR}/encode_ids.c)
target_link_libraries(encode_ids PRIVATE eng_production)
