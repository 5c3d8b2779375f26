// The list of power drivers. A new driver is one file in controller/power/ and one line here.
#include "controller/power/power.h"
#include "controller/power/redfish.h"

namespace muster {

const std::vector<PowerDriver>& power_drivers() {
  static const std::vector<PowerDriver> drivers = {redfish_driver()};
  return drivers;
}

}  // namespace muster
