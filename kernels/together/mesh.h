// One member's connections to all others: transfers the messages of a call and, if that stalls, determines
// together with the other members which of them is the cause.
//
// All pairs are connected from the beginning, so all others notice at once when a member ends, and a waiting
// member can report to all. A member in trouble (a connection ended, its timeout passed, another member is in
// trouble) sends one statement to all (kernels/together/culprit.h), reads until all others have sent theirs
// or `grace` has passed, and sends its conclusion, the faulty members, to all. The first conclusion that
// arrives is adopted, also by late members. Then the connections are closed; later calls return that error.
// Used by one thread. Owned by the group that was formed; groups split from it use it.
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
  std::string name = {};     // name of the node, for messages
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
  // Reports to the others that this member is done, unless the group is already over.
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<Member>& members() const { return members_; }
  const std::vector<Lost>& lost() const { return lost_; }

  // Used while the group is being formed. `extra`: further descriptors that pump() polls for the caller.
  void add(int rank, Socket socket);
  bool has(int rank) const { return channels_[static_cast<size_t>(rank)] != nullptr; }
  void pump(double until, std::vector<pollfd>& extra);
  bool in_trouble() const;
  // Ends the group; returns the error of this and every later call. `own`: what this member reports besides
  // the connections that ended.
  Error give_up(Statement own);

  // Carries out a transfer; fails at `deadline` (seconds_now()).
  Status transfer(const Transfer& transfer, double deadline);

  // The number for the groups of the next split; agreed on as the largest that any member has.
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
  void take_frame(size_t rank, const Channel::Frame& frame);
  void send_to_all(FrameKind kind, const std::string& body);
  void flush(double until);
  Error error() const;

  const std::vector<Member> members_;
  const int rank_;
  const double grace_;
  std::vector<std::unique_ptr<Channel>> channels_ = {};  // by rank; null: this member, or not connected yet
  Evidence evidence_;
  std::optional<LossReports> verdict_ = {};  // the conclusion that another member has sent
  // State of the current call.
  int to_ = -1, from_ = -1;
  Outgoing out_ = {};
  Incoming in_ = {};
  bool over_ = false;
  std::vector<Lost> lost_ = {};
  uint16_t next_group_ = 1;
};

}  // namespace muster::together
