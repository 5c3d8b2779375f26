#include "kernels/together/mesh.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/words.h"
#include "kernels/common/kernels.h"

namespace muster::together {
namespace {

constexpr uint32_t kMagic = 0x4d55544d;
constexpr size_t kLongestBody = 64 << 10;  // of a statement: 8 bytes for each member

using kernels::seconds_now;

constexpr double kLastWords = 1;  // seconds for sending what is left when the group ends

int milliseconds_until(double until) {
  return static_cast<int>(std::clamp((until - seconds_now()) * 1000 + 1, 0.0, 60e3));
}

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

Mesh::Mesh(std::vector<Member> members, int rank, double grace)
    : members_(std::move(members)),
      rank_(rank),
      grace_(grace),
      channels_(members_.size()),
      evidence_(rank, members_.size()) {}

Mesh::~Mesh() {
  if (over_) return;
  send_to_all(FrameKind::bye, "");
  flush(seconds_now() + kLastWords);
  // Closing a socket with unread data resets the connection, and the last frames sent would be lost.
  for (const auto& channel : channels_)
    if (channel) channel->discard(), channel->read(nullptr), channel->finish();
}

void Mesh::add(int rank, Socket socket) {
  channels_[static_cast<size_t>(rank)] = std::make_unique<Channel>(std::move(socket));
}

// --- one round

void Mesh::pump(double until, std::vector<pollfd>& extra) {
  std::vector<pollfd> watched = extra;
  std::vector<size_t> ranks;
  for (size_t r = 0; r < channels_.size(); ++r) {
    Channel* one = channels_[r].get();
    if (!one || one->ended() || one->astray()) continue;
    const bool writes = one->wants_to_write(static_cast<int>(r) == to_ ? &out_ : nullptr);
    const int events = POLLRDHUP | (one->full() ? 0 : POLLIN) | (writes ? POLLOUT : 0);
    watched.push_back({one->fd(), static_cast<short>(events), 0});
    ranks.push_back(r);
  }
  ::poll(watched.data(), watched.size(), milliseconds_until(until));
  std::copy_n(watched.begin(), extra.size(), extra.begin());
  for (size_t i = 0; i < ranks.size(); ++i) {
    const short happened = watched[extra.size() + i].revents;
    const size_t r = ranks[i];
    if (happened & POLLOUT) channels_[r]->write(static_cast<int>(r) == to_ ? &out_ : nullptr);
    if (happened & (POLLRDHUP | POLLERR | POLLHUP)) channels_[r]->keep_all();
    if (happened & (POLLIN | POLLRDHUP | POLLERR | POLLHUP)) read_from(r);
  }
}

void Mesh::read_from(size_t rank) {
  Channel& from = *channels_[rank];
  from.read(static_cast<int>(rank) == from_ ? &in_ : nullptr);
  for (const auto& frame : from.take_frames()) take_frame(rank, frame);
  if (from.ended()) evidence_.gone[rank] = true;
}

void Mesh::take_frame(size_t rank, const Channel::Frame& frame) {
  if (frame.kind == FrameKind::bye) {
    evidence_.left[rank] = true;
    return;
  }
  auto received = decode_statement(frame.body, members_.size());
  if (!received) return;
  if (frame.kind == FrameKind::verdict) {
    if (!verdict_ && !received->reported.empty()) verdict_ = received->reported;
  } else if (!evidence_.said[rank]) {
    evidence_.said[rank] = std::move(received);
  }
}

// --- a call

bool Mesh::sends_to(int rank) const {
  return to_ >= 0 && rank == to_ && (!out_.rest.empty() || !channels_[static_cast<size_t>(rank)]->flushed());
}

bool Mesh::receives_from(int rank) const {
  return from_ >= 0 && rank == from_ &&
         (!in_.rest.empty() || channels_[static_cast<size_t>(rank)]->arriving());
}

// True if this member's part of the call is complete.
bool Mesh::moved() const { return !sends_to(to_) && !receives_from(from_); }

bool Mesh::in_trouble() const {
  if (verdict_) return true;
  for (size_t r = 0; r < channels_.size(); ++r) {
    if (evidence_.said[r] || evidence_.dead(r)) return true;
    if (channels_[r] && channels_[r]->astray()) return true;
    // A member that has completed its part of the call may leave while this one still waits for another.
    const bool awaited = sends_to(static_cast<int>(r)) || receives_from(static_cast<int>(r));
    if (awaited && (evidence_.left[r] || evidence_.gone[r])) return true;
  }
  return false;
}

Status Mesh::transfer(const Transfer& transfer, double deadline) {
  if (over_) return error();
  to_ = transfer.to, from_ = transfer.from;
  out_ = {transfer.out, transfer.tag};
  in_ = {transfer.in, transfer.tag};
  if (Channel* to = channel(to_)) to->write(&out_);
  if (from_ >= 0) read_from(static_cast<size_t>(from_));
  std::vector<pollfd> none;
  while (!moved()) {
    if (in_trouble()) return give_up(waiting(false));
    if (seconds_now() >= deadline) return give_up(waiting(true));
    pump(deadline, none);
  }
  to_ = from_ = -1;
  return Ok{};
}

// Returns the statement that names the members for which this one is waiting.
Statement Mesh::waiting(bool expired) const {
  Statement out{expired, {}};
  const auto add = [&](int rank) {
    const auto r = static_cast<size_t>(rank);
    const Loss kind = evidence_.left[r] ? Loss::left : Loss::silent;
    if (const LossReport one{rank, kind};
        std::find(out.reported.begin(), out.reported.end(), one) == out.reported.end())
      out.reported.push_back(one);
  };
  if (receives_from(from_)) add(from_);
  if (sends_to(to_)) add(to_);
  return out;
}

// --- trouble

// Adds ended connections, which take precedence over members that are only silent.
Statement Mesh::statement(Statement own) const {
  Statement seen{own.expired, {}};
  for (size_t r = 0; r < channels_.size(); ++r) {
    if (evidence_.dead(r)) seen.reported.push_back({static_cast<int>(r), Loss::died});
    if (channels_[r] && channels_[r]->astray()) seen.reported.push_back({static_cast<int>(r), Loss::astray});
  }
  return seen.reported.empty() ? std::move(own) : seen;
}

void Mesh::send_to_all(FrameKind kind, const std::string& body) {
  for (const auto& channel : channels_) {
    if (!channel) continue;
    channel->say(kind, body);
    channel->write(nullptr);
  }
}

// Reads until all members have sent a statement, or one has sent its conclusion.
void Mesh::listen_to_others() {
  const double until = seconds_now() + grace_;
  std::vector<pollfd> none;
  while (!verdict_ && seconds_now() < until) {
    if (const auto named = culprits(evidence_); !named.empty() && settled(evidence_, named)) return;
    pump(until, none);
  }
}

void Mesh::flush(double until) {
  std::vector<pollfd> none;
  const auto waits = [](const auto& one) { return one && !one->ended() && !one->flushed(); };
  while (seconds_now() < until && std::any_of(channels_.begin(), channels_.end(), waits)) pump(until, none);
}

Error Mesh::give_up(Statement own) {
  for (size_t r = 0; r < channels_.size(); ++r) {
    if (!channels_[r]) continue;
    // A member's last frames may follow data that was not requested yet: drop that data to reach them.
    channels_[r]->discard();
    if (!channels_[r]->astray()) read_from(r);
  }
  out_ = {}, in_ = {};
  const Statement mine = statement(std::move(own));
  evidence_.said[static_cast<size_t>(rank_)] = mine;
  to_ = from_ = -1;
  send_to_all(FrameKind::statement, encode(mine));
  listen_to_others();
  LossReports named = verdict_ ? *verdict_ : culprits(evidence_);
  if (named.empty()) named = mine.reported;
  over_ = true;
  std::sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  for (const auto& [rank, kind] : named)
    lost_.push_back({rank, members_[static_cast<size_t>(rank)].name, kind});
  send_to_all(FrameKind::verdict, encode({true, named}));
  flush(seconds_now() + std::min(grace_, kLastWords));
  for (const auto& channel : channels_)
    if (channel) channel->finish();
  return error();
}

Error Mesh::error() const {
  static constexpr Words<Loss, 6> kSentences = {
      {{Loss::died, "died: its connections ended"},
       {Loss::silent, "did not respond in time"},
       {Loss::absent, "did not connect in time"},
       {Loss::refused, "belongs to a different run: its token differs"},
       {Loss::left, "ended before the other members were done"},
       {Loss::astray,
        "is in a different collective call than the other members, or uses a different protocol"}}};
  std::string all;
  for (const auto& lost : lost_)
    all += fmt::format("{}rank {} on {} {}", all.empty() ? "" : "; ", lost.rank, lost.name,
                       word_of(kSentences, lost.kind));
  if (lost_.empty()) return fail(Code::failed, "another member gave up without naming the cause");
  return fail(code_of(lost_.front().kind), all);
}

}  // namespace muster::together
