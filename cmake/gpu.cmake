# The GPU kernels, on demand (-D MUSTER_GPU=ON, preset gpu): the only part that needs nvcc. The program itself needs neither driver
# nor CUDA to start: the runtime is linked statically, cuBLASLt and NCCL are looked for when a kernel wants them.
#
# nvcc is called as it is: CMake's own CUDA language of Debian 12 does not know toolkits newer than itself.
if(NOT MUSTER_GPU)
  return()
endif()
find_program(MUSTER_NVCC nvcc HINTS /usr/local/cuda/bin)
if(NOT MUSTER_NVCC)
  message(FATAL_ERROR "MUSTER_GPU=ON, and there is no nvcc in PATH or /usr/local/cuda/bin")
endif()
get_filename_component(real_nvcc ${MUSTER_NVCC} REALPATH)
get_filename_component(cuda_root ${real_nvcc}/../.. ABSOLUTE)
find_path(MUSTER_CUDA_INCLUDE cublasLt.h HINTS ${cuda_root}/include REQUIRED)
find_path(MUSTER_NCCL_INCLUDE nccl.h HINTS ${cuda_root}/include REQUIRED)
find_library(MUSTER_CUDART cudart_static HINTS ${cuda_root}/lib64 ${cuda_root}/lib REQUIRED)
# Used by the program to find its library (kernels/gpu/cublaslt.cc), and in the package's name to separate toolkits.
file(STRINGS ${MUSTER_CUDA_INCLUDE}/cublas_api.h cublas_major REGEX "^#define +CUBLAS_VER_MAJOR +[0-9]+")
string(REGEX MATCH "[0-9]+$" cuda_major "${cublas_major}")
if(NOT cuda_major)
  message(FATAL_ERROR "${MUSTER_CUDA_INCLUDE}/cublas_api.h does not say which CUBLAS_VER_MAJOR it is")
endif()

# Of the GPUs we mean, those this tool chain knows: A100, L4 and L40S, Hopper with wgmma, Blackwell. Others are served by the last
# one's portable code, which the driver translates when the program starts.
execute_process(COMMAND ${MUSTER_NVCC} --list-gpu-arch OUTPUT_VARIABLE known COMMAND_ERROR_IS_FATAL ANY)
set(codes "")
foreach(wanted 80 89 90 100)
  if(known MATCHES "compute_${wanted}[^0-9]")
    string(REPLACE "90" "90a" real ${wanted})
    list(APPEND codes -gencode arch=compute_${real},code=sm_${real})
    set(newest ${wanted})
  endif()
endforeach()
if(NOT codes)
  message(FATAL_ERROR "${MUSTER_NVCC} knows none of the GPUs that are meant")
endif()
list(APPEND codes -gencode arch=compute_${newest},code=compute_${newest})

file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/gpu/*.cu)
file(GLOB gpu_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/gpu/*.cc)
list(APPEND gpu_sources ${CMAKE_SOURCE_DIR}/kernels/training/block.cc)
set(cuda_objects "")
foreach(source ${cuda_sources})
  get_filename_component(name ${source} NAME)
  set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/cuda
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${MUSTER_NVCC} -std=c++20 -O3 ${codes} -Werror all-warnings -Xcompiler=-Wall
            -I${CMAKE_SOURCE_DIR} -MD -MT ${object} -MF ${object}.d -c ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d
    COMMENT "Compiling ${name} for GPUs" VERBATIM)
  list(APPEND cuda_objects ${object})
endforeach()
add_custom_target(muster_cuda DEPENDS ${cuda_objects})

add_executable(muster-accept-gpu ${gpu_sources} ${cuda_objects})
set_target_properties(muster-accept-gpu PROPERTIES UNITY_BUILD OFF)  # kernels name their parts alike
add_dependencies(muster-accept-gpu muster_cuda)
target_include_directories(muster-accept-gpu SYSTEM PRIVATE ${MUSTER_CUDA_INCLUDE} ${MUSTER_NCCL_INCLUDE})
target_link_libraries(muster-accept-gpu PRIVATE muster_kernels_gpu_logic ${MUSTER_CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)
# Loads libraries at run time, so it cannot be static as muster-accept is.
carried_program(muster-accept-gpu)

# The same host code over a made-up GPU (tests/fakes/gpu), and tests that run it: kernels themselves are not tested by it.
option(MUSTER_FAKE_GPU "build the tests of kernels/gpu over a made-up GPU" ON)
if(MUSTER_FAKE_GPU)
  add_executable(muster-accept-gpu-fake EXCLUDE_FROM_ALL ${gpu_sources} tests/fakes/gpu/runtime.cc tests/fakes/gpu/launchers.cc)
  set_target_properties(muster-accept-gpu-fake PROPERTIES UNITY_BUILD OFF)
  target_include_directories(muster-accept-gpu-fake SYSTEM PRIVATE ${MUSTER_CUDA_INCLUDE} ${MUSTER_NCCL_INCLUDE})
  target_link_libraries(muster-accept-gpu-fake PRIVATE muster_kernels_gpu_logic Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(muster-accept-gpu-fake PRIVATE -rdynamic)  # the made-up cuBLASLt asks its runtime which GPU it is on
  file(STRINGS ${MUSTER_CUDA_INCLUDE}/cublas_api.h lt_major REGEX "#define CUBLAS_VER_MAJOR")
  string(REGEX REPLACE ".*CUBLAS_VER_MAJOR +([0-9]+).*" "\\1" lt_major "${lt_major}")
  add_library(fake_nccl SHARED EXCLUDE_FROM_ALL tests/fakes/gpu/nccl.cc)
  add_library(fake_cublaslt SHARED EXCLUDE_FROM_ALL tests/fakes/gpu/cublaslt.cc)
  set_target_properties(fake_nccl PROPERTIES OUTPUT_NAME nccl SUFFIX ".so.2")
  set_target_properties(fake_cublaslt PROPERTIES OUTPUT_NAME cublasLt SUFFIX ".so.${lt_major}")
  foreach(library fake_nccl fake_cublaslt)
    target_include_directories(${library} PRIVATE ${CMAKE_SOURCE_DIR})
    target_include_directories(${library} SYSTEM PRIVATE ${MUSTER_CUDA_INCLUDE} ${MUSTER_NCCL_INCLUDE})
    target_link_libraries(${library} PRIVATE Threads::Threads)
    set_target_properties(${library} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake-gpu)
  endforeach()
  add_executable(muster_gpu_tests EXCLUDE_FROM_ALL tests/gpu/gpu_test.cc tests/unit/main_test.cc)
  set_target_properties(muster_gpu_tests PROPERTIES UNITY_BUILD OFF)  # one of them defines Catch2's main()
  target_link_libraries(muster_gpu_tests PRIVATE muster_kernels_gpu_logic)
  target_compile_definitions(muster_gpu_tests PRIVATE MUSTER_FAKE_GPU_DIR="${CMAKE_BINARY_DIR}")
  add_dependencies(muster_gpu_tests muster-accept-gpu-fake fake_nccl fake_cublaslt muster-mpi-check)
  carried_programs_test(muster_gpu_tests muster-accept-gpu)
endif()
