// ACS control registers of PCIe bridges, read and written through the kernel's `config` files.
//
// Used by the step module and, at every boot and every few minutes, by `muster-agent acs`, because the kernel
// restores its own policy after a bus reset or an error recovery. Thread safety: stateless functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/steps/gpu/acs_rule.h"
#include "base/json.h"

namespace muster::steps {

inline constexpr const char* kAcsFile = "/etc/muster/acs.json";  // [{"bridge", "clear", "set", "why"}...]

// Returns the ACS control register; nullopt if the bridge has no ACS capability. not_found: no such device.
Result<std::optional<uint16_t>> read_acs(const Files& files, const std::string& bridge);
// Sets and clears the bits of this setting and reads them back; denied if the bridge keeps a different value.
// Returns false if the bridge has no ACS capability, which is not an error.
Result<bool> write_acs(const Files& files, const AcsSetting& setting);

std::string acs_settings_text(const std::vector<AcsSetting>& settings);  // the content of kAcsFile
Result<std::vector<AcsSetting>> parse_acs_settings(const std::string& text);

// Applies all settings in kAcsFile, for `muster-agent acs`. Returns how many registers it changed.
Result<int> reapply_acs(const Files& files);

}  // namespace muster::steps
