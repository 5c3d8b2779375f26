// The nodes and the controller as shown to operators: status, and the reason for a node's state. Merged from
// the spec, the stored rows and the executor. Thread: the reactor's, which it may block for 100 ms at 1,000
// nodes (measured by bench/scale.cc).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "controller/causes/cause.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/image/service/image_service.h"
#include "controller/link/storage_reports.h"
#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster {

// True if an agent belongs to the node's system: it was installed, or adopted as it is, without an image.
bool has_agent(const NodeRow& row);

class NodesView {
 public:
  struct Parts {
    bool lab = false;
    const Reactor& reactor;
    Store& store;
    CurrentSpec& spec;
    const Executor& executor;
    const StorageReports& storage;
    const std::map<std::string, std::string>& problems;
  };
  explicit NodesView(const Parts& parts) : parts_(parts) {}

  // Returns the nodes of the spec in its order, then those that are only in the store.
  std::vector<std::string> names() const;
  bool contains(const NodeName& node) const;
  // Since when the node has been silent; 0: it is not, or it was never installed and has no agent.
  TimeMs silent_since(const NodeRow& row) const;
  // What is wrong with the controller itself, its spec and its store: topic -> text.
  std::map<std::string, std::string> problems() const;
  // {name, state, reason, held_by, held_caller, held_since, ..., declared, role, image, address, ...};
  // "busy": true while the scheduler has jobs on it, or may have.
  Json node(const NodeName& name) const;
  // {version, lab, time, run, cluster, spec_revision, simulated, storage, problems, nodes: [node() and its
  // progress]}
  Json status() const;
  // Returns Executor::why() with silent_since() of this class, `cause` (null: none), what to do about it in
  // `next`, and, in `text`, the same as readable text.
  Json why(const NodeName& node, const ImageService& images, const Cause* cause = nullptr) const;

 private:
  Json run() const;
  Parts parts_;
};

}  // namespace muster
