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

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/together/culprit.h"
#include "kernels/together/group.h"
#include "kernels/together/socket.h"

namespace muster::together {

constexpr size_t kChunk = 256 << 10;

enum class FrameKind : uint16_t { data = 1, statement, verdict, bye };

// Identifies a call within a group: both ends of a transfer must be in the same call.
struct Tag {
  uint16_t group = 0;
  uint32_t call = 0;
  bool operator==(const Tag&) const = default;
};

// The rest of one message of a call that is still to be sent or received.
struct Outgoing {
  std::span<const char> rest = {};
  Tag tag = {};
};
struct Incoming {
  std::span<char> rest = {};
  Tag tag = {};
};

// The connection to one other member: frames over TCP, with non-blocking reads and writes. The data of a call
// is sent in frames of at most kChunk bytes, each tagged with its call, so that a long message does not delay
// a statement about a lost member. Data that arrives before its call is buffered.
class Channel {
 public:
  explicit Channel(Socket socket);

  int fd() const { return socket_.fd(); }
  // Queues a control frame (statement, verdict, bye), which is sent before any further data.
  void say(FrameKind kind, const std::string& body);
  // Writes as much as the socket accepts. `out` may be null; its bytes must stay valid until flushed().
  void write(Outgoing* out);
  bool wants_to_write(const Outgoing* out) const;
  // True if no partly sent or queued frame remains: the kernel has all of them, or the connection is broken.
  bool flushed() const { return broken_ || (said_.empty() && !in_chunk()); }

  // Reads what has arrived. Data of the call of `in` (may be null) goes into `in`, buffered data first; the
  // message is complete when `in` has no rest and arriving() is false.
  void read(Incoming* in);
  bool arriving() const { return into_ == Into::wanted && body_left_ > 0; }
  // True if the buffer limit is reached, so that nothing is read for now.
  bool full() const;
  // Lifts the buffer limit, for a connection that has ended: only a bounded amount can still arrive.
  void keep_all() { limit_ = SIZE_MAX; }
  // From now on, incoming data is dropped and no new data frame is begun.
  void discard();
  // Shuts down the sending side: nothing more will be written.
  void finish();

  struct Frame {
    FrameKind kind = FrameKind::bye;
    std::string body = {};
  };
  std::vector<Frame> take_frames();
  bool ended() const { return ended_; }
  // True if the other end sent data of a different call, or invalid frames.
  bool astray() const { return astray_; }

 private:
  struct Head {
    uint32_t magic;
    FrameKind kind;
    uint16_t group;
    uint32_t call, length;
  };
  static_assert(sizeof(Head) == 16);
  struct Kept {
    Tag tag = {};
    std::vector<char> bytes = {};
    size_t got = 0;  // arrived
  };

  bool in_chunk() const { return head_sent_ < sizeof(Head) || chunk_left_ > 0; }
  void begin_chunk(Outgoing& out);
  bool write_chunk();
  bool write_said();
  void serve(Incoming& in);
  bool read_head(Incoming* in);
  bool read_body();
  void begin_body(Incoming* in);
  size_t receive(char* to, size_t length);

  Socket socket_;
  bool ended_ = false, broken_ = false, astray_ = false, discard_ = false;
  // Writing: the current frame, and queued control frames.
  Head head_out_ = {};
  size_t head_sent_ = sizeof(Head), chunk_left_ = 0;
  const char* chunk_ = nullptr;
  std::string said_ = {};
  // Reading: the current frame, and the destination of its body.
  enum class Into { wanted, kept, frame, nowhere };
  Head head_in_ = {};
  size_t head_got_ = 0, body_left_ = 0;
  Into into_ = Into::frame;
  char* to_ = nullptr;
  std::deque<Kept> kept_ = {};
  size_t kept_bytes_ = 0, limit_ = size_t{64} << 20;
  std::vector<Frame> frames_ = {};
  std::vector<char> nowhere_ = {};
};

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
