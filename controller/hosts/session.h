// AcceptSession: `muster accept --hosts` from the first connection to the last: reaches the hosts, refuses
// those that must not be loaded, plans under a generated spec, carries out, judges, and leaves.
//
// Nothing of a host is changed: the plan is looked through for orders to measure before it is approved
// (controller/hosts/measures_only.h), in release builds as well. A connection that is lost is opened again; a
// host that was restarted meanwhile, or behind whose name another machine answers then, failed. Ends with one
// call of `done`, when all hosts were left. Thread: the reactor's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/reactor.h"
#include "base/result.h"
#include "controller/hosts/host_links.h"
#include "controller/hosts/outcome.h"
#include "controller/options.h"
#include "controller/report/drift.h"

namespace muster {

struct HostToAccept {
  std::string name, address, group;  // as listed
  std::vector<std::string> argv;     // HostWireOptions
};

struct SessionOptions {
  DaemonOptions core = {};  // programs and playbooks; `state`: of this list of hosts
  std::string keys = {};    // folder of the key that reports are signed with
  std::string cluster = {}, profile = {};
  std::map<std::string, std::string> vars = {};  // that the profile may name
  std::string by = "muster accept --hosts";      // who approves, in the report
  std::vector<HostToAccept> hosts = {};
  bool as_user = false;      // never sudo
  bool beside_jobs = false;  // hosts at work are measured, too: `profile` loads nothing
  bool drift_only = false;   // nothing is measured
  HostLinkTiming timing = {};
  DurationMs first_words = kMinute;  // from the look of the last host to the first poll of each
  HostLinks::Open open = {};         // null: open_host_wire()
};

struct SessionOutcome {
  Status ended = Ok{};  // an error: nothing was measured, and why. denied: the plan would do more
  bool cancelled = false;
  std::vector<HostOutcome> hosts = {};  // in the order of the list
  std::string title = {};
  std::vector<std::string> notes = {};
  int64_t run = 0;                                 // 0: nothing was measured
  std::map<std::string, std::string> report = {};  // file name -> content
  Drift drift = {};                                // of the hosts that were reached
};

class AcceptSession {
 public:
  struct Events {
    std::function<void(const HostOutcome&)> out;  // it takes no part (any more); null: not wanted
    std::function<void(SessionOutcome)> done;
  };
  // As AcceptCore::open; not_found: the programs that hosts run, or no hosts.
  static Result<std::unique_ptr<AcceptSession>> open(RealReactor& reactor, SessionOptions options,
                                                     Events events);
  virtual ~AcceptSession() = default;
  virtual void start() = 0;
  // Ends it in order: what was measured so far is reported.
  virtual void cancel(const std::string& reason) = 0;

  struct Progress {
    size_t hosts = 0, reached = 0, out = 0;
    bool running = false;  // then `status` is that of the run, as /v1/status has it
    Json status = nullptr;
  };
  virtual Progress progress() = 0;
};

}  // namespace muster
