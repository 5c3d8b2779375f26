// ReadyQueue: which nodes of a run must be considered, and what the other nodes wait for.
// A node that was considered and cannot begin waits for one thing: an action of another node, a barrier, or
// capacity in a lane. It is considered again only when that may have happened, so every change of something
// that nodes wait for must be reported to the queue. A superfluous report is harmless; a missing one leaves a
// node waiting for good. Thousands may wait at one barrier for the same member: that is recorded once.
// Nodes are numbered and considered in the order of the plan. No I/O. Thread: the reactor's. Never reads a
// clock.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/run/run_limits.h"

namespace muster {

class ReadyQueue {
 public:
  using Lane = Limits::Lane;
  struct Awaited {  // an action, and the node that it belongs to
    size_t of = 0;
    std::string action;
  };

  explicit ReadyQueue(size_t nodes = 0) : of_(nodes), wants_(nodes) {}

  // The node must be considered, whatever it waits for.
  void add(size_t node);
  void add_all();
  // The node has nothing to begin now: it is not considered, and waits for nothing.
  void drop(size_t node);

  // Sets what a node waits for after it was considered; replaces earlier waits. `member`: the first member of
  // the barrier that is not settled.
  void wait_for(size_t node, Awaited what);
  void wait_for_barrier(size_t node, size_t barrier, Awaited member);
  void wait_for_place(size_t node, Lane lane);

  void succeeded(const Awaited& what);
  // Reports a new state of this node, which may settle any of its actions.
  void changed(size_t node);

  // Returns the next barrier whose member may be settled, with that member; none: no barrier is due.
  struct Due {
    size_t barrier = 0;
    std::string member;
  };
  std::optional<Due> next_barrier();
  // Reports the result for that barrier: it waits for a new member, or its waiting nodes are considered.
  void hold(size_t barrier, Awaited member);
  void open(size_t barrier);

  // Removes and returns the first node from `from` on that must be considered, or waits for capacity that is
  // available.
  std::optional<size_t> next(size_t from, const std::function<bool(Lane)>& has_place);

  bool has(size_t node) const { return ready_.count(node) > 0; }
  bool waits_for_place(size_t node) const { return wants_[node].what == For::place; }
  // Directly or at a barrier; null: none.
  const std::string* awaited(size_t node) const;

 private:
  struct Waiters {
    std::set<size_t> nodes, barriers;
  };
  struct Barrier {
    std::set<size_t> waiting;
    Awaited member;
  };
  enum class For { nothing, action, barrier, place };
  struct Want {
    For what = For::nothing;
    Awaited action = {};
    size_t barrier = 0;
    Lane lane = Lane::free;
  };

  Waiters* waiters_of(const Awaited& what);
  void wake(Waiters waiters);

  std::set<size_t> ready_, due_;                    // nodes, barriers
  std::vector<std::map<std::string, Waiters>> of_;  // by the awaited action's node, then by the action
  std::map<size_t, Barrier> barriers_;
  std::map<Lane, std::set<size_t>> places_;
  std::vector<Want> wants_;  // by node
};

}  // namespace muster
