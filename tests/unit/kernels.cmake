# Row programs and the matrix product.
add_library(k_cases STATIC ${CMAKE_CURRENT_LIST_DIR}/k_cases.c)
target_include_directories(k_cases PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(k_cases PUBLIC k_mutable)

fl_unit_test(k_twin_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/k_twin_test.c
    $<TARGET_OBJECTS:k_programs_emulated> $<TARGET_OBJECTS:k_programs_emulated_twin>
    LIBS k_cases k_emulator k_mutable)
target_compile_definitions(k_twin_test PRIVATE K_EMULATED=$<BOOL:${FL_EMULATE_LANES}>)
fl_unit_test(row_emulator_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/row_emulator_test.c LIBS k_emulator)
fl_unit_test(k_math_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/k_math_test.c LIBS k_mutable)
foreach(name gemm forward gradient optimizer sketch)
    fl_unit_test(k_${name}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/k_${name}_test.c LIBS k_production)
endforeach()

# Production holds no trace of the catalogue.
add_test(NAME k_production_has_no_fault_symbol
    COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/k_no_fault_symbols.sh $<TARGET_FILE:k_production>)
set_tests_properties(k_production_has_no_fault_symbol PROPERTIES LABELS "ci;unit")
