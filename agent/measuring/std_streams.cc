#include "agent/measuring/std_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace muster {
namespace {

constexpr size_t kPiece = 256 << 10;

void never_block(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

StdStreams::StdStreams(RealReactor& reactor, Events events, int in, int out)
    : reactor_(reactor), events_(std::move(events)), in_(in), out_(out) {
  never_block(in_);
  never_block(out_);
  reactor_.when_ready(in_, RealReactor::Ready::read, [this] { read_some(); });
}

StdStreams::~StdStreams() {
  reactor_.forget(in_);
  reactor_.forget(out_);
}

void StdStreams::close() {
  if (!std::exchange(closed_, true) && events_.closed) events_.closed();
}

void StdStreams::read_some() {
  std::vector<char> buffer(kPiece);
  const ssize_t n = ::read(in_, buffer.data(), buffer.size());
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return close();
  if (n > 0) events_.in(std::string_view(buffer.data(), static_cast<size_t>(n)));
  reactor_.when_ready(in_, RealReactor::Ready::read, [this] { read_some(); });
}

void StdStreams::send(std::string text) {
  if (closed_) return;
  unsent_ += text;
  if (std::exchange(writing_, true)) return;
  reactor_.when_ready(out_, RealReactor::Ready::write, [this] { write_some(); });
}

void StdStreams::write_some() {
  writing_ = false;
  const ssize_t n = ::write(out_, unsent_.data() + sent_, std::min(kPiece, unsent_.size() - sent_));
  if (n < 0 && errno != EAGAIN && errno != EINTR) return close();
  if (n > 0) sent_ += static_cast<size_t>(n);
  if (sent_ == unsent_.size()) {
    unsent_.clear();
    sent_ = 0;
    return;
  }
  writing_ = true;
  reactor_.when_ready(out_, RealReactor::Ready::write, [this] { write_some(); });
}

}  // namespace muster
