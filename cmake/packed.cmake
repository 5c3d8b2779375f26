# Programs that `muster accept --hosts` sends to hosts lie gzipped beside themselves: compressing takes seconds, and would be done at every
# start. The command looks whether FILE.gz is of the very FILE beside it (controller/hosts/packed_program.h), and packs where it is not.
# -n: no name and no time, so the same program gives the same bytes.
set(packed_programs muster-agent muster-accept muster-accept-nvml)
find_program(GZIP gzip)
if(GZIP AND NOT MUSTER_SANITIZE)
  foreach(program ${packed_programs})
    if(TARGET ${program})
      add_custom_command(TARGET ${program} POST_BUILD COMMAND ${GZIP} -n -k -f ${program} BYPRODUCTS ${program}.gz
        WORKING_DIRECTORY ${CMAKE_BINARY_DIR} VERBATIM)
    endif()
  endforeach()
endif()

# muster_install_packed(COMPONENT FOLDER): of the programs as they were installed there just before, which may have been stripped.
function(muster_install_packed component folder)
  if(NOT GZIP)
    return()
  endif()
  foreach(program ${packed_programs})
    if(TARGET ${program})
      install(CODE "execute_process(COMMAND ${GZIP} -n -k -f \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}/${program}\" COMMAND_ERROR_IS_FATAL ANY)"
        COMPONENT ${component})
    endif()
  endforeach()
endfunction()
