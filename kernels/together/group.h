// The interface through which loads use a group of members, each a process on its own node. Members are
// numbered (ranks); every member makes the same calls in the same order.
//
// Failure: no call blocks forever. It ends within the time set by within(), and earlier if a member is found
// to be dead. Then lost() names the members that caused it, the same ones on every member that can still be
// reached, and this and every later call returns that error: the group is over. Codes:
//   failed       a member died, or left before the others were done
//   timeout      a member did not respond in time
//   unavailable  a member never connected
//   denied       a member belongs to another run
//   conflict     two members made different calls
//   invalid      the call is not valid (a rank that does not exist); nothing was sent, and the group
//                continues
// Numbers are sent in their memory representation, so all members must have the same architecture.
// Used by one thread; a group and the groups split from it belong to the same thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::together {

enum class Loss : uint16_t {
  died,     // its connection broke
  silent,   // dead or alive, it did not respond in time
  absent,   // no connection to it was established
  refused,  // its token differs: that of another run, or an unrelated program at its address
  left,     // it left the group before the others were done
  astray,   // it is in a different call, or uses a different protocol
};
std::string_view to_string(Loss loss);
Code code_of(Loss loss);

struct Lost {
  int rank = 0;  // among all members, also if the group was split from another
  std::string name = {};
  Loss kind = Loss::died;
};

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name(int rank) const = 0;

  // From now on every call ends within this many seconds of its start, including the time until the other
  // members make the same call. Also applies to groups split from it, until within() is called on them.
  virtual void within(double seconds) = 0;
  // The members that are lost, by rank; empty while the group works.
  virtual const std::vector<Lost>& lost() const = 0;

  // In-place reductions, element by element over all members; all get the same bits and pass the same count.
  virtual Status sum(std::span<double> values) = 0;
  virtual Status sum(std::span<float> values) = 0;
  virtual Status min(std::span<uint64_t> values) = 0;
  virtual Status max(std::span<double> values) = 0;

  // Copies `bytes` of rank `from` to all members; all pass the same length.
  virtual Status broadcast(std::span<char> bytes, int from) = 0;
  // Returns every member's `mine`, of any length, by rank; an empty list on all members but `to`.
  virtual Result<std::vector<std::string>> gather(const std::string& mine, int to) = 0;
  // As gather(), but returns the list on every member.
  virtual Result<std::vector<std::string>> allgather(const std::string& mine) = 0;

  // send() returns once `bytes` may be reused, perhaps before they have arrived. Messages between two members
  // arrive in order, and must be received with the lengths with which they were sent.
  virtual Status send(std::span<const char> bytes, int to) = 0;
  virtual Status receive(std::span<char> bytes, int from) = 0;
  // Returns when all members have made the call.
  virtual Status barrier() = 0;

  // Members with the same colour (0 or more) form a new group, in the order of their ranks; null for members
  // with a negative colour. All members must call it. This group stays usable, and must outlive the new one.
  virtual Result<std::unique_ptr<Group>> split(int colour) = 0;
};

// Returns numbers as bytes, for broadcast(), send() and receive().
template <typename T>
std::span<char> bytes_of(std::span<T> values) {
  return {reinterpret_cast<char*>(values.data()), values.size_bytes()};
}
template <typename T>
std::span<const char> bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace muster::together
