// What agents report about the storage mounted on their nodes, compared with the spec's sections, and what
// the scheduler reports about the nodes (agent/storage_state.h). Kept in memory: an agent repeats it with its
// next request. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// The scheduler's state of a node, as its agent reported it last. Both false if nothing is known.
struct SchedulerState {
  bool busy = false;  // it has jobs
  bool out = false;   // it takes none: drained, down, failed; not by muster's own re-image
};

class StorageTold {
 public:
  // `text`: of agent/storage_state.h. Anything but a list, or one that is too long, is not kept; empty text
  // (an agent of an older version, a RAM system) removes the node's entry.
  void update(const std::string& node, const std::string& text);

  SchedulerState scheduler(const std::string& node) const;

  // One entry per section of the spec: {name, engine, mount, healthy, size_bytes, used_bytes, nodes,
  // problems}. `healthy`: false if there is a problem, true if there is none and a node reported, else null.
  // size_bytes and used_bytes: of all nodes together if each has its own, else of the one file system; absent
  // if no node reported. nodes: [{node, state: mounted|absent|other|silent|unknown, size_bytes?, used_bytes?,
  // array?, health?}]; other: the mount is not the section's, by type and source. problems: [{node,
  // problem}], for people; of an engine's own report, the first node with it. `silent`: nodes that are silent
  // now; their reports are history.
  Json status(const Spec& spec, const std::function<bool(const std::string& node)>& silent) const;

 private:
  std::map<std::string, Json> told_;
};

}  // namespace muster
