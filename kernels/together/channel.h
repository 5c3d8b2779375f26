// The connection to one other member of a group: frames over TCP, with non-blocking reads and writes.
//
// The data of a call is sent in frames of at most kChunk bytes, each tagged with its call, so that a long
// message does not delay a statement about a lost member. Data that arrives before its call is buffered.
// Used by one thread. Owned by the mesh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

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

}  // namespace muster::together
