// The kinds of events in the live log: those that agents send (base/wire.h) and the controller's own, which
// none may send (controller/link/event_door.h). This is the only list: no other word compiles, and each has
// words for operators (cli/event_words.h). Thread safety: plain value type.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace muster {

class EventKind {
 public:
  static constexpr std::array<std::string_view, 23> kAll = {
      // of agents
      "hello", "started", "progress", "step", "log", "finished",
      // of a run, also its nodes
      "run", "action", "wait", "node",
      // of machines: power orders, boot scripts, joins, kernel panics
      "power", "boot", "join", "console",
      // of the controller
      "spec", "image", "secret", "certificate", "rollout", "restored", "cause", "backup", "discovery"};

  static constexpr size_t kOfAgents = 6;  // the first of the list
  static constexpr bool is_of_agents(std::string_view word) {
    const auto end = kAll.begin() + kOfAgents;
    return std::find(kAll.begin(), end, word) != end;
  }

  // Implicit: a literal is a kind.
  consteval EventKind(const char* word) : word_(listed(word)) {}

  constexpr std::string_view word() const { return word_; }
  bool operator==(const EventKind&) const = default;

 private:
  static consteval std::string_view listed(std::string_view word) {
    for (const std::string_view known : kAll)
      if (known == word) return known;
    throw "not in the list above";
  }

  std::string_view word_;
};

}  // namespace muster
