// What Prometheus can read of the controller: values, and their series as text. docs/metrics.md lists the
// series; a series whose value is unknown is left out, one of several states has all of them, 0 or 1. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/time.h"
#include "controller/causes/cause.h"
#include "controller/nodes/states.h"
#include "controller/ports/store.h"
#include "controller/rollout/rollout_record.h"
#include "controller/run/progress.h"

namespace muster {

struct NodeMetrics {
  NodeName name;
  NodeState state = NodeState::unknown;
  DurationMs silent = 0;        // 0: it reports, or has no agent
  TimeMs certificate_ends = 0;  // 0: its agent showed none to this process
};
struct ImageMetrics {
  std::string name;
  TimeMs built = 0;     // 0: never
  bool failed = false;  // its last build did, since this process began
};
// Of the notices to receivers (docs/metrics.md).
struct NoticeMetrics {
  int64_t undelivered = 0, lost = 0;         // lost: given up
  std::map<std::string, bool> failing = {};  // receiver -> notices::is_failing()
};
struct ProcessMetrics {
  TimeMs started = 0;
  DurationMs cpu = 0;
  int64_t resident_bytes = 0, open_files = 0, most_open_files = 0;
};

struct ControllerMetrics {
  std::string version;
  ProcessMetrics process = {};
  std::vector<NodeMetrics> nodes = {};
  int64_t undeclared = 0;  // machines that registered while discovery is on
  bool run_active = false;
  std::optional<RunRow> last_run = {};  // includes the active one
  std::vector<AtWork> at_work = {};
  const rollout::Record* rollout = nullptr;  // null: nothing was approved yet
  std::vector<ImageMetrics> images = {};
  std::map<std::string, TimeMs> certificates = {};   // of the controller: name -> end
  std::map<std::string, std::string> problems = {};  // topic -> text
  std::map<CauseKind, int64_t> causes = {};          // how many; a kind that is absent has none
  NoticeMetrics notices = {};
};

std::string exposition_of(const ControllerMetrics& metrics);

}  // namespace muster
