fl_unit_test(eng_model_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/eng_model_test.c LIBS eng_mutable)
