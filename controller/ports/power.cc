#include "controller/ports/power.h"

namespace muster {

std::string_view to_string(PowerState state) {
  switch (state) {
    case PowerState::on:
      return "on";
    case PowerState::off:
      return "off";
    case PowerState::unknown:
      break;
  }
  return "unknown";
}

Status boot_from_network(Power& power, DurationMs call) {
  TRY(const PowerState before, power.state(call));
  TRY_(power.can_boot_network(call));
  if (before != PowerState::off) TRY_(power.off(call, false));
  Status once = power.boot_once_network(call);
  if (!once.ok())
    return std::move(once).error().with(
        "the machine stays off, because its next boot could not be set to the network");
  return power.on(call);
}

}  // namespace muster
