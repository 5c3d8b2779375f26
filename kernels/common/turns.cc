#include "kernels/common/turns.h"

#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "base/words.h"
#include "kernels/common/kernels.h"

namespace muster::kernels {
namespace {

// Values of pings that request a turn: ordinary pings are numbered from 0. A granted one returns unchanged,
// as every ping does from a server of an earlier version.
constexpr uint64_t kRequest = 0x6d75737465720000;
constexpr uint64_t kBusy = kRequest + 0xff;

constexpr uint64_t request(Turn turn) { return kRequest + static_cast<uint64_t>(turn); }

Result<bool> granted(Connection& server, Turn turn) {
  TRY_(server.send(kPing, request(turn)));
  TRY(const Header reply, server.receive(kPong));
  return reply.value == request(turn);
}

// At this node's own server, which may have ended: then others cannot reach this node either.
bool granted_here(Connection* own, Turn turn) { return !own || granted(*own, turn).value_or(true); }

// At both ends, or at neither.
Result<bool> granted_at_both(Connection* own, Connection& other, Turn turn) {
  if (!granted_here(own, turn)) return false;
  TRY(const bool there, granted(other, turn));
  if (!there) granted_here(own, Turn::none);
  return there;
}

}  // namespace

constexpr Words<Turn, 3> kTurns = {{{Turn::none, "none"}, {Turn::shared, "shared"}, {Turn::alone, "alone"}}};

std::string_view turn_name(Turn turn) { return word_of(kTurns, turn); }

bool Turns::take(Turn turn) {
  const std::lock_guard lock(mutex_);
  if (turn == Turn::none) return true;
  if (alone_ || (turn == Turn::alone && shared_ > 0)) return false;
  if (turn == Turn::alone)
    alone_ = true;
  else
    ++shared_;
  return true;
}

void Turns::leave(Turn turn) {
  const std::lock_guard lock(mutex_);
  if (turn == Turn::alone) alone_ = false;
  if (turn == Turn::shared) --shared_;
}

uint64_t SessionTurn::reply_to(uint64_t value) {
  for (const Turn turn : {Turn::none, Turn::shared, Turn::alone}) {
    if (value != request(turn)) continue;
    turns_.leave(std::exchange(held_, Turn::none));
    if (!turns_.take(turn)) return kBusy;
    held_ = turn;
  }
  return value;
}

Result<Turn> take_turn(Connection* own, Connection& other, const WantedTurn& wanted) {
  if (wanted.turn == Turn::none) return Turn::none;
  // Both ends may try at the same moment, and refuse each other: they try again at different times.
  // Containers of one image may have equal process ids.
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::minstd_rand random(static_cast<unsigned>(::getpid()) ^ static_cast<unsigned>(now));
  std::uniform_int_distribution<int> pause_ms(50, 350);
  const double until = seconds_now() + wanted.seconds;
  while (true) {
    TRY(const bool both, granted_at_both(own, other, wanted.turn));
    if (both) return wanted.turn;
    if (seconds_now() >= until) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms(random)));
  }
  if (wanted.turn == Turn::shared) return Turn::none;
  return take_turn(own, other, {Turn::shared, wanted.seconds});
}

}  // namespace muster::kernels
