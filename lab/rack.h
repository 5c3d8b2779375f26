// Rack: every machine of a running lab with its BMC and the BMC's HTTPS server. Lives in the process `muster
// lab serve`.
//
// Also carries out `muster lab break` and `lab add`. All machines' state is in the folder, so a new Rack over
// the same folder adopts what still runs. Thread: one owner calls add() and break_node(); status() from the
// control server's thread goes through the same mutex.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"
#include "base/os.h"
#include "base/reactor.h"
#include "lab/bmc.h"
#include "lab/qemu_machine.h"

namespace muster::lab {

struct RackOptions {
  LabDir dir;
  QemuHost host;
  uint16_t bmc_port = 443;
};

// What `muster lab break` asks for.
struct Break {
  std::string node, fault;
  int64_t seconds = 0;
  std::string drive, rate, file_system;  // slow-drive, foreign-fs, extra-disk; shape, slow-drive; foreign-fs
  bool heal = false;
};
Json to_json(const Break& request);
Result<Break> break_from_json(const Json& json);
// name -> one line of help, for the command line and the documentation.
const std::map<std::string, std::string>& fault_list();

class Rack {
 public:
  Rack(RackOptions options, LabSpec spec, Process& process, RealReactor& reactor);
  ~Rack();

  Status start();  // every machine's BMC listens
  // A machine the spec does not know: network, BMC, drives; `on`: its power button is pressed.
  Result<Json> add(const std::string& name, bool on = false);
  Result<Json> break_node(const Break& request);  // what was done, in words
  Json status();
  void power_off_all();

 private:
  struct Slot;
  Status mount(const LabNode& node);
  Result<std::string> bmc_password() const;
  Slot* find(const std::string& name);
  Status save();
  void log_request(const std::string& node, const HttpRequest& request, int status);
  Result<std::string> carry_out(Slot& slot, const Break& request);
  Result<std::string> break_bmc(Slot& slot, const Break& request);
  Result<std::string> break_network(Slot& slot, const Break& request);
  Result<std::string> break_drive(Slot& slot, const Break& request);
  Result<std::string> extra_disk(Slot& slot, const Break& request);

  const RackOptions options_;
  Process& process_;
  RealReactor& reactor_;
  std::mutex log_mutex_;
  std::mutex mutex_;
  LabSpec spec_;
  std::map<std::string, std::unique_ptr<Slot>> slots_;
};

}  // namespace muster::lab
