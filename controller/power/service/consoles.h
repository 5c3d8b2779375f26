// Consoles: stores the serial console output of a run's machines and searches it for kernel panics.
//
// During a run, the consoles of its nodes with `sol: true` in the spec are read (controller/power/sol.h).
// Their output goes to STATE/consoles/NODE.log (4 MiB, and one older file NODE.log.1; only root can read
// folder and files, and join tokens are not in them). A kernel panic is reported at once and recorded: a run
// gives it as the reason if a system did not boot. A panic has no other effect: a machine that panicked may
// restart and come up. Thread: the reactor's.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/alive.h"
#include "controller/power/sol.h"
#include "sys/reactor.h"

namespace muster {

// TokenMask: removes one-time tokens from console output before it is kept.
//
// A kernel prints its command line, which contains a join token, and so do some firmwares and boot loaders.
// Text after "muster.token=" is removed even if it arrives in pieces: a terminal may wrap it and insert
// control sequences. In doubt it removes too much rather than too little. Thread: its owner's; no I/O.

// One per console: it keeps state between pieces of output.
class TokenMask {
 public:
  std::string pass(std::string_view bytes);

 private:
  enum class Escape { none, begun, sequence };
  bool is_control(char c);

  size_t matched_ = 0;  // of the words before a token
  // Likewise without regard to control sequences: one that was cut off takes the first letter as its last.
  size_t plain_ = 0;
  bool hiding_ = false;
  size_t hidden_ = 0;
  Escape escape_ = Escape::none;
};

// Returns "Kernel panic - not syncing: ..." from a line of a console; "" if there is none. The line that ends
// a panic's output does not count.
std::string panic_in(const std::string& line);

class Consoles {
 public:
  struct Hooks {
    std::function<std::map<std::string, PowerTarget>()> wanted;
    std::function<void(const std::string& node, const std::string& panic)> panicked;
  };
  Consoles(Reactor& reactor, std::string state, Hooks hooks, std::string program = "ipmitool");
  ~Consoles();

  // Returns the newest panic of a node if it was seen at or after `since`; else "".
  std::string panic_since(const std::string& node, SteadyMs since) const;
  void receive(const std::string& node, const std::string& bytes);

 private:
  struct Console {
    std::string line;  // the part received so far
    std::string panic;
    SteadyMs panicked = {};
    TokenMask mask = {};
  };
  void tick();
  void keep(const std::string& node, const std::string& bytes);
  void make_folder();
  void end_of_line(const std::string& node, Console& console);

  Reactor& reactor_;
  const std::string folder_;
  const Hooks hooks_;
  Alive alive_;
  std::map<std::string, Console> consoles_;
  bool listening_ = false;
  bool folder_made_ = false;
  Reactor::TimerId timer_ = 0;
  std::unique_ptr<SolReader> reader_;  // last: its thread ends first
};

}  // namespace muster
