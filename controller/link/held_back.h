// HeldBack: nodes whose events are not read for a while, because so much of what they sent was not taken. The
// servers refuse such a body from its header (429), so that it costs the reactor nothing. Small ones are
// read, so that a hello or the end of an order finds its way (controller/link/event_door.h).
//
// Thread: the reactor's, but holds() any.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "base/time.h"
#include "sys/reactor.h"

namespace muster {

class HeldBack {
 public:
  explicit HeldBack(Reactor& reactor) : reactor_(reactor) {}
  ~HeldBack();
  HeldBack(const HeldBack&) = delete;
  HeldBack& operator=(const HeldBack&) = delete;

  // The node sent so many bytes for nothing: they are worth a pause, of at most a minute.
  void note_wasted(const std::string& node, size_t bytes);
  void release(const std::string& node);
  // True if a body of this length from the node is to be refused now.
  bool holds(const std::string& node, size_t length) const;

  static constexpr DurationMs kLongest = kMinute;
  static constexpr size_t kSmall = 4 << 10;
  static constexpr size_t kWastedPerSecond = 128 << 10;

 private:
  Reactor& reactor_;
  mutable std::mutex mutex_;
  std::map<std::string, Reactor::TimerId> until_;  // node -> the timer that ends it
};

}  // namespace muster
