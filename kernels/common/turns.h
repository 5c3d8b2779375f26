// Which measurements of links run at a node at the same time. A link that looked slow is measured again alone
// at both ends: beside a third node it would reach half its rate, and a healthy link would be reported.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "base/result.h"
#include "kernels/common/connection.h"

namespace muster::kernels {

constexpr uint32_t kPing = 1, kPong = 2;  // frame types of a link

enum class Turn {
  none,    // not counted: other measurements may run beside it, even those that are alone
  shared,  // beside others
  alone,
};

std::string_view turn_name(Turn turn);

// Of one node. Thread: any.
class Turns {
 public:
  // False: another measurement is alone, or, for Turn::alone, any other is under way.
  bool take(Turn turn);
  void leave(Turn turn);

 private:
  std::mutex mutex_;
  int shared_ = 0;
  bool alone_ = false;
};

// The turn of one session of a server, given back when the session ends.
class SessionTurn {
 public:
  explicit SessionTurn(Turns& turns) : turns_(turns) {}
  ~SessionTurn() { turns_.leave(held_); }
  SessionTurn(const SessionTurn&) = delete;
  SessionTurn& operator=(const SessionTurn&) = delete;
  // Returns the value of the reply to a ping with this value. An ordinary ping requests no turn.
  uint64_t reply_to(uint64_t value);

 private:
  Turns& turns_;
  Turn held_ = Turn::none;
};

struct WantedTurn {
  Turn turn = Turn::none;
  double seconds = 0;  // how long to wait for it
};

// Takes the turn at both ends of a link. `own`: a session with the server of this node, null if it has none.
// Returns the turn that was granted: `shared` if the time for `alone` ran out, `none` if it ran out for
// `shared` as well. Errors: those of `other`. A server that has no turns (an earlier version) grants each
// request.
Result<Turn> take_turn(Connection* own, Connection& other, const WantedTurn& wanted);

}  // namespace muster::kernels
