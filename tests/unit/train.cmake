# The trainer: recipes, schedule, trace text, and whole runs of a small recipe.
fl_unit_test(eng_train_text_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/eng_train_text_test.c LIBS eng_mutable)
fl_unit_test(eng_train_schedule_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/eng_train_schedule_test.c LIBS eng_mutable)
fl_unit_test(eng_train_recipe_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/eng_train_recipe_test.c LIBS eng_mutable)
fl_unit_test(eng_memory_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/eng_memory_test.c LIBS eng_mutable)
foreach(test eng_train_run_test eng_train_exit_test eng_train_fault_test)
    fl_unit_test(${test} SOURCES ${CMAKE_CURRENT_LIST_DIR}/${test}.c
        ${CMAKE_CURRENT_LIST_DIR}/eng_train_bench.c LIBS PkgConfig::ENG_LIBS mut_registry)
    target_compile_definitions(${test} PRIVATE
        TRAIN_PROGRAM="$<TARGET_FILE:faultline-train>"
        TRAIN_PRODUCTION="$<TARGET_FILE:faultline-train-production>"
        INIT_PROGRAM="$<TARGET_FILE:faultline-init>"
        CORPUS_DIR="${PROJECT_SOURCE_DIR}/corpus")
    add_dependencies(${test} faultline-train faultline-train-production faultline-init)
endforeach()
