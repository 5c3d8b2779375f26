# One library per folder. LINK: the folders whose headers its files include, and no others (tests/tidy_layout_test.cc compares them);
# an include upwards closes a circle, and `muster_links` does not link. docs/architecture.md draws the floors.
#
# muster_folder(FOLDER LINK FOLDER... NEEDS LIBRARY...), where NEEDS are libraries of others.
function(muster_folder folder)
  cmake_parse_arguments(F "" "" "LINK;NEEDS" ${ARGN})
  string(REPLACE "/" "_" name muster_${folder})
  muster_glob(sources ${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX ${MUSTER_LEFT_OUT_SOURCES})  # cmake/portable.cmake
  muster_libraries(needs ${F_NEEDS})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC ${needs})
  foreach(below ${F_LINK})
    if(below IN_LIST MUSTER_LEFT_OUT_FOLDERS)
      continue()
    endif()
    string(REPLACE "/" "_" library muster_${below})
    target_link_libraries(${name} PUBLIC ${library})
  endforeach()
  # All of the folder with what it declares, and nothing else.
  set(check links_${name})
  add_executable(${check} EXCLUDE_FROM_ALL cmake/links.cc)
  target_link_libraries(${check} PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${name}>)
  set_property(GLOBAL APPEND PROPERTY MUSTER_LINK_CHECKS ${check})
endfunction()

