// Qmp: QEMU's machine protocol over its Unix socket: commands with replies, and events.
//
// One connection per machine (QEMU takes one client at a time). A reader thread of its own delivers replies
// and calls `on_event`; on_event must not call execute() itself. Codes: `unavailable` no such socket or no
// listener; `timeout` no reply in time; `failed` QEMU's error.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace muster::lab {

class Qmp {
 public:
  using OnEvent = std::function<void(const std::string& event, const Json& data)>;

  virtual ~Qmp() = default;
  // Thread: any, one call at a time.
  virtual Result<Json> execute(const std::string& command, const Json& arguments = Json::object(),
                               DurationMs deadline = 10 * kSecond) = 0;
  virtual bool connected() const = 0;

  // Waits for the socket to appear until the deadline.
  static Result<std::unique_ptr<Qmp>> connect(const std::string& path, DurationMs deadline, OnEvent on_event);
};

}  // namespace muster::lab
