# The statistics against R's survival package, glm and scipy, and coverage of their intervals.
add_executable(har_stat_peer ${CMAKE_CURRENT_LIST_DIR}/har_stat_peer.c)
target_link_libraries(har_stat_peer PRIVATE har)
add_test(NAME har_stat_peers
    COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/peer.py $<TARGET_FILE:har_stat_peer>
            ${CMAKE_CURRENT_LIST_DIR}/peer.R)
set_tests_properties(har_stat_peers PROPERTIES LABELS full TIMEOUT 600)
add_executable(har_stat_coverage ${CMAKE_CURRENT_LIST_DIR}/har_stat_coverage.c)
target_link_libraries(har_stat_coverage PRIVATE har)
add_test(NAME har_stat_coverage COMMAND har_stat_coverage)
set_tests_properties(har_stat_coverage PROPERTIES LABELS full TIMEOUT 300)