# Shared by all programs.
muster_folder(base NEEDS crypto z)
# The only one that includes nlohmann/json, which would be seen by the whole folder.
set_source_files_properties(base/json.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# What needs OpenSSL or zlib: in one object with the rest of its folder, each carried program would need them (cmake/carried.cmake).
set_source_files_properties(base/digest.cc base/facts.cc base/facts_text.cc base/gzip.cc base/manifest.cc base/secrets.cc sys/pki.cc kernels/together/group_leader.cc
  kernels/together/meeting.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
muster_folder(sys LINK base NEEDS ssl crypto Threads::Threads)
muster_folder(host LINK base sys)
muster_folder(sys/http LINK base sys NEEDS ssl crypto Threads::Threads)

# The controller.
muster_folder(controller/locate NEEDS muster_base)
muster_folder(controller/power/describe)
muster_folder(controller/causes LINK base)
muster_folder(controller/nodes LINK base)
muster_folder(controller/notices LINK base controller/causes controller/spec)
muster_folder(controller/options LINK base)
muster_folder(controller/doctor LINK base)
muster_folder(controller/spec LINK base controller/power/describe NEEDS yaml-cpp)
muster_folder(controller/boot LINK base sys)
muster_folder(controller/engines LINK base controller/spec)
muster_folder(controller/image LINK base controller/spec sys NEEDS zstd)
muster_folder(controller/ports LINK base controller/nodes controller/power/describe)
muster_folder(controller/report LINK base controller/causes controller/locate controller/spec)
muster_folder(controller/ssh LINK base sys NEEDS ssh)
muster_folder(controller/plan LINK base controller/engines controller/locate controller/nodes controller/power/describe controller/report
  controller/spec)
muster_folder(controller/power LINK base controller/ports sys sys/http NEEDS z)
muster_folder(controller/report/import LINK base controller/report)
muster_folder(controller/store LINK base controller/nodes controller/ports sys NEEDS sqlite3)
muster_folder(controller/trust LINK base controller/ports sys NEEDS crypto)
muster_folder(controller/image/service LINK base controller/image controller/options controller/plan controller/spec sys)
muster_folder(controller/power/sakura LINK base controller/ports controller/power controller/spec sys sys/http)
muster_folder(controller/power/service LINK base controller/ports controller/power controller/power/describe sys)
muster_folder(controller/rollout LINK base controller/engines controller/nodes controller/plan controller/spec)
muster_folder(controller/run LINK base controller/nodes controller/plan controller/ports controller/power/describe)
muster_folder(controller/executor LINK base controller/plan controller/ports controller/run sys)
muster_folder(controller/metrics LINK base controller/causes controller/nodes controller/ports controller/rollout controller/run)
muster_folder(controller/spec/reader LINK base controller/causes controller/engines controller/power/describe controller/report controller/rollout
  controller/spec)
muster_folder(controller/spec/warnings LINK base controller/spec controller/spec/reader)
muster_folder(controller/current LINK base controller/ports controller/spec controller/spec/reader)
muster_folder(controller/notices/service LINK base controller/causes controller/current controller/notices controller/ports controller/rollout
  controller/spec controller/trust sys sys/http)
muster_folder(controller/boot/service LINK base controller/boot controller/current controller/image controller/options controller/ports
  controller/spec controller/trust sys)
muster_folder(controller/link LINK base controller/boot/service controller/engines controller/nodes controller/plan controller/ports
  controller/spec sys)
muster_folder(controller/power/provider LINK base controller/boot/service controller/current controller/plan controller/ports
  controller/power/sakura controller/power/service controller/ssh controller/trust sys)
muster_folder(controller/bringup LINK base controller/causes controller/current controller/engines controller/executor controller/image/service
  controller/link controller/nodes controller/options controller/plan controller/ports controller/report controller/rollout controller/run
  controller/spec controller/spec/reader controller/spec/warnings controller/trust host sys)
muster_folder(controller/metrics/service LINK base controller/bringup controller/causes controller/current controller/executor
  controller/image/service controller/metrics controller/options controller/ports controller/rollout sys sys/http)
muster_folder(controller/doctor/service LINK base controller/boot controller/boot/service controller/bringup controller/current controller/doctor
  controller/executor controller/image controller/image/service controller/options controller/power/describe controller/power/service
  controller/spec controller/trust sys)
muster_folder(controller/hosts LINK base controller/bringup controller/current controller/executor controller/image
  controller/image/service controller/link controller/options controller/plan controller/ports controller/report controller/spec
  controller/spec/reader controller/store controller/trust sys)
muster_folder(controller/rollout/service LINK base controller/bringup controller/image controller/image/service controller/link
  controller/plan controller/ports controller/rollout sys)
muster_folder(controller/api LINK base controller/boot controller/boot/service controller/bringup controller/causes controller/current
  controller/doctor/service controller/executor controller/image/service controller/link controller/metrics controller/metrics/service controller/nodes
  controller/notices/service controller/options controller/plan controller/ports controller/power/provider controller/power/service
  controller/rollout/service controller/spec controller/spec/reader controller/store controller/trust sys sys/http)
muster_folder(controller LINK base controller/api controller/boot controller/boot/service controller/bringup controller/current
  controller/doctor/service controller/executor controller/image/service controller/link controller/metrics/service controller/nodes controller/notices/service
  controller/options controller/ports controller/power controller/power/provider controller/power/sakura controller/power/service
  controller/rollout/service controller/store controller/trust sys sys/http)

# The agent.
muster_folder(agent/core LINK base sys)
muster_folder(agent/disk LINK base host sys)
muster_folder(agent/image LINK agent/core agent/disk base host sys sys/http NEEDS zstd)
muster_folder(agent/link LINK agent/core base sys sys/http)
muster_folder(agent/steps LINK agent/core base sys)
muster_folder(agent/boot LINK agent/disk agent/image base host sys)
muster_folder(agent/steps/disk LINK agent/core agent/disk agent/steps agent/steps/files base sys)
muster_folder(agent/steps/files LINK agent/core agent/steps base sys)
muster_folder(agent/steps/network LINK agent/core agent/steps agent/steps/files base host sys)
muster_folder(agent/steps/packages LINK agent/core agent/steps agent/steps/files base sys)
muster_folder(agent/steps/services LINK agent/core agent/disk agent/steps agent/steps/files base sys)
muster_folder(agent/steps/system LINK agent/core agent/disk agent/image agent/steps agent/steps/disk agent/steps/files base host sys)
muster_folder(agent/storage LINK agent/core agent/disk agent/steps agent/steps/disk agent/steps/files agent/steps/services base host sys)
muster_folder(agent/checks LINK agent/core agent/steps agent/steps/system base)
muster_folder(agent/steps/gpu LINK agent/core agent/steps agent/steps/files agent/steps/system base host sys)
muster_folder(agent/facts LINK agent/disk agent/image agent/steps agent/steps/gpu agent/steps/system agent/storage base host sys)
muster_folder(agent/joining LINK agent/core agent/facts base sys)
muster_folder(agent/work LINK agent/boot agent/core agent/facts agent/image base sys)
muster_folder(agent/measuring LINK agent/core agent/facts agent/work base host sys)
# Its all_drivers.cc lists the modules of all topics.
muster_folder(agent LINK agent/boot agent/checks agent/core agent/facts agent/image agent/joining agent/link agent/measuring agent/steps
  agent/steps/disk agent/steps/files agent/steps/gpu agent/steps/network agent/steps/packages agent/steps/services agent/steps/system
  agent/storage agent/work base host sys)

# The measurements. kernels/ itself and kernels/gpu/ hold programs (below, cmake/extra.cmake, cmake/gpu.cmake).
muster_folder(kernels/common LINK base sys NEEDS Threads::Threads ${CMAKE_DL_LIBS})
muster_folder(kernels/containers LINK base host kernels/common)
muster_folder(kernels/cpu LINK base host kernels/common)
muster_folder(kernels/drives LINK base host kernels/common)
muster_folder(kernels/rdma LINK base host kernels/common sys)
muster_folder(kernels/training LINK kernels/common)
muster_folder(kernels/counters LINK base host kernels/common kernels/rdma sys)
muster_folder(kernels/gpu/logic LINK base kernels/cpu)
muster_folder(kernels/link LINK base host kernels/common kernels/rdma)
muster_folder(kernels/together LINK base kernels/common kernels/counters kernels/cpu kernels/link kernels/training sys)

# The lab and the command line.
muster_folder(lab LINK base controller/spec controller/spec/reader sys sys/http)
muster_folder(cli LINK base controller/bringup controller/causes controller/hosts controller/image controller/nodes controller/options
  controller/report controller/report/import controller/spec controller/spec/reader controller/ssh lab sys sys/http)

# Every folder links with the folders that it declares.
get_property(checks GLOBAL PROPERTY MUSTER_LINK_CHECKS)
add_custom_target(muster_links)
add_dependencies(muster_links ${checks})
