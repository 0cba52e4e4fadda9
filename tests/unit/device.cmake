# The device runtime: heap, allocator, schedules, race checker, operations, faults.
# dev_toy.c brings its own kernel table, so these tests need no kernel of the trainer.
foreach(dev_test dev_heap_test dev_alloc_test dev_sched_test dev_ops_test dev_fault_test dev_guard_test)
    fl_unit_test(${dev_test} SOURCES ${CMAKE_CURRENT_LIST_DIR}/${dev_test}.c
                 ${CMAKE_CURRENT_LIST_DIR}/dev_toy.c LIBS eng_mutable)
endforeach()
