// Qmp: client of the QEMU Machine Protocol over a Unix socket: commands with replies, and events. One
// connection per machine (QEMU accepts one client at a time). A reader thread delivers replies and calls
// `on_event`, which must not call execute(). Codes: `unavailable`: no such socket, or nothing listens on it;
// `timeout`: no reply in time; `failed`: error returned by QEMU.
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
  // Sends a command and waits for its reply. Any thread, one call at a time.
  virtual Result<Json> execute(const std::string& command, const Json& arguments = Json::object(),
                               DurationMs deadline = 10 * kSecond) = 0;
  virtual bool connected() const = 0;

  // Connects; waits until the deadline for the socket to appear.
  static Result<std::unique_ptr<Qmp>> connect(const std::string& path, DurationMs deadline, OnEvent on_event);
};

}  // namespace muster::lab
