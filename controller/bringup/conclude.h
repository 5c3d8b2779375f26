// The end of a run: the final verdict on every node, and the signed report. For a large cluster this takes
// seconds, so only the executor's data is copied on the reactor's thread. Thread, unless noted: that of the
// archive.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "controller/bringup/run_view.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/ports/store.h"
#include "controller/report/report.h"
#include "sys/pki.h"
#include "sys/reactor.h"

namespace muster {

// Additional data about a run, besides its plan and journal. Not used by the daemon.
struct AddedToRun {
  std::vector<std::string> notes = {};  // for the report
  // Nodes that are not in the plan -> why: the report shows them as failed with that reason.
  std::map<std::string, std::string> not_measured = {};
  // Node -> run: up to that run the name was another machine's, so its measurements are not this node's
  // history.
  std::map<std::string, int64_t> history_after = {};
};

// The executor's data about a run, as a copy.
struct KnownOfRun {
  RunRow row;
  std::shared_ptr<const Plan> plan;      // null: the executor has a different run
  std::map<std::string, NodeRow> nodes;  // as they are now
  AddedToRun added = {};
};
// Thread: the reactor's.
KnownOfRun known_of(const Executor& executor, const RunRow& run);

// Verdicts and report, written with the end of the run. Empty for runs without acceptance (discover).
Conclusion conclude(RunArchive& archive, const KnownOfRun& run, const pki::KeyPair& key);

struct AcceptanceParts {
  CurrentSpec& spec;
  const Executor& executor;
  Store& store;
  const pki::KeyPair& key;
  // Runs `work` on another thread, then `done` on the reactor's.
  std::function<void(Reactor::Task work, Reactor::Task done)> offload;
  std::function<AddedToRun()> added = {};  // null: nothing
};
// Returns the hooks judge, reservation, follow_up, conclude (on another thread). Parts must outlive them.
ExecutorHooks acceptance_hooks(const AcceptanceParts& parts);

// Returns the report of a run: as it was signed, or, if the run has not ended or was cancelled, made now from
// the journal (then without a digest).
Result<Report> report_of(RunArchive& archive, const KnownOfRun& run);
// not_found if there is none. `run` 0: the newest run.
Result<std::string> signed_report(RunArchive& archive, int64_t run);
// Thread: any.
Result<Report> report_from_signed(const std::string& text);

}  // namespace muster
