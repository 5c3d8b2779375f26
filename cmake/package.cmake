# Debian packages: `cpack --config build/CPackConfig.cmake` makes muster (command line), muster-controller and muster-agent. Where the
# GPU kernels are built (preset gpu), muster-accept-gpu is one of its own: scripts/build-gpu-package.sh makes it, alone, because its version
# names its CUDA and the others' does not.
set(share share/muster)
foreach(program muster musterd muster-agent muster-accept muster-accept-nvml muster-accept-gpu muster-mpi-check muster_sim)
  if(NOT TARGET ${program})
    continue()
  endif()
  if(program STREQUAL "muster")
    install(TARGETS ${program} RUNTIME DESTINATION bin COMPONENT muster)
  elseif(program STREQUAL "musterd")
    install(TARGETS ${program} RUNTIME DESTINATION sbin COMPONENT muster-controller)
  elseif(program STREQUAL "muster-agent")
    install(TARGETS ${program} RUNTIME DESTINATION sbin COMPONENT muster-agent)
    # The command's and the controller's own copy: the one sends it to running hosts, the other puts it into the RAM system.
    install(TARGETS ${program} RUNTIME DESTINATION lib/muster COMPONENT muster)
  elseif(program STREQUAL "muster-accept-gpu")
    install(TARGETS ${program} RUNTIME DESTINATION lib/muster COMPONENT muster-accept-gpu)
  elseif(NOT program STREQUAL "muster_sim")
    install(TARGETS ${program} RUNTIME DESTINATION lib/muster COMPONENT muster)
  endif()
endforeach()
muster_install_packed(muster lib/muster)
# With the command: `muster accept --hosts` plans in its own process, where no controller is.
install(DIRECTORY playbooks DESTINATION ${share} COMPONENT muster)
install(DIRECTORY images DESTINATION ${share} COMPONENT muster-controller)
install(FILES systemd/musterd.service systemd/muster-rollout.service systemd/muster-rollout.timer systemd/muster-rollout-failed.service
  DESTINATION /lib/systemd/system COMPONENT muster-controller)
install(PROGRAMS systemd/rollout-failed DESTINATION lib/muster COMPONENT muster-controller)
# For a Prometheus that muster does not install.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS playbooks/monitoring.yaml)
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/alert-rules.sh OUTPUT_FILE ${CMAKE_BINARY_DIR}/muster-rules.yml COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${CMAKE_BINARY_DIR}/muster-rules.yml DESTINATION ${share}/prometheus COMPONENT muster-controller)
install(FILES systemd/deb/musterd.env DESTINATION /etc/muster COMPONENT muster-controller)
# Every page, beside README.md, which links to them: the command's and the controller's messages name them, and there may be no other copy.
install(DIRECTORY docs DESTINATION share/doc/muster COMPONENT muster FILES_MATCHING PATTERN "*.md" PATTERN "*.yaml" PATTERN "*.svg" PATTERN "*.png")
install(FILES CONTRIBUTING.md SECURITY.md DESTINATION share/doc/muster COMPONENT muster)
# Printed by the programs from the verbs and options that they parse, whenever these are linked: cpack builds nothing.
set(printed ${CMAKE_BINARY_DIR}/printed)
# muster_printed(PROGRAM FILE COMPONENT FOLDER WORD...): what PROGRAM prints for these words, as FOLDER/FILE of the package.
function(muster_printed program file component folder)
  # A program with a sanitizer may not run where it is built; it is not packed.
  if(NOT TARGET ${program} OR MUSTER_SANITIZE)
    return()
  endif()
  file(MAKE_DIRECTORY ${printed})
  set(text ${printed}/${file})
  add_custom_command(TARGET ${program} POST_BUILD BYPRODUCTS ${text} COMMAND $<TARGET_FILE:${program}> ${ARGN} > ${text} VERBATIM)
  if(file MATCHES "\\.[0-9]$")  # as Debian has its manual
    add_custom_command(TARGET ${program} POST_BUILD BYPRODUCTS ${text}.gz COMMAND gzip -9nkf ${text} VERBATIM)
    set(text ${text}.gz)
  endif()
  install(FILES ${text} DESTINATION ${folder} COMPONENT ${component})
endfunction()
muster_printed(muster muster muster share/bash-completion/completions completion bash)
muster_printed(muster muster.fish muster share/fish/vendor_completions.d completion fish)
muster_printed(muster _muster muster share/zsh/vendor-completions completion zsh)
muster_printed(muster muster.1 muster share/man/man1 --manual)
muster_printed(musterd musterd.8 muster-controller share/man/man8 --manual)
install(FILES systemd/muster-agent.service DESTINATION /lib/systemd/system COMPONENT muster-agent)
set(components muster muster-controller muster-agent)
if(TARGET muster-accept-gpu)
  set(gpu_component muster-accept-gpu)
  install(FILES docs/acceptance-gpu.md DESTINATION share/doc/muster-accept-gpu COMPONENT muster-accept-gpu)
endif()
foreach(component ${components} ${gpu_component})
  install(FILES LICENSE README.md CHANGELOG.md DESTINATION share/doc/${component} COMPONENT ${component})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME muster)
