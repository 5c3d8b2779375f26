// Variables of the spec that muster itself reads, apart from its playbooks. The one place of their names:
// code that reads another one has it added here, or `muster spec check` calls it unread. Constant values.
#pragma once

namespace muster {

namespace own_variable {
inline constexpr const char* kAcsBridges = "acs_bridges";
inline constexpr const char* kConsole = "console";
inline constexpr const char* kKernelOptions = "kernel_options";
inline constexpr const char* kLibs = "libs";
inline constexpr const char* kPortRate = "port_rate";
inline constexpr const char* kRailRate = "rail_rate";
inline constexpr const char* kRdmaPorts = "rdma_ports";
inline constexpr const char* kRootSize = "root_size";
inline constexpr const char* kSoftRoce = "soft_roce";
}  // namespace own_variable

// `playbook`: the one that it is for; "": any node.
struct OwnVariable {
  const char *name, *playbook;
};
inline constexpr OwnVariable kOwnVariables[] = {{own_variable::kAcsBridges, "acs"},
                                                {own_variable::kConsole, ""},
                                                {own_variable::kKernelOptions, ""},
                                                {own_variable::kLibs, ""},
                                                {own_variable::kPortRate, ""},
                                                {own_variable::kRailRate, ""},
                                                {own_variable::kRdmaPorts, "interconnect"},
                                                {own_variable::kRootSize, ""},
                                                {own_variable::kSoftRoce, "interconnect"}};

}  // namespace muster
