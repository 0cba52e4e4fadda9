# Fuzz targets: replay of their seeds as tests with any compiler; with FL_FUZZ also as fuzzers.
# fl_fuzz_target(NAME target LIBS ...): fuzz_NAME.c, seeds in corpus/seeds/NAME.
set(FL_FUZZ_DIR ${CMAKE_CURRENT_LIST_DIR})
add_library(fuzz_support STATIC ${FL_FUZZ_DIR}/fuzz_support.c ${FL_FUZZ_DIR}/fuzz_vocab.c)
target_include_directories(fuzz_support PUBLIC ${FL_FUZZ_DIR})

function(fl_fuzz_target name)
    cmake_parse_arguments(T "" "" "LIBS" ${ARGN})
    set(source ${FL_FUZZ_DIR}/fuzz_${name}.c)
    add_executable(fuzz_replay_${name} ${FL_FUZZ_DIR}/replay_main.c ${source})
    target_link_libraries(fuzz_replay_${name} PRIVATE fuzz_support ${T_LIBS})
    add_test(NAME fuzz_replay_${name}
             COMMAND fuzz_replay_${name} ${PROJECT_SOURCE_DIR}/corpus/seeds/${name})
    set_tests_properties(fuzz_replay_${name} PROPERTIES LABELS "ci;unit" TIMEOUT 120)
    if(FL_FUZZ)
        add_executable(fuzz_${name} ${source})
        target_link_libraries(fuzz_${name} PRIVATE fuzz_support ${T_LIBS} -fsanitize=fuzzer)
    endif()
endfunction()

fl_fuzz_target(dataset LIBS eng_production)
fl_fuzz_target(json LIBS eng_production)
fl_fuzz_target(bpe LIBS eng_production)
fl_fuzz_target(encode LIBS eng_production)
fl_fuzz_target(tokenizer LIBS eng_production)
fl_fuzz_target(layout LIBS eng_production)
fl_fuzz_target(rows LIBS eng_production)
fl_fuzz_target(loader LIBS eng_production)
fl_fuzz_target(recipe LIBS eng_production orc_reference cor_init)
fl_fuzz_target(weights LIBS eng_production orc_reference)
fl_fuzz_target(trace LIBS orc_checks)
fl_fuzz_target(bounds LIBS orc_checks)
fl_fuzz_target(campaign LIBS har)

# Inputs that are JSON are mutated as JSON, by libFuzzer and by the replays; json.dict is for libFuzzer's -dict.
foreach(name dataset json)
    target_sources(fuzz_replay_${name} PRIVATE ${FL_FUZZ_DIR}/fuzz_mutate.c)
    if(FL_FUZZ)
        target_sources(fuzz_${name} PRIVATE ${FL_FUZZ_DIR}/fuzz_mutate.c)
    endif()
endforeach()

# A replay without seeds would prove nothing, so it fails.
add_test(NAME fuzz_replay_needs_seeds COMMAND fuzz_replay_trace ${FL_FUZZ_DIR}/none)
set_tests_properties(fuzz_replay_needs_seeds PROPERTIES LABELS "ci;unit" WILL_FAIL TRUE)
