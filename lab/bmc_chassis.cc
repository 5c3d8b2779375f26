// The part of Bmc that serves IPMI: ipmi_sim's chassis control, "get NAME..." and "set NAME VALUE...".
#include <fmt/format.h>

#include "lab/bmc.h"

namespace muster::lab {

Result<Json> Bmc::chassis(const std::vector<std::string>& words) {
  if (words.empty()) return fail(Code::invalid, "chassis: expected get or set");
  std::lock_guard lock(mutex_);
  ++served_;
  Json out = Json::object();
  if (words[0] == "get") {
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "power")
        out["power"] = machine_.running() ? "1" : "0";
      else if (words[i] == "boot")
        out["boot"] = next_.network_next() ? "pxe" : "default";
      else
        return fail(Code::invalid, "chassis: cannot get " + words[i]);
    }
    return out;
  }
  // ipmi_sim checks whether a command is supported before it sends it.
  if (words[0] == "check") return out;
  if (words[0] != "set") return fail(Code::invalid, "chassis: expected get or set, not " + words[0]);
  for (size_t i = 1; i + 1 < words.size(); i += 2) TRY_(chassis_set(words[i], words[i + 1]));
  return out;
}

Status Bmc::chassis_set(const std::string& name, const std::string& value) {
  if (name == "boot") {
    next_ = Override{};
    if (value == "pxe") next_ = {.target = "Pxe", .enabled = "Once", .mode = "UEFI", .http_uri = ""};
    current_ = next_;
    machine_.set_boot_first(next_.network_next() ? BootFirst::network : BootFirst::disk);
  } else if (name == "power" && value == "1") {
    if (!machine_.running()) change_power(true);
    machine_.start();
  } else if (name == "power" && value == "0") {
    machine_.cut_power();
  } else if (name == "reset") {
    if (!machine_.running()) return fail(Code::conflict, "chassis: the machine is off and cannot be reset");
    machine_.reset();
  } else if (name == "shutdown") {
    machine_.press_power();
  } else {
    return fail(Code::invalid, fmt::format("chassis: cannot set {} to {}", name, value));
  }
  return Ok{};
}

}  // namespace muster::lab
