# The CUDA back end without a device: a stand-in library, the comparison of kernels, the check's own logic.
if(NOT FL_SANITIZE STREQUAL "" OR FL_FUZZ)
    return()
endif()
add_library(gpu_stand_in SHARED ${CMAKE_CURRENT_LIST_DIR}/gpu_stand_in.c)
target_include_directories(gpu_stand_in PRIVATE ${PROJECT_SOURCE_DIR}/engine/device)
target_link_libraries(gpu_stand_in PRIVATE k_shared Threads::Threads)
add_executable(gpu_kernels ${CMAKE_CURRENT_LIST_DIR}/gpu_kernels.c
    ${PROJECT_SOURCE_DIR}/engine/device/dev_cuda_load.c)
target_include_directories(gpu_kernels PRIVATE ${PROJECT_SOURCE_DIR}/engine/device)
target_link_libraries(gpu_kernels PRIVATE k_cases k_mutable mut_state mut_registry ${CMAKE_DL_LIBS} m)

add_test(NAME gpu_back_end COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/back_end.sh ${PROJECT_BINARY_DIR}
         ${PROJECT_SOURCE_DIR}/corpus/recipes)
add_test(NAME gpu_check_dry COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/check.sh --dry --build ${PROJECT_BINARY_DIR}
         --report ${PROJECT_BINARY_DIR}/gpu_dry.md)
set_tests_properties(gpu_back_end gpu_check_dry PROPERTIES LABELS ci TIMEOUT 300 SKIP_RETURN_CODE 77)
