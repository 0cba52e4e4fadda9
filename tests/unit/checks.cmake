# The comparator's own tests. They compress traces themselves.
pkg_check_modules(ORC_TEST_LIBS REQUIRED IMPORTED_TARGET libzstd)
foreach(part trace judge lockstep calibration diff)
    fl_unit_test(orc_check_${part}_test
        SOURCES ${CMAKE_CURRENT_LIST_DIR}/orc_check_${part}_test.c
                ${CMAKE_CURRENT_LIST_DIR}/orc_check_synth.c
        LIBS orc_checks PkgConfig::ORC_TEST_LIBS m)
endforeach()
# The definitions behind the bounds, by hand: sees internal headers.
fl_unit_test(orc_check_drift_test
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/orc_check_drift_test.c
    LIBS orc_checks m)
fl_unit_test(orc_check_bounds_test
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/orc_check_bounds_test.c
    LIBS orc_checks)
target_compile_definitions(orc_check_bounds_test PRIVATE SEEDS="${PROJECT_SOURCE_DIR}/corpus/seeds/bounds")
