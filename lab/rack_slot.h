// Rack's own: one machine with its BMC and that BMC's server. Thread: under Rack's mutex.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/http.h"
#include "lab/ipmi_bmc.h"
#include "lab/rack.h"

namespace muster::lab {

struct Rack::Slot {
  std::unique_ptr<QemuMachine> machine;
  std::unique_ptr<Bmc> bmc;
  std::unique_ptr<HttpServer> server;  // Redfish, or
  std::unique_ptr<IpmiBmc> ipmi;
  std::map<std::string, std::string> faults;  // active now, with a text
  ~Slot() {
    ipmi.reset();
    server.reset();   // no request reaches a BMC that is going away
    machine.reset();  // joins the thread that calls back into bmc
  }
};

}  // namespace muster::lab
