// StdStreams: non-blocking exchange over standard input and output on the reactor.
//
// Owned by agent/measuring/measure.cc. Output that cannot be written yet is queued; the sender must limit its
// amount. Thread: the reactor's; callbacks never run inside a call.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sys/reactor.h"

namespace muster {

class StdStreams {
 public:
  struct Events {
    std::function<void(std::string_view)> in;
    std::function<void()> closed;  // called once, when either stream is closed
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
