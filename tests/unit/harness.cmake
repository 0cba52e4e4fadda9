# The harness by module.
foreach(name fuzz stats stat_survival stat_cover stat_alarm study outcome plan campaign spawn store report gate replay
             compare external catalogue)
    fl_unit_test(har_${name}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/har_${name}_test.c LIBS har)
endforeach()
# The trace writer for stacks of a user.
add_test(NAME faultline_trace_test COMMAND /usr/bin/python3 -B ${CMAKE_CURRENT_LIST_DIR}/faultline_trace_test.py)
set_tests_properties(faultline_trace_test PROPERTIES LABELS ci TIMEOUT 60)
fl_unit_test(har_artifact_test
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/har_artifact_test.c ${CMAKE_CURRENT_LIST_DIR}/orc_check_synth.c
    LIBS har PkgConfig::ORC_TEST_LIBS m)
