// The connection to one other member: frames over TCP, read and written as far as they go without waiting.
//
// Data of a call travels in frames of at most kChunk bytes, each with the call it belongs to, so that a
// statement about a lost member need not wait behind a long message. What arrives before it is requested is
// kept. Thread: one. Owned by the mesh.
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

// Which call of which group: both ends must be in the same one.
struct Tag {
  uint16_t group = 0;
  uint32_t call = 0;
  bool operator==(const Tag&) const = default;
};

// One message of a call, as far as it is still to be sent or to arrive.
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
  // Statements, verdicts, bye: sent before further data.
  void say(FrameKind kind, const std::string& body);
  // As far as the other end takes it. `out` may be null; its bytes must stay until flushed().
  void write(Outgoing* out);
  bool wants_to_write(const Outgoing* out) const;
  // Nothing is left of what was begun or queued: the system has it, or it can never be sent.
  bool flushed() const { return broken_ || (said_.empty() && !in_chunk()); }

  // As much as is there; into `in` (may be null) what belongs there, and from what was kept. All of it is
  // there when `in` has no rest and nothing is arriving().
  void read(Incoming* in);
  bool arriving() const { return into_ == Into::wanted && body_left_ > 0; }
  // So much is kept that no more is read for now.
  bool full() const;
  // It has ended: the system holds what is left of it.
  void keep_all() { limit_ = SIZE_MAX; }
  // From here on what arrives as data is dropped, and no more is sent of what has not begun.
  void discard();
  // Nothing more will be written.
  void finish();

  struct Frame {
    FrameKind kind = FrameKind::bye;
    std::string body = {};
  };
  std::vector<Frame> take_frames();
  bool ended() const { return ended_; }
  // It sent data of another call, or something else entirely.
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
  // Writing: the frame in work, and what waits.
  Head head_out_ = {};
  size_t head_sent_ = sizeof(Head), chunk_left_ = 0;
  const char* chunk_ = nullptr;
  std::string said_ = {};
  // Reading: the frame in work, and where its body goes.
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
