// SolRelay: provides a lab machine's serial console to its ipmi_sim over TCP (on 127.0.0.1 or the BMC's
// address): sends everything that the machine writes to its console after the connection. Typed input is
// dropped. It reads the console's log, since QEMU's serial port allows one reader at a time. Threads:
// start() and the destructor are called one at a time; a background thread serves the connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "base/result.h"

namespace muster::lab {

class SolRelay {
 public:
  explicit SolRelay(std::string log) : log_(std::move(log)) {}
  ~SolRelay();
  SolRelay(const SolRelay&) = delete;
  SolRelay& operator=(const SolRelay&) = delete;

  Status start(const std::string& address);
  uint16_t port() const { return port_; }

 private:
  void loop();
  void pass_on(int client);

  const std::string log_;
  uint16_t port_ = 0;
  int listener_ = -1;
  long at_ = 0;  // the log has been sent up to this offset
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace muster::lab
