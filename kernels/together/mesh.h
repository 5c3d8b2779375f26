// One member's connections to all others: moves messages of a call, and finds out together with the others
// which of them is the cause when that stops.
//
// All pairs are connected from the beginning: the end of a member reaches all others at once, and one that
// waits can report to all. A member in trouble (a connection ended, its timeout passed, another one is in
// trouble) sends one statement to all (kernels/together/culprit.h), reads until all others have sent theirs
// or `grace` is over, and sends all the members that it names. The first conclusion that arrives holds for
// all: a late member reads it. Then its connections are closed, and every later call returns the same.
// Thread: one. Owned by the group that was formed; groups split from it use it.
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/together/channel.h"
#include "kernels/together/culprit.h"
#include "kernels/together/group.h"

namespace muster::together {

struct Member {
  std::string name = {};     // of the node, as people call it
  std::string address = {};  // numeric; where it listens, and what it connects from
  uint16_t port = 0;
};

// Sends one message, receives one, or both at once.
struct Transfer {
  Tag tag = {};
  int to = -1;  // -1: none
  std::span<const char> out = {};
  int from = -1;
  std::span<char> in = {};
};

class Mesh {
 public:
  // `grace`: seconds to wait for the statements of others.
  Mesh(std::vector<Member> members, int rank, double grace);
  // Says that this member is done, unless the group is over anyway.
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<Member>& members() const { return members_; }
  const std::vector<Lost>& lost() const { return lost_; }

  // While the group forms. `extra`: descriptors of the caller's, watched as well.
  void add(int rank, Socket socket);
  bool has(int rank) const { return channels_[static_cast<size_t>(rank)] != nullptr; }
  void pump(double until, std::vector<pollfd>& extra);
  bool in_trouble() const;
  // The error of this and every later call. `own`: what this member reports in addition to the ends that it
  // saw.
  Error give_up(Statement own);

  // Until `deadline` (seconds_now()).
  Status transfer(const Transfer& transfer, double deadline);

  // A number for groups that are split now; the same for all of them (the largest that any member has).
  uint16_t next_group() const { return next_group_; }
  void next_group(uint16_t at_least) { next_group_ = at_least; }

 private:
  Channel* channel(int rank) { return rank < 0 ? nullptr : channels_[static_cast<size_t>(rank)].get(); }
  bool sends_to(int rank) const;
  bool receives_from(int rank) const;
  bool moved() const;
  Statement waiting(bool expired) const;
  Statement statement(Statement own) const;
  void listen_to_others();
  void read_from(size_t rank);
  void hear(size_t rank, const Channel::Frame& frame);
  void tell_all(FrameKind kind, const std::string& body);
  void flush(double until);
  Error error() const;

  const std::vector<Member> members_;
  const int rank_;
  const double grace_;
  std::vector<std::unique_ptr<Channel>> channels_ = {};  // by rank; null: itself, or not there yet
  Evidence evidence_;
  std::optional<Accusations> verdict_ = {};  // of any member
  // Of the call in work.
  int to_ = -1, from_ = -1;
  Outgoing out_ = {};
  Incoming in_ = {};
  bool over_ = false;
  std::vector<Lost> lost_ = {};
  uint16_t next_group_ = 1;
};

}  // namespace muster::together
