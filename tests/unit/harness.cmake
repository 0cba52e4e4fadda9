# The harness by module.
foreach(name stats outcome plan campaign spawn store report)
    fl_unit_test(har_${name}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/har_${name}_test.c LIBS har)
endforeach()
