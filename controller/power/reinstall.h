// Reinstall: the port to a provider that installs an operating system of its own on a machine. Made by the
// power drivers that can (PowerDriver::reinstall); used by controller/power/sakura/provider_install.h.
//
// begin() is not repeatable, and a repetition cannot be distinguished: the caller must record it before, and
// check before a second call. The provider does not report the result either: an installation has ended when
// its lock is gone, and only the new system itself proves success. Blocking under a deadline, worker thread.
// Codes as in controller/power/power.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace muster {

// Whether an irreversible request may still be sent: settled once, between the thread that sends it and the
// one that cancels it. Thread: any.
class Permit {
 public:
  // By the sender, right before it is sent. False: it was cancelled, or sent before; do not send it now.
  bool take() {
    State was = State::open;
    return state_.compare_exchange_strong(was, State::taken);
  }
  // True: it was not sent, and never will be. False: it may have been.
  bool withdraw() {
    State was = State::open;
    return state_.compare_exchange_strong(was, State::withdrawn) || was == State::withdrawn;
  }

 private:
  enum class State { open, taken, withdrawn };
  std::atomic<State> state_{State::open};
};

class Reinstall {
 public:
  virtual ~Reinstall() = default;
  struct Ready {
    std::string server;   // as the provider names it
    std::string address;  // where the new system will be reached; "" the provider does not report it
    std::string user;     // user whose key it will accept
    bool needs_password = false;
  };
  // Whether it could be begun now, without doing it: the image exists and accepts SSH keys, no other
  // operation runs.
  virtual Result<Ready> prepare(const std::string& image, DurationMs deadline) = 0;
  struct Order {
    std::string image, public_key, password;
    // As in Ready and as recorded: denied if the node's address leads to a different one now.
    std::string server;
    std::shared_ptr<Permit> permit;  // taken right before the request is sent; never null
  };
  // Ok: it was accepted. timeout: unknown. Else it was not. cancelled: not sent.
  virtual Status begin(const Order& order, DurationMs deadline) = 0;
  enum class Look {
    idle,        // nothing runs: not yet, or not any more
    installing,  // an installation runs
    busy,        // another operation of the provider runs
  };
  // `server`: Ready's. denied: the provider's staff work on the machine, or the node's address leads to
  // another server now.
  virtual Result<Look> look(const std::string& server, DurationMs deadline) = 0;
};

}  // namespace muster