set(CPACK_PACKAGE_VENDOR "muster")
# The field Maintainer, which dpkg wants and does not look into. The maintainers read no mail, so it names no address.
set(CPACK_PACKAGE_CONTACT "muster maintainers (open an issue in the repository)")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "From a YAML file and racked servers to an accepted GPU cluster")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_STRIP_FILES ON)
# Read when cpack runs. The version is that of the programs as they were built last: the commit may be another one than when CMake ran, and
# cpack builds nothing with Ninja. CPack has no option for SHLIBDEPS_EXECUTABLE, but uses the program it finds set already.
# tests/e2e/packages.sh looks at both.
file(WRITE ${CMAKE_BINARY_DIR}/package-config.cmake "\
set(SHLIBDEPS_EXECUTABLE ${CMAKE_SOURCE_DIR}/systemd/deb/shlibdeps)
include(${CMAKE_SOURCE_DIR}/cmake/version.cmake)
muster_built_version(CPACK_PACKAGE_VERSION ${version_source})
if(CPACK_COMPONENTS_ALL STREQUAL \"muster-accept-gpu\")
  muster_cuda_version(CPACK_PACKAGE_VERSION \${CPACK_PACKAGE_VERSION} \"${cuda_major}\")
endif()
set(CPACK_DEBIAN_MUSTER-CONTROLLER_PACKAGE_DEPENDS
    \"muster (= \${CPACK_PACKAGE_VERSION}), dnsmasq-base, ipxe, init-system-helpers\")
# Of versions in which the programs and playbooks were the controller's.
set(CPACK_DEBIAN_MUSTER_PACKAGE_REPLACES \"muster-controller (<< \${CPACK_PACKAGE_VERSION})\")
set(CPACK_DEBIAN_MUSTER_PACKAGE_BREAKS \"muster-controller (<< \${CPACK_PACKAGE_VERSION})\")
")
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_BINARY_DIR}/package-config.cmake)

set(CPACK_COMPONENT_MUSTER_DESCRIPTION
    "The muster command: plan, bring up and watch a cluster; measure running hosts over ssh; muster lab rehearses a cluster.")
set(CPACK_DEBIAN_MUSTER_PACKAGE_NAME muster)
# muster accept --hosts starts ssh.
set(CPACK_DEBIAN_MUSTER_PACKAGE_RECOMMENDS openssh-client)
set(CPACK_DEBIAN_MUSTER_PACKAGE_SUGGESTS
    "muster-controller, qemu-system-x86, qemu-utils, ovmf, ipxe-qemu, nginx-light, gdisk, xfsprogs, iproute2")

# At run time: DHCP and TFTP, and the loader that is handed out by TFTP. Kernel, busybox and boot loader of the nodes come
# from the image (all of it is in package-config.cmake, above). Only building an image needs what is recommended; one that was imported
# needs none of it.
set(CPACK_COMPONENT_MUSTER-CONTROLLER_DESCRIPTION "The controller, musterd: runs plans, serves images, DHCP and TFTP, keeps the journal.")
set(CPACK_DEBIAN_MUSTER-CONTROLLER_PACKAGE_NAME muster-controller)
set(CPACK_DEBIAN_MUSTER-CONTROLLER_PACKAGE_RECOMMENDS "mmdebstrap, debian-archive-keyring, e2fsprogs, xz-utils")
set(CPACK_DEBIAN_MUSTER-CONTROLLER_PACKAGE_SUGGESTS ipmitool)  # for BMCs that speak IPMI
set(deb ${CMAKE_SOURCE_DIR}/systemd/deb)
set(CPACK_DEBIAN_MUSTER-CONTROLLER_PACKAGE_CONTROL_EXTRA
    ${deb}/controller/postinst ${deb}/controller/prerm ${deb}/controller/postrm ${deb}/controller/conffiles)

set(CPACK_COMPONENT_MUSTER-AGENT_DESCRIPTION
    "The agent of a node, for a newer agent without a new image. Images bring their own; it waits until the node has joined.")
set(CPACK_DEBIAN_MUSTER-AGENT_PACKAGE_NAME muster-agent)
set(CPACK_DEBIAN_MUSTER-AGENT_PACKAGE_DEPENDS "init-system-helpers")
set(CPACK_DEBIAN_MUSTER-AGENT_PACKAGE_CONTROL_EXTRA ${deb}/agent/postinst ${deb}/agent/prerm ${deb}/agent/postrm)

# The controller's machine only carries it to the nodes: what it is linked with must be there, not here. So it asks for no library, and
# may be built on a newer Debian than the controller's. What muster-controller finds beside muster-accept goes to every node.
set(CPACK_COMPONENT_MUSTER-ACCEPT-GPU_DESCRIPTION
    "Acceptance of NVIDIA GPUs: what a muster-controller carries to its nodes to measure them. The nodes need the driver and glibc.")
set(CPACK_DEBIAN_MUSTER-ACCEPT-GPU_PACKAGE_NAME muster-accept-gpu)
set(CPACK_DEBIAN_MUSTER-ACCEPT-GPU_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_MUSTER-ACCEPT-GPU_PACKAGE_ENHANCES muster-controller)
include(CPack)
