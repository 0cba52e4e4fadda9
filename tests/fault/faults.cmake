# Whole-catalogue facts about the trainer's fault sites.
set(FL_RECIPES ${PROJECT_SOURCE_DIR}/corpus/recipes)
add_test(NAME fault_twins COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/twins.sh ${PROJECT_BINARY_DIR} ${FL_RECIPES}/pico.yaml)
add_test(NAME fault_reach COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/reach.sh ${PROJECT_BINARY_DIR} ${FL_RECIPES})
add_test(NAME fault_race_levels COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/race_levels.sh ${PROJECT_BINARY_DIR}
         ${FL_RECIPES}/pico.yaml 20 input_copied_wait.omitted input_consumed_wait.omitted input_refill_wait.omitted
         update_adamw.zeroed_on_side)
add_test(NAME fault_race_table COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/race_table.sh ${PROJECT_BINARY_DIR} ${FL_RECIPES} 2)
add_test(NAME fault_race_table_full COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/race_table.sh ${PROJECT_BINARY_DIR} ${FL_RECIPES} 200)
set_tests_properties(fault_race_table PROPERTIES LABELS ci TIMEOUT 600)
set_tests_properties(fault_race_table_full PROPERTIES LABELS full TIMEOUT 7200)
add_test(NAME fault_wait_sweep COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/wait_sweep.sh ${PROJECT_BINARY_DIR} ${FL_RECIPES})
set_tests_properties(fault_wait_sweep PROPERTIES LABELS ci TIMEOUT 600)
set(FL_HEALTHY bash ${CMAKE_CURRENT_LIST_DIR}/healthy_runs.sh ${FL_RECIPES}/pico.yaml)
set(FL_COMPILERS ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/build/gcc)
add_test(NAME fault_healthy_runs COMMAND ${FL_HEALTHY} 50 ${FL_COMPILERS})
add_test(NAME fault_healthy_runs_full COMMAND ${FL_HEALTHY} 1000 ${FL_COMPILERS})
set_tests_properties(fault_healthy_runs PROPERTIES LABELS ci TIMEOUT 600)
set_tests_properties(fault_healthy_runs_full PROPERTIES LABELS full TIMEOUT 7200)
add_test(NAME fault_certify COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/certify.sh ${PROJECT_BINARY_DIR} ${FL_RECIPES})
set_tests_properties(fault_twins fault_reach fault_race_levels fault_certify PROPERTIES LABELS ci TIMEOUT 300)
# What check_run prints of a trace, for scripts here.
add_executable(check_run ${CMAKE_CURRENT_LIST_DIR}/check_run.c)
target_link_libraries(check_run PRIVATE orc_checks)
add_test(NAME fault_oom_sweep COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/oom_sweep.sh ${PROJECT_BINARY_DIR} ${FL_RECIPES} 5)
add_test(NAME fault_oom_sweep_full COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/oom_sweep.sh ${PROJECT_BINARY_DIR} ${FL_RECIPES} 100)
set_tests_properties(fault_oom_sweep PROPERTIES LABELS ci TIMEOUT 600)
set_tests_properties(fault_oom_sweep_full PROPERTIES LABELS full TIMEOUT 7200)
add_test(NAME fault_leaks COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/leaks.sh ${PROJECT_BINARY_DIR} ${FL_RECIPES}/pico.yaml 1000)
set_tests_properties(fault_leaks PROPERTIES LABELS ci TIMEOUT 600)
# Builds the trainer with ThreadSanitizer first.
add_test(NAME fault_fibers_full
         COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/fibers.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${FL_RECIPES})
set_tests_properties(fault_fibers_full PROPERTIES LABELS full TIMEOUT 3600)
# Production equals the source with the sites stripped from its text. The gcc build runs unit tests alone.
add_test(NAME fault_production_object_code
         COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/production.py ${PROJECT_BINARY_DIR})
set(FL_PRODUCTION_LABELS ci)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    list(APPEND FL_PRODUCTION_LABELS unit)
endif()
set_tests_properties(fault_production_object_code PROPERTIES LABELS "${FL_PRODUCTION_LABELS}" TIMEOUT 600)
