// AcceptSession: `muster accept --hosts` from the first connection to the last. Reaches the hosts, excludes
// those that must not be loaded, plans with a generated spec, runs the plan, judges the results, and leaves.
//
// Nothing is measured before each host has answered or is left out (docs/decisions/0057). Nothing on a host
// is changed: before the plan is approved, it is checked to contain only measurements (measures_only()), also
// in release builds. A lost connection is reopened; a host has failed if it was restarted meanwhile, or if
// its name now leads to a different machine. Ends with one call of `done`, after all hosts were left.
// Thread: the reactor's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "controller/hosts/forecast.h"
#include "controller/hosts/gpu_programs.h"
#include "controller/hosts/host_links.h"
#include "controller/hosts/outcome.h"
#include "controller/options/options.h"
#include "controller/report/drift.h"
#include "sys/reactor.h"

namespace muster {

struct HostToAccept {
  std::string name, address, group;  // as listed; `address` may be empty
  std::vector<std::string> argv;     // HostWireOptions
  std::string looked_up = {};        // address of its destination on this machine; may be empty
  std::string written = {};          // what the list has instead of `name`; empty: the same
  std::string short_name = {};       // another name that its kernel may have; empty: none
};

struct SessionOptions {
  DaemonOptions core = {};  // programs and playbooks; `state`: of this list of hosts
  std::string keys = {};    // folder of the key that reports are signed with
  std::string cluster = {}, profile = {};
  std::map<std::string, std::string> vars = {};  // available to the profile
  std::string by = "muster accept --hosts";      // shown as approver in the report
  std::vector<HostToAccept> hosts = {};
  bool as_user = false;      // never sudo
  bool beside_jobs = false;  // hosts with jobs are measured, too: `profile` puts no load on them
  bool drift_only = false;   // nothing is measured
  GpuPrograms gpu = {};      // carried to hosts with GPUs
  HostLinkTiming timing = {};
  DurationMs first_words = kMinute;  // time limit from the last host's inventory to each host's first poll
  HostLinks::Open open = {};         // null: open_host_wire()
};

struct SessionOutcome {
  Status ended = Ok{};  // an error: why nothing was measured. denied: the plan would do more than
                        // measure
  bool cancelled = false;
  bool look = false;                    // no load ran on any host: the report is of the kind kLook
  std::vector<HostOutcome> hosts = {};  // in the order of the list
  std::string title = {};
  std::vector<std::string> notes = {};
  int64_t run = 0;                                 // 0: nothing was measured
  std::map<std::string, std::string> report = {};  // file name -> content
  Drift drift = {};                                // of the hosts that were reached
  std::vector<NotMeasured> not_measured = {};      // known before anything was measured
};

class AcceptSession {
 public:
  struct Events {
    std::function<void(const HostOutcome&)> out;  // the host is left out, or drops out; may be null
    std::function<void(SessionOutcome)> done;
    // Called once, before anything is measured, if there is something; may be null.
    std::function<void(const std::vector<NotMeasured>&)> not_measured = {};
  };
  // Errors as AcceptCore::open; not_found: the programs that hosts run are missing, or there are no hosts.
  static Result<std::unique_ptr<AcceptSession>> open(RealReactor& reactor, SessionOptions options,
                                                     Events events);
  virtual ~AcceptSession() = default;
  virtual void start() = 0;
  // Ends the session cleanly: what was measured so far is reported.
  virtual void cancel(const std::string& reason) = 0;

  struct Progress {
    size_t hosts = 0, reached = 0, out = 0;
    std::vector<std::string> awaited = {};  // neither reached nor out, by name
    bool running = false;                   // if true, `status` is the run's, as in /v1/status
    Json status = nullptr;
  };
  virtual Progress progress() = 0;
};

}  // namespace muster
