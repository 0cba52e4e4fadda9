# The oracle's own faults, killed by stored traces.
pkg_check_modules(ORC_FAULT_LIBS REQUIRED IMPORTED_TARGET libzstd)
fl_unit_test(calibration_test
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/calibration_test.c
            ${CMAKE_CURRENT_LIST_DIR}/../unit/orc_check_synth.c
    LIBS orc_checks PkgConfig::ORC_FAULT_LIBS m)
target_include_directories(calibration_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../unit)
