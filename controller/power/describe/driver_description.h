// Power drivers: one description per driver of everything in which drivers differ for the rest of the
// controller. Code outside controller/power/ names no driver: the spec's reader, the planner and a run use
// the descriptions. The drivers: controller/all_drivers.cc. How to add one: docs/adding.md. No I/O.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace muster {

// What switches a node's power.
enum class Switch {
  bmc,       // its BMC, or what takes the place of one
  provider,  // its provider's API, which cannot boot it from the network
  person,    // an operator, by hand, when requested; the power state is unknown
  agent,     // nothing: its own agent does what is possible
};
// True if muster itself can switch it, and so can reset it when it hangs.
constexpr bool is_remote(Switch by) { return by == Switch::bmc || by == Switch::provider; }
// If not, only the agent of its running system can start the RAM system on it.
constexpr bool can_netboot(Switch by) { return by == Switch::bmc || by == Switch::person; }

// What `power.address` is.
enum class PowerAddress {
  host,      // an address or a host name
  bmc,       // an address: a name could mean another machine at each call
  server,    // the id or nickname that the provider's API has for it
  words,     // what the operator's program understands
  location,  // where it stands; several machines may share one
  none,
};

struct NeededKey {
  std::string_view name;
  std::string_view value = {};  // what it must be, for the error
};

struct DriverDescription {
  std::string_view name = {};  // PowerSpec::driver; empty: unknown driver
  Switch by = Switch::bmc;
  PowerAddress address = PowerAddress::host;

  // For the spec: keys of `power`, besides `driver`.
  std::array<NeededKey, 2> needs = {};
  std::array<std::string_view, 4> allows = {};
  // Why a BMC's keys have no effect; empty: the error names the drivers that they belong to.
  std::string_view refusal = {};
  std::string_view identity = {}, pin_prefix = {};  // what `pin` pins, and how it begins

  bool takes(std::string_view key) const {
    return std::count(allows.begin(), allows.end(), key) > 0 ||
           std::any_of(needs.begin(), needs.end(),
                       [&](const NeededKey& needed) { return needed.name == key; });
  }
};

const std::array<DriverDescription, 6>& driver_descriptions();
// Any other name has the description of an unknown driver: a BMC, whose calls report the error.
const DriverDescription& description_of(std::string_view driver);

}  // namespace muster
