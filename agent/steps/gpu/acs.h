// ACS control registers of PCIe bridges, read and written through the kernel's `config` files.
//
// Used by the step module and, at every boot and every few minutes, by `muster-agent acs`: after a bus reset
// or an error recovery the kernel restores its own policy. Thread: plain functions over Files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/steps/gpu/acs_rule.h"
#include "base/json.h"

namespace muster::steps {

inline constexpr const char* kAcsFile = "/etc/muster/acs.json";  // [{"bridge", "clear", "set", "why"}...]

// The control register; nothing if the bridge has no ACS capability. not_found: no such device.
Result<std::optional<uint16_t>> read_acs(const Files& files, const std::string& bridge);
// Sets and clears the setting's bits and reads them back: denied if the bridge keeps a different value. False
// when there is no capability (not an error).
Result<bool> write_acs(const Files& files, const AcsSetting& setting);

std::string acs_settings_text(const std::vector<AcsSetting>& settings);
Result<std::vector<AcsSetting>> parse_acs_settings(const std::string& text);

// What `muster-agent acs` does: all settings of kAcsFile. Returns how many registers were changed.
Result<int> reapply_acs(const Files& files);

}  // namespace muster::steps
