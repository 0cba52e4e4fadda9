# Text and data of the engine: layouts, tokenizer, JSON, order, rows, loader, their faults.
foreach(kind production mutable)
    add_library(eng_text_fixture_${kind} STATIC ${CMAKE_CURRENT_LIST_DIR}/eng_text_fixture.c)
    target_link_libraries(eng_text_fixture_${kind} PUBLIC eng_${kind})
    target_compile_definitions(eng_text_fixture_${kind} PUBLIC FL_TOP="${PROJECT_SOURCE_DIR}")
endforeach()

foreach(name eng_text_utf8 eng_text_layout eng_text_jinja eng_jinja eng_template eng_text_bpe eng_text_normal eng_text_tokenizer
        eng_text_ranks
        eng_data_json eng_data_files eng_data_order eng_data_rows eng_data_loader)
    fl_unit_test(${name}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/${name}_test.c
        LIBS eng_text_fixture_production)
endforeach()
fl_unit_test(eng_text_split_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/eng_text_split_test.c
    LIBS eng_text_fixture_production split_twin)
fl_unit_test(eng_data_faults_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/eng_data_faults_test.c
    LIBS eng_text_fixture_mutable)

# The Jinja engine against Jinja2: gallery and snippets x conversations x generation prompt.
add_executable(jinja_peer ${CMAKE_CURRENT_LIST_DIR}/jinja_peer.c)
target_link_libraries(jinja_peer PRIVATE eng_production)
add_test(NAME jinja_gallery_test
    COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/jinja_gallery.py $<TARGET_FILE:jinja_peer>
        ${PROJECT_SOURCE_DIR}/corpus)
set_tests_properties(jinja_gallery_test PROPERTIES LABELS ci TIMEOUT 120)
