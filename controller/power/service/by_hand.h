// ByHand: manual tasks of operators at machines that nothing else can switch (power driver `manual`).
//
// One task per node, in memory: a run that continues after a restart of the controller creates it again. A
// task ends when its effect is observed, when the operator reports it done (`muster power done`), or as
// `cancelled` when it is no longer needed or is replaced by a new task. It has no timeout: the caller has a
// deadline. A silent agent does not prove that a machine is off: the operator must report that.
//
// Thread: the reactor's. `done` is never called inside one of these functions.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "sys/reactor.h"

namespace muster {

class ByHand {
 public:
  enum class Task { netboot, on, off };
  using Done = std::function<void(Status)>;
  explicit ByHand(Reactor& reactor) : reactor_(reactor) {}

  void request(const std::string& node, Task task, Done done);
  void forget(const std::string& node);
  std::optional<Task> requested(const std::string& node) const;

  // To be called when the machine requested its RAM system: a pending netboot task is done.
  void saw_netboot(const std::string& node);
  // To be called when the node's agent reported: the machine is on.
  void saw_agent(const std::string& node);
  // To be called when the operator reports the task done. conflict: no task is pending for this node.
  Result<Task> said_done(const std::string& node);

 private:
  struct Open {
    Task task;
    Done done;
  };
  void end(const std::string& node, Status how);

  Reactor& reactor_;
  std::map<std::string, Open> open_;
};

// "restart it and boot it from the network"
std::string_view to_string(ByHand::Task task);

}  // namespace muster
