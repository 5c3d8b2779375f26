// Reinstall: the port to a provider that can install an operating system on a machine. Made by power drivers
// that support it (PowerDriver::reinstall); used by controller/power/provider/provider_install.h.
// begin() is not idempotent, and the provider cannot detect a repetition: the caller must record the call
// beforehand, and check the record before a second call. Nor does the provider report the result: an
// installation has ended when its lock is gone, and only the new system itself proves success. Calls block,
// with a deadline; worker thread. Codes as in controller/ports/power.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace muster {

// Decides once, between the sending and the cancelling thread, whether an irreversible request is sent or
// cancelled. Thread: any.
class Permit {
 public:
  // Called by the sender right before sending. False: it was cancelled or already sent; do not send it now.
  bool take() {
    State was = State::open;
    return state_.compare_exchange_strong(was, State::taken);
  }
  // Cancels. True: it was not sent, and never will be. False: it may have been sent.
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
    std::string address;  // of the new system; "": the provider does not report it
    std::string user;     // the new system accepts the key for this user
    bool needs_password = false;
  };
  // Checks, without changing anything, that begin() is possible now: the image exists and accepts SSH keys,
  // no other operation runs.
  virtual Result<Ready> prepare(const std::string& image, DurationMs deadline) = 0;
  struct Order {
    std::string image, public_key, password;
    // The recorded Ready::server: denied if the node's address now leads to a different server.
    std::string server;
    std::shared_ptr<Permit> permit;  // taken right before the request is sent; never null
  };
  // Orders the installation. Ok: accepted. timeout: unknown. cancelled: not sent. Else: not accepted.
  virtual Status begin(const Order& order, DurationMs deadline) = 0;
  enum class Look {
    idle,        // nothing runs: not yet, or no longer
    installing,  // an installation runs
    busy,        // another operation of the provider runs
  };
  // Reads the progress. `server`: Ready::server. denied: the provider's staff are working on the machine, or
  // the node's address now leads to a different server.
  virtual Result<Look> look(const std::string& server, DurationMs deadline) = 0;
};

}  // namespace muster
