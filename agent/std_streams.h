// StdStreams: standard input and output as a dialog on the reactor, both without blocking.
//
// Owned by agent/measure.cc. What cannot be written yet is queued; the sender must limit how much that is.
// Thread: the reactor's; callbacks never run inside a call.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/reactor.h"

namespace muster {

class StdStreams {
 public:
  struct Events {
    std::function<void(std::string_view)> in;
    std::function<void()> closed;  // either of the two, once
  };
  StdStreams(RealReactor& reactor, Events events, int in = 0, int out = 1);
  ~StdStreams();
  StdStreams(const StdStreams&) = delete;
  StdStreams& operator=(const StdStreams&) = delete;

  void send(std::string text);

 private:
  void read_some();
  void write_some();
  void close();

  RealReactor& reactor_;
  Events events_;
  int in_, out_;
  std::string unsent_;
  size_t sent_ = 0;  // of `unsent_`
  bool writing_ = false, closed_ = false;
};

}  // namespace muster
