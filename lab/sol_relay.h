// SolRelay: a lab machine's serial port for its ipmi_sim: a TCP port of 127.0.0.1 or of the BMC, which sends
// everything that the machine writes to its console from then on. One way: typed input is dropped. It reads
// the console's log, since QEMU's serial port has one reader at a time. Thread: start() and the destructor
// one at a time; a thread of its own reads.
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
  long at_ = 0;  // of the log: sent so far
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace muster::lab
