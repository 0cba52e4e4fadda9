# Second stack: tape, model, rows, whole runs, text stage.
if(TARGET orc_reference)
    fl_unit_test(orc_ref_tape_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/orc_ref_tape_test.c LIBS orc_reference m)
    fl_unit_test(orc_ref_model_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/orc_ref_model_test.c LIBS orc_reference m)
    fl_unit_test(orc_ref_rows_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/orc_ref_rows_test.c LIBS orc_reference m)
    fl_unit_test(orc_ref_run_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/orc_ref_run_test.c LIBS orc_reference m)
    target_compile_definitions(orc_ref_run_test PRIVATE ORC_REF_PROGRAM="$<TARGET_FILE:faultline-ref>")
    add_dependencies(orc_ref_run_test faultline-ref)
    add_test(NAME orc_ref_text_test
        COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/orc_ref_text_test.py)
    set_tests_properties(orc_ref_text_test PROPERTIES LABELS "ci;unit" TIMEOUT 120)
endif()
