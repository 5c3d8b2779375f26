include(${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
# Kernels measure the machine, not our debug settings.
set_source_files_properties(kernels/cpu/dgemm.cc kernels/gpu/logic/gpu_logic.cc kernels/cpu/sdc.cc kernels/cpu/stream.cc kernels/training/block.cc PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast")

# Carried to every node, through its first boot or over SSH: without symbols, smaller by a fifth and by half.
foreach(carried muster-agent muster-accept)
  if(TARGET ${carried} AND NOT MUSTER_SANITIZE)
    target_link_options(${carried} PRIVATE -s)
  endif()
endforeach()

# Asks NVIDIA's driver. Loads the driver's library at run time, so it cannot be static as muster-accept is.
add_executable(muster-accept-nvml kernels/program_nvml.cc)
target_link_libraries(muster-accept-nvml PRIVATE muster_kernels_counters)
carried_program(muster-accept-nvml)
# What the tests load in its place: a driver of made-up GPUs, and one that is too old to know everything.
foreach(fake fake-nvml fake-nvml-old)
  add_library(${fake} SHARED EXCLUDE_FROM_ALL tests/fakes/nvml/fake_nvml.cc)
  set_target_properties(${fake} PROPERTIES PREFIX "" OUTPUT_NAME libnvidia-ml SUFFIX .so.1 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${fake})
  target_link_options(${fake} PRIVATE -static-libstdc++ -static-libgcc)
endforeach()
target_compile_definitions(fake-nvml-old PRIVATE OLD_DRIVER)
if(TARGET muster_tests)
  add_dependencies(muster_tests fake-nvml fake-nvml-old muster-accept muster-accept-nvml)
endif()

# The MPI check is copied into nodes of several distributions: beside what all carried programs need, libmpi.so.40 has to be there. Only steps
# of playbooks start it, and no playbook runs on hosts that are merely measured: the archive is without it.
if(NOT MUSTER_PORTABLE)
  enable_language(C)  # FindMPI asks mpicc; mpicxx would add the C++ interface, which Open MPI 5 has dropped
  find_package(MPI COMPONENTS C QUIET)
endif()
if(TARGET MPI::MPI_C AND NOT MUSTER_SANITIZE)
  add_executable(muster-mpi-check kernels/program_mpi.cc)
  target_include_directories(muster-mpi-check PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(muster-mpi-check SYSTEM PRIVATE ${MPI_C_INCLUDE_DIRS})
  target_compile_definitions(muster-mpi-check PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_compile_options(muster-mpi-check PRIVATE -O2)
  carried_program(muster-mpi-check)
  target_link_libraries(muster-mpi-check PRIVATE muster_kernels_together ${MPI_C_LIBRARIES} Threads::Threads)
endif()

if(TARGET muster_tests)
  carried_programs_test(muster_tests muster-agent muster-accept muster-accept-nvml muster-mpi-check)
endif()

if(MUSTER_PORTABLE)
  muster_archive(muster muster-agent muster-accept muster-accept-nvml)
endif()

# Benchmarks that are programs; bench/run.sh builds them.
add_executable(muster-bench-locate EXCLUDE_FROM_ALL bench/locate.cc bench/plot.cc tests/fakes/planted.cc)
target_link_libraries(muster-bench-locate PRIVATE muster_controller_report Threads::Threads)
add_executable(muster-bench-plan EXCLUDE_FROM_ALL bench/plan.cc bench/cluster.cc)
target_link_libraries(muster-bench-plan PRIVATE muster_controller_executor muster_controller_spec_reader)
add_executable(muster-bench-sdc EXCLUDE_FROM_ALL bench/sdc.cc)
target_link_libraries(muster-bench-sdc PRIVATE muster_kernels_cpu)
add_executable(muster-bench-push EXCLUDE_FROM_ALL bench/push.cc)
target_link_libraries(muster-bench-push PRIVATE muster_controller_ssh Threads::Threads)
add_executable(muster-bench-image EXCLUDE_FROM_ALL bench/image.cc)
target_link_libraries(muster-bench-image PRIVATE muster_agent muster_controller Threads::Threads)
add_executable(muster-bench-scale EXCLUDE_FROM_ALL bench/scale.cc bench/scale_causes.cc bench/scale_cluster.cc bench/scale_machine.cc bench/cluster.cc)
target_link_libraries(muster-bench-scale PRIVATE muster_controller Threads::Threads)
