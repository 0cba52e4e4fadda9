# Row programs and the matrix product.
add_library(k_cases STATIC ${CMAKE_CURRENT_LIST_DIR}/k_cases.c)
target_include_directories(k_cases PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(k_cases PUBLIC k_mutable)

fl_unit_test(k_twin_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/k_twin_test.c
    $<TARGET_OBJECTS:k_programs_emulated> $<TARGET_OBJECTS:k_programs_emulated_twin>
    LIBS k_cases k_emulator k_mutable)
