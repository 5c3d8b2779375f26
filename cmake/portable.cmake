# MUSTER_PORTABLE (preset portable): the programs of the archive that is downloaded and unpacked (scripts/release.sh). `muster` has SQLite,
# OpenSSL, yaml-cpp, zstd, zlib and libstdc++ in it and loads glibc alone, as the programs do that it carries to hosts. It has no libssh, which
# needs Kerberos, and that is nowhere to be had as a static library: only `node add --adopt` uses libssh, and refuses here
# (cli/adopt_without_ssh.cc). Two builds of one commit are equal byte for byte, wherever they were made.
set(MUSTER_LEFT_OUT_SOURCES "/cli/adopt_without_ssh\\.cc$")
set(MUSTER_LEFT_OUT_FOLDERS "")
if(MUSTER_PORTABLE)
  set(MUSTER_LEFT_OUT_SOURCES "/cli/adopt_(verb|host)\\.cc$")
  set(MUSTER_LEFT_OUT_FOLDERS controller/ssh)
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
endif()

# muster_libraries(OUT LIBRARY...): the same libraries of others, by the path of the static one in a portable build.
function(muster_libraries out)
  set(all "")
  foreach(library ${ARGN})
    if(MUSTER_PORTABLE AND library MATCHES "^(crypto|ssl|sqlite3|yaml-cpp|zstd|z)$")
      find_library(MUSTER_STATIC_${library} lib${library}.a REQUIRED)
      list(APPEND all ${MUSTER_STATIC_${library}})
    else()
      list(APPEND all ${library})
    endif()
  endforeach()
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

# What the programs of the archive are: built by scripts/release.sh, and read by its test. The maps name what was linked in.
function(muster_archive)
  add_custom_target(muster_archive)
  foreach(program ${ARGN})
    if(TARGET ${program})
      add_dependencies(muster_archive ${program})
      target_link_options(${program} PRIVATE -Wl,-Map=${CMAKE_BINARY_DIR}/${program}.map)
    endif()
  endforeach()
  add_executable(muster_archive_tests EXCLUDE_FROM_ALL tests/unit/main_test.cc)
  set_target_properties(muster_archive_tests PROPERTIES UNITY_BUILD OFF)  # one of them defines Catch2's main()
  target_link_libraries(muster_archive_tests PRIVATE muster_base)
  carried_programs_test(muster_archive_tests ${ARGN})
endfunction()
