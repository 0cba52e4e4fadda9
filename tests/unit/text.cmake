# Text and data of the engine: layouts, tokenizer, JSON, order, rows, loader.
add_library(eng_text_fixture STATIC ${CMAKE_CURRENT_LIST_DIR}/eng_text_fixture.c)
target_link_libraries(eng_text_fixture PUBLIC eng_production)
target_compile_definitions(eng_text_fixture PUBLIC FL_TOP="${PROJECT_SOURCE_DIR}")
target_compile_options(eng_text_fixture PRIVATE -Wno-conversion)

foreach(name eng_text_utf8 eng_text_layout eng_text_jinja eng_text_bpe eng_text_tokenizer eng_data_json
        eng_data_order eng_data_rows)
    fl_unit_test(${name}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/${name}_test.c LIBS eng_text_fixture)
endforeach()
