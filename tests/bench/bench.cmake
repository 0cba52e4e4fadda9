# Benchmarks: programs that tests/bench/run.sh measures with. Never tests.
if(TARGET eng_production)
    add_executable(gemm_bench ${CMAKE_CURRENT_LIST_DIR}/gemm_bench.c)
    target_compile_options(gemm_bench PRIVATE -Wno-conversion)
    target_link_libraries(gemm_bench PRIVATE eng_production Threads::Threads ${CMAKE_DL_LIBS} m)
endif()
add_executable(peak_bench ${CMAKE_CURRENT_LIST_DIR}/peak_bench.c)
target_compile_options(peak_bench PRIVATE -ffp-contract=fast -mprefer-vector-width=512)
target_link_libraries(peak_bench PRIVATE Threads::Threads)
