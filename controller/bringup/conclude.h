// The end of a run: the final verdict on every node, and the report, signed. What they are made from is read
// on the reactor's thread; made, judged and signed they are on any, since of a large cluster that takes long.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/pki.h"
#include "base/reactor.h"
#include "base/result.h"
#include "controller/bringup/current_spec.h"
#include "controller/bringup/run_view.h"
#include "controller/report/report.h"
#include "controller/run/executor.h"
#include "controller/store/store.h"

namespace muster {

// Everything that a report is made from. A value.
struct ReportSources {
  RunSources run;
  SpecRow spec;
  std::map<std::string, NodeRow> nodes;
  std::vector<ReportRow> before;             // of runs before this one, newest first
  std::optional<RunSources> discovery = {};  // the run before it, of the same bring-up
};
// Thread: the reactor's.
Result<ReportSources> read_for_report(Store& store, const Executor& executor, const RunRow& run);

// Verdicts and report as rows to be written with the end of the run. Nothing for runs that do not accept
// (discover). Thread: any.
Conclusion conclude(const RunRow& run, Result<ReportSources> sources, const pki::KeyPair& key);
// Both at once. Thread: the reactor's.
Conclusion conclude(Store& store, const Executor& executor, const pki::KeyPair& key, const RunRow& run);

struct AcceptanceParts {
  CurrentSpec& spec;
  const Executor& executor;
  Store& store;
  const pki::KeyPair& key;
  // `work` on another thread, then `done` on the reactor's.
  std::function<void(Reactor::Task work, Reactor::Task done)> offload;
};
// judge, reservation, follow_up and conclude, which does all but the reading on another thread. The parts
// must outlive them.
ExecutorHooks acceptance_hooks(const AcceptanceParts& parts);

// The report of a run (0: the newest), settled: as it was signed, or made now from the journal (then without
// a digest) when the run has not ended or was cancelled. Thread: the reactor's.
Result<Report> report_of(Store& store, const Executor& executor, int64_t run);
// The signed text; not_found for a run without one.
Result<std::string> signed_report(Store& store, int64_t run);
// What such a text says. Thread: any.
Result<Report> report_from_signed(const std::string& text);

}  // namespace muster
