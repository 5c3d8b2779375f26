# The tests and the simulation. Those of the GPU kernels: cmake/gpu.cmake; of the archive: cmake/portable.cmake.
enable_testing()
muster_glob(test_sources tests/unit/*.cc tests/unit/*/*.cc tests/field/*.cc tests/machines/*.cc tests/conformance/*.cc tests/fakes/*.cc
            tests/fuzz/*_fuzz.cc tests/fuzz/*_test.cc tests/*_test.cc tests/source_dir.cc tests/tidy_source.cc)
list(FILTER test_sources EXCLUDE REGEX "/portable_test\\.cc$")  # cmake/carried.cmake
if(test_sources)
  add_executable(muster_tests ${test_sources})
  set_target_properties(muster_tests PROPERTIES UNITY_BUILD OFF)  # tests name their helpers alike, and one at a time is edited
  set_source_files_properties(tests/source_dir.cc PROPERTIES
    COMPILE_DEFINITIONS "MUSTER_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\";MUSTER_BUILD_DIR=\"${CMAKE_BINARY_DIR}\"")
  add_dependencies(muster_tests muster-agent)  # which they start
  target_link_libraries(muster_tests PRIVATE muster_cli muster_controller muster_agent muster_kernels_containers muster_kernels_drives
    muster_kernels_together muster_kernels_gpu_logic muster_controller_report_import)
  # Half of a build is tests, and of these half was optimization of what runs once.
  if(CMAKE_BUILD_TYPE STREQUAL "Dev")
    target_compile_options(muster_tests PRIVATE -O0)
    # These read the whole tree with regular expressions: 12 s instead of 103 s.
    muster_glob(tidy_sources tests/tidy_*.cc)
    set_source_files_properties(${tidy_sources} PROPERTIES COMPILE_OPTIONS -O1)
  endif()
  add_test(NAME unit COMMAND muster_tests)
endif()
muster_glob(sim_sources tests/sim/*.cc tests/fakes/mem_store.cc)
list(LENGTH sim_sources sim_count)
if(sim_count GREATER 1)  # more than the store
  add_executable(muster_sim ${sim_sources})
  target_link_libraries(muster_sim PRIVATE muster_controller_executor muster_controller_rollout muster_controller_spec_reader muster_agent_core)
endif()
