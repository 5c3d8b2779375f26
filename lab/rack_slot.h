// Private to Rack: one machine with its BMC and the BMC's server. Guarded by Rack's mutex.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "lab/ipmi_bmc.h"
#include "lab/rack.h"
#include "sys/http/http.h"

namespace muster::lab {

struct Rack::Slot {
  std::unique_ptr<QemuMachine> machine;
  std::unique_ptr<Bmc> bmc;
  std::unique_ptr<HttpServer> server;         // for Redfish
  std::unique_ptr<IpmiBmc> ipmi;              // instead of `server`, for IPMI
  std::map<std::string, std::string> faults;  // active faults, each with a description
  ~Slot() {
    ipmi.reset();
    server.reset();   // no request may reach a BMC that is being destroyed
    machine.reset();  // joins the thread that calls back into bmc
  }
};

}  // namespace muster::lab
