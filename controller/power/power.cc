#include "controller/power/power.h"

namespace muster {

std::string_view to_string(PowerState state) {
  switch (state) {
    case PowerState::on: return "on";
    case PowerState::off: return "off";
    case PowerState::unknown: break;
  }
  return "unknown";
}

}  // namespace muster
