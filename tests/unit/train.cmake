# The trainer: recipes, schedule, trace text, and whole runs of a small recipe.
fl_unit_test(eng_train_text_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/eng_train_text_test.c LIBS eng_mutable)
fl_unit_test(eng_train_schedule_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/eng_train_schedule_test.c LIBS eng_mutable)
fl_unit_test(eng_train_recipe_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/eng_train_recipe_test.c LIBS eng_mutable)
