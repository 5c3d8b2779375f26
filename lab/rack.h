// Rack: all machines of a running lab, with their BMCs and HTTPS servers, in the `muster lab serve` process.
// Also executes `muster lab break` and `lab add`. All state is in the lab's folder, so a new Rack with the
// same folder adopts running machines. Thread safety: one owner calls add() and carry_out(); status() may be
// called on the control server's thread (same mutex).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"
#include "lab/bmc.h"
#include "lab/fault.h"
#include "lab/ipmi_bmc.h"
#include "lab/outages.h"
#include "lab/phy_api.h"
#include "lab/qemu_machine.h"
#include "sys/clock.h"
#include "sys/http/http.h"
#include "sys/os.h"
#include "sys/reactor.h"

namespace muster::lab {

struct RackOptions {
  LabDir dir;
  QemuHost host;
  uint16_t bmc_port = 443;
  std::function<SteadyMs()> now = steady_now;
  std::string program = {};  // path of `muster`, which ipmi_sim calls
};

class Rack {
 public:
  Rack(RackOptions options, LabSpec spec, Process& process, Reactor& reactor);
  ~Rack();

  Status start();  // when it returns, every machine's BMC listens
  // Adds a machine that is not in the spec: network, BMC, drives; `on`: switches it on.
  Result<Json> add(const std::string& name, bool on = false);
  Result<Json> carry_out(const Break& request);  // returns what was done, for display
  Json status();
  // Executes a request of ipmi_sim (lab/ipmi_bmc.h).
  Result<Json> chassis(const std::string& node, const std::vector<std::string>& words);
  void power_off_all();

 private:
  // Guarded by mutex_.
  struct Slot {
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
  Status mount(const LabNode& node);
  Status serve_redfish(const LabNode& node, Slot& slot);
  Status serve_ipmi(const LabNode& node, Slot& slot, const std::string& password);
  // rack_provider.cc
  Status open_provider();
  void put_behind_provider(const LabNode& node, Slot& slot);
  std::string install_system(const LabNode& node, const std::string& image,
                             const std::vector<std::string>& keys);
  Result<std::string> break_provider(const Break& request);
  void log_order(const std::string& node, const std::string& text);
  Result<std::string> bmc_password() const;
  Slot* find(const std::string& name);
  Status save();
  void log_request(const std::string& node, const HttpRequest& request, int status);
  Result<Json> break_node(const Break& request);
  Result<std::string> break_machine(Slot& slot, const Break& request);
  Result<std::string> break_boot(Slot& slot, const Break& request);
  Result<std::string> break_bmc(Slot& slot, const Break& request);
  Result<std::string> break_network(Slot& slot, const Break& request);
  Result<std::string> break_drive(Slot& slot, const Break& request);
  Result<std::string> extra_disk(Slot& slot, const Break& request);
  // rack_pcie.cc
  Result<std::string> break_pcie(Slot& slot, const LabDrive& drive, bool heal);
  Result<std::string> break_gpu(Slot& slot, const Break& request);
  // rack_network.cc
  Result<std::string> pull_cable(Slot& slot, const Break& request);
  Result<std::string> port_errors(Slot& slot, const Break& request);
  Result<Json> break_switch(const Break& request);
  Status begin_outage(const std::string& reason, const Outages::Taps& taps, DurationMs span);
  Status end_outage(const std::string& reason);
  void end_outages_that_are_over();
  Status join_outages(const LabNode& node);
  Json networks() const;

  const RackOptions options_;
  Process& process_;
  Reactor& reactor_;
  std::mutex log_mutex_;
  std::mutex mutex_;
  LabSpec spec_;
  std::unique_ptr<PhyApi> provider_;
  std::map<std::string, std::unique_ptr<Slot>> slots_;
  std::unique_ptr<HttpServer> provider_server_;  // destroyed before the machines
  Outages outages_;
};

// Returns a shell script, to be run by root, that injects one corrected error (receiver error) at the port
// above the NVMe drive with this serial. It exits with 1 if there is no such drive or no port above it.
std::string pcie_error_script(const std::string& serial);

}  // namespace muster::lab
