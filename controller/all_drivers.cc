// The list of all power drivers. To add one, write its file and add one line here.
#include "controller/ports/power.h"
#include "controller/power/command_driver.h"
#include "controller/power/in_band.h"
#include "controller/power/ipmi.h"
#include "controller/power/manual.h"
#include "controller/power/redfish.h"
#include "controller/power/sakura/sakura_phy.h"
#include "controller/power/wrap.h"

namespace muster {

const std::vector<PowerDriver>& power_drivers() {
  static const std::vector<PowerDriver> drivers = {
      with_retries(redfish_driver()),
      with_retries(ipmi_driver()),
      with_retries(command_driver()),
      with_retries(sakura_phy_driver()),
      in_band_driver(),
      manual_driver(),
  };
  return drivers;
}

}  // namespace muster
