// What agents say of the storage that is mounted on their nodes, held against the spec's sections, and what
// the scheduler says of the nodes (agent/storage_state.h). Kept in memory: an agent says it again with its
// next request. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// What the scheduler says of a node, as its agent reported it last. Both false where nothing is known.
struct SchedulersWord {
  bool busy = false;  // it has jobs
  bool out = false;   // it takes none: drained, down, failed; not by muster's own re-image
};

class StorageTold {
 public:
  // `text`: of agent/storage_state.h. What is no list, or too long to be one, is not kept; empty text (an
  // agent of an older version, a RAM system) forgets.
  void heard(const std::string& node, const std::string& text);

  SchedulersWord scheduler(const std::string& node) const;

  // One entry per section of the spec: {name, engine, mount, healthy, size_bytes, used_bytes, nodes,
  // problems}. `healthy`: false where something is wrong, true where nothing is and somebody told, else null.
  // size_bytes and used_bytes: of all nodes together where each has its own, else of the one file system;
  // absent when nobody told. nodes: [{node, state: mounted|absent|other|silent|unknown, size_bytes?,
  // used_bytes?, array?, health?}]; other: what is mounted is not the section's, by type and source.
  // problems: [{node, problem}], for people; of what an engine says of itself, the first node that says so.
  // `silent`: nodes that are not heard now; what they said is history.
  Json status(const Spec& spec, const std::function<bool(const std::string& node)>& silent) const;

 private:
  std::map<std::string, Json> told_;
};

}  // namespace muster
