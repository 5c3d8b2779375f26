#include "kernels/together/channel.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muster::together {
namespace {

constexpr uint32_t kMagic = 0x4d55544d;
constexpr size_t kLongestBody = 64 << 10;  // of a statement: 8 bytes for each member

}  // namespace

Channel::Channel(Socket socket) : socket_(std::move(socket)) { tune(socket_); }

// --- writing

void Channel::say(FrameKind kind, const std::string& body) {
  const Head head{kMagic, kind, 0, 0, static_cast<uint32_t>(body.size())};
  said_.append(reinterpret_cast<const char*>(&head), sizeof head);
  said_ += body;
}

bool Channel::wants_to_write(const Outgoing* out) const {
  return !broken_ && (in_chunk() || !said_.empty() || (out && !out->rest.empty()));
}

void Channel::write(Outgoing* out) {
  bool more = true;
  while (more && wants_to_write(out)) {
    if (!in_chunk() && said_.empty()) begin_chunk(*out);
    more = in_chunk() ? write_chunk() : write_said();
  }
}

void Channel::begin_chunk(Outgoing& out) {
  chunk_left_ = std::min(out.rest.size(), kChunk);
  chunk_ = out.rest.data();
  out.rest = out.rest.subspan(chunk_left_);
  head_out_ = {kMagic, FrameKind::data, out.tag.group, out.tag.call, static_cast<uint32_t>(chunk_left_)};
  head_sent_ = 0;
}

// Returns false if the socket accepts no more data now.
bool Channel::write_chunk() {
  iovec parts[2] = {{reinterpret_cast<char*>(&head_out_) + head_sent_, sizeof(Head) - head_sent_},
                    {const_cast<char*>(chunk_), chunk_left_}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  const ssize_t n = ::sendmsg(socket_.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) {
    broken_ = errno != EAGAIN && errno != EINTR;
    return false;
  }
  const size_t of_head = std::min(static_cast<size_t>(n), sizeof(Head) - head_sent_);
  const size_t of_body = static_cast<size_t>(n) - of_head;
  head_sent_ += of_head;
  chunk_ += of_body;
  chunk_left_ -= of_body;
  return true;
}

bool Channel::write_said() {
  const ssize_t n = ::send(socket_.fd(), said_.data(), said_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) {
    broken_ = errno != EAGAIN && errno != EINTR;
    return false;
  }
  said_.erase(0, static_cast<size_t>(n));
  return true;
}

void Channel::finish() {
  broken_ = true;
  ::shutdown(socket_.fd(), SHUT_WR);
}

// --- reading

bool Channel::full() const { return !discard_ && kept_bytes_ > limit_; }

void Channel::discard() {
  discard_ = true;
  nowhere_.resize(kChunk);
  if (into_ == Into::wanted || into_ == Into::kept) into_ = Into::nowhere;
  kept_.clear();
  kept_bytes_ = 0;
}

void Channel::read(Incoming* in) {
  bool more = true;
  while (more && !ended_ && !astray_ && !full()) {
    if (in) serve(*in);
    more = head_got_ < sizeof(Head) ? read_head(in) : read_body();
  }
  if (in) serve(*in);
}

// Copies data that arrived before it was requested.
void Channel::serve(Incoming& in) {
  while (!in.rest.empty() && !kept_.empty() && kept_.front().got == kept_.front().bytes.size()) {
    const Kept& first = kept_.front();
    if (first.tag != in.tag || first.bytes.size() > in.rest.size()) {
      astray_ = true;
      return;
    }
    std::memcpy(in.rest.data(), first.bytes.data(), first.bytes.size());
    in.rest = in.rest.subspan(first.bytes.size());
    kept_bytes_ -= first.bytes.size();
    kept_.pop_front();
  }
}

// Returns 0 if no data is available now, or the connection has ended.
size_t Channel::receive(char* to, size_t length) {
  const ssize_t n = ::recv(socket_.fd(), to, length, MSG_DONTWAIT);
  if (n > 0) return static_cast<size_t>(n);
  if (n == 0 || (errno != EAGAIN && errno != EINTR)) ended_ = true;
  return 0;
}

bool Channel::read_head(Incoming* in) {
  const size_t n = receive(reinterpret_cast<char*>(&head_in_) + head_got_, sizeof(Head) - head_got_);
  head_got_ += n;
  if (head_got_ == sizeof(Head)) begin_body(in);
  return n > 0;
}

void Channel::begin_body(Incoming* in) {
  const bool data = head_in_.kind == FrameKind::data;
  if (head_in_.magic != kMagic || head_in_.length > (data ? kChunk : kLongestBody) ||
      head_in_.kind < FrameKind::data || head_in_.kind > FrameKind::bye) {
    astray_ = true;
    return;
  }
  body_left_ = head_in_.length;
  const Tag tag{head_in_.group, head_in_.call};
  if (!data) {
    into_ = Into::frame;
    frames_.push_back({head_in_.kind, std::string(body_left_, '\0')});
    to_ = frames_.back().body.data();
  } else if (discard_) {
    into_ = Into::nowhere;
  } else if (in && !in->rest.empty() && kept_.empty()) {
    into_ = Into::wanted;
    if (tag != in->tag || body_left_ > in->rest.size()) {
      astray_ = true;
      body_left_ = 0;
      return;
    }
    to_ = in->rest.data();
    in->rest = in->rest.subspan(body_left_);
  } else {
    into_ = Into::kept;
    kept_.push_back({tag, std::vector<char>(body_left_), 0});
    kept_bytes_ += body_left_;
    to_ = kept_.back().bytes.data();
  }
  if (body_left_ == 0) head_got_ = 0;
}

bool Channel::read_body() {
  const size_t n = receive(into_ == Into::nowhere ? nowhere_.data() : to_, body_left_);
  if (into_ == Into::kept) kept_.back().got += n;
  if (into_ != Into::nowhere) to_ += n;
  body_left_ -= n;
  if (body_left_ == 0) head_got_ = 0;
  return n > 0;
}

std::vector<Channel::Frame> Channel::take_frames() {
  // The last frame may still be arriving.
  const bool open = into_ == Into::frame && body_left_ > 0;
  std::vector<Frame> out;
  while (frames_.size() > (open ? 1U : 0U)) {
    out.push_back(std::move(frames_.front()));
    frames_.erase(frames_.begin());
  }
  if (open) to_ = frames_.back().body.data() + (frames_.back().body.size() - body_left_);
  return out;
}

}  // namespace muster::together
