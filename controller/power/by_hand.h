// ByHand: what people are asked to do at machines that nothing else can switch (power driver `manual`).
//
// One task per node, in memory: a run that goes on after a restart of the controller asks again. A task ends
// when its effect is seen, when the operator says that it is done (`muster power done`), or as `cancelled`
// when nobody wants it any more or another takes its place. It never ends by time: whoever asks has a
// deadline. What is only silence is no effect: that a machine is off, somebody has to say.
// Thread: the reactor's. `done` never runs inside a call.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/reactor.h"
#include "base/result.h"

namespace muster {

class ByHand {
 public:
  enum class Task { netboot, on, off };
  using Done = std::function<void(Status)>;
  explicit ByHand(Reactor& reactor) : reactor_(reactor) {}

  void ask(const std::string& node, Task task, Done done);
  void forget(const std::string& node);
  std::optional<Task> asked(const std::string& node) const;

  // The machine asked the boot server for its RAM system: a netboot was done, and begins.
  void saw_netboot(const std::string& node);
  // Its agent spoke: it is on.
  void saw_agent(const std::string& node);
  // The operator's word. conflict: nothing is asked of anybody there.
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

// "switch it off and on, and have it boot from the network"
std::string_view to_string(ByHand::Task task);

}  // namespace muster
