// Several nodes that measure together: what their loads need of a group of members, each a process on a node
// of its own. Members are numbered (ranks); every member makes the same calls in the same order.
//
// Failure: no call waits for ever. It ends within the time given by within(), and earlier when a member is
// seen to be dead. Then lost() says which members are the reason, the same ones on every member that can
// still be reached, and this and every later call returns that error: the group is over. Codes:
//   failed       a member died, or left before the others were done
//   timeout      a member did not respond in time
//   unavailable  a member never came
//   denied       a member belongs to another run
//   conflict     two members are not in the same call
//   invalid      the call is not valid (a rank that does not exist); nothing was sent, and the group
//                continues
// Numbers: members are of one architecture; what is sent is their memory.
// Thread: one; a group and those split from it belong to the same thread.
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
  silent,   // alive or not, it did not do its part in time
  absent,   // no connection to it was established
  refused,  // its token differs: that of another run, or an unrelated program at its address
  left,     // it ended the group by itself
  astray,   // it is in another call, or speaks another protocol
};
std::string_view to_string(Loss loss);
Code code_of(Loss loss);

struct Lost {
  int rank = 0;  // among all members, also where a group was split
  std::string name = {};
  Loss kind = Loss::died;
};

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name(int rank) const = 0;

  // From now on every call ends within this many seconds of its start. It includes the time that other
  // members take before they make the same call. Of a split group too, until it is called there.
  virtual void within(double seconds) = 0;
  // Empty while all is well; by rank.
  virtual const std::vector<Lost>& lost() const = 0;

  // In place, element by element over all members; the same bits on each. All pass the same number.
  virtual Status sum(std::span<double> values) = 0;
  virtual Status sum(std::span<float> values) = 0;
  virtual Status min(std::span<uint64_t> values) = 0;
  virtual Status max(std::span<double> values) = 0;

  // `bytes` of `from` to all; all pass the same length.
  virtual Status broadcast(std::span<char> bytes, int from) = 0;
  // What each member gave, of any length, by rank; empty on all but `to`.
  virtual Result<std::vector<std::string>> gather(const std::string& mine, int to) = 0;
  // The same on every member.
  virtual Result<std::vector<std::string>> allgather(const std::string& mine) = 0;

  // Returns when the bytes may be changed again, which need not mean that they have arrived. What one member
  // sends another arrives in order; the receiver asks for the same lengths.
  virtual Status send(std::span<const char> bytes, int to) = 0;
  virtual Status receive(std::span<char> bytes, int from) = 0;
  // Returns when all members have made the call.
  virtual Status barrier() = 0;

  // Members with the same colour (0 or more) become a group, in the order of their ranks. Null for those with
  // a negative one. All members of this group make the call. This group must outlive it, and remains usable.
  virtual Result<std::unique_ptr<Group>> split(int colour) = 0;
};

// The memory of numbers, for broadcast(), send() and receive().
template <typename T>
std::span<char> bytes_of(std::span<T> values) {
  return {reinterpret_cast<char*>(values.data()), values.size_bytes()};
}
template <typename T>
std::span<const char> bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace muster::together
