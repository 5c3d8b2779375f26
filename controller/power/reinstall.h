// Reinstall: the port to a provider that installs an operating system of its own on a machine. Made by the
// power drivers that can (PowerDriver::reinstall); used by controller/power/sakura/provider_install.h.
//
// begin() is not repeatable, and nothing tells two of them apart: whoever calls it has written down that it
// does, and looks before it does so again. What became of it the provider does not say either: an
// installation that is over is one whose lock is gone, and success is what the new system itself shows.
// Blocking under a deadline, worker thread. Codes as in controller/power/power.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace muster {

// Whether something that cannot be taken back is still to be sent: settled once, between the thread that
// sends it and the one that calls it off. Thread: any.
class Permit {
 public:
  // By the sender, right before it is sent. False: it was called off, or sent before, and is not sent now.
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
    std::string address;  // where the new system will be reached; "" the provider does not say
    std::string user;     // whose key it will take
    bool needs_password = false;
  };
  // Whether it could be begun now, without doing it: the image is there and takes SSH keys, nobody else is at
  // work.
  virtual Result<Ready> prepare(const std::string& image, DurationMs deadline) = 0;
  struct Order {
    std::string image, public_key, password;
    // As Ready named it, and as it is written down: denied where the node's address leads to another one now.
    std::string server;
    std::shared_ptr<Permit> permit;  // taken when nothing but the request itself is left to do; never null
  };
  // Ok: it was accepted. timeout: nobody knows. Else it was not. cancelled: called off, and not sent.
  virtual Status begin(const Order& order, DurationMs deadline) = 0;
  enum class Look {
    idle,        // nothing runs: not yet, or not any more
    installing,  // an installation runs
    busy,        // something else of the provider's does, which passes
  };
  // `server`: Ready's. denied: people of the provider are at the machine, or the node's address leads to
  // another server now.
  virtual Result<Look> look(const std::string& server, DurationMs deadline) = 0;
};

}  // namespace muster
