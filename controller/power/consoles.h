// Consoles: what the machines of a run say on their serial consoles, kept, and looked through for panics.
//
// While a run is under way, the nodes of it whose spec says `sol: true` are listened to (controller/power/
// sol.h). What they say goes to STATE/consoles/NODE.log (4 MiB, and one older file NODE.log.1; nobody but
// root reads folder or files, and tokens of joins are not in them). A kernel panic is told at once and
// remembered: a run names it as the reason where a system did not come. It decides nothing: a machine that
// panicked may restart and come up. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/reactor.h"
#include "controller/power/sol.h"
#include "controller/power/token_mask.h"

namespace muster {

// "Kernel panic - not syncing: ..." in a line of a console; "" where there is none. The line that closes a
// panic is none.
std::string panic_in(const std::string& line);

class Consoles {
 public:
  struct Hooks {
    // Whose consoles are wanted now.
    std::function<std::map<std::string, PowerTarget>()> wanted;
    std::function<void(const std::string& node, const std::string& panic)> panicked;
  };
  Consoles(Reactor& reactor, std::string state, Hooks hooks, std::string program = "ipmitool");
  ~Consoles();

  // The newest panic of a node if it was seen since then; else "".
  std::string panic_since(const std::string& node, SteadyMs since) const;
  void heard(const std::string& node, const std::string& bytes);

 private:
  struct Console {
    std::string line;  // as far as it came
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
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::map<std::string, Console> consoles_;
  bool listening_ = false;
  bool folder_made_ = false;
  Reactor::TimerId timer_ = 0;
  std::unique_ptr<SolReader> reader_;  // last: its thread ends first
};

}  // namespace muster
