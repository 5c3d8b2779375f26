// What agents report about the storage mounted on their nodes, which is compared with the spec's sections,
// and about the nodes' state in the scheduler (agent/storage/storage_state.h). Kept in memory only: agents
// repeat it with their next request. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// A node's state in the scheduler, as its agent last reported it. All members are false or empty if it
// reported none.
struct SchedulerState {
  bool busy = false;    // it has jobs, or it is unknown whether it has
  bool out = false;     // it takes no jobs, unless it is drained for muster's own re-image
  bool paused = false;  // it is drained for muster's own re-image, and takes jobs when it is resumed
  // Of a node that takes no jobs: its state, and who drained it, since when and why. Text of a node.
  std::string words = {};
};

class StorageReports {
 public:
  // Stores a node's report. `text`: see agent/storage/storage_state.h. Empty text (from an agent of an older
  // version, or a RAM system), text that is not a list, and text that is too long remove the node's entry.
  void update(const std::string& node, const std::string& text);

  SchedulerState scheduler(const std::string& node) const;

  // Returns one entry per section of the spec: {name, engine, mount, healthy, size_bytes, used_bytes, nodes,
  // problems}. `healthy`: false if there is a problem, true if there is none and a node reported, else null.
  // size_bytes and used_bytes: sums over the nodes if each has a file system of its own, else those of the
  // shared one; absent if no node reported. nodes: [{node, state: mounted|absent|other|silent|unknown,
  // cut?, size_bytes?, used_bytes?, array?, health?}]; other: type and source of the mount are not the
  // section's; cut: it reports more mounts than its report has room for.
  // problems: [{node, problem, of_engine?}], text for operators; a problem that the engine itself reports
  // (of_engine: true) is listed once, for the first node. `silent` returns true for nodes that are silent
  // now, whose reports are outdated.
  Json status(const Spec& spec, const std::function<bool(const std::string& node)>& silent) const;

 private:
  std::map<std::string, Json> reports_;
};

}  // namespace muster
