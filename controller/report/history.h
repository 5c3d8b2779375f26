// What earlier runs measured, in short: kept beside each signed report, read by later runs to compare with.
//
// Nothing of a system that was not taken is kept. A value counts as history only when it passed on a node
// that was handed over: a broken night does not lower the bar. Thread: pure functions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/report/report.h"

namespace muster {

struct PastValue {
  int64_t run = 0;
  double value = 0;
  bool good = false;      // passed, on a node that was handed over
  bool degraded = false;  // held against the node then
  std::string like = {};  // Check::like
  std::string reason = {};
  std::vector<std::string> blame = {};
};

struct History {
  // node -> (check, subject) -> values, newest first; at least one
  using Key = std::pair<std::string, std::string>;
  std::map<std::string, std::map<Key, std::vector<PastValue>>> nodes = {};

  const std::vector<PastValue>& of(const std::string& node, const std::string& check,
                                   const std::string& subject) const;
};

// The text kept with a report.
std::string measured_text(const Report& report);
// Adds what a text of an earlier run says; call with the newest run first. Code::corrupt when it cannot be
// read.
Status add_history(History& history, int64_t run, const std::string& text);

// Another machine had the node's name until run `last`: what it measured goes.
void drop_until(History& history, const std::string& node, int64_t last);

// Check::like of what a machine has where neither its spec nor its like says what it should have.
inline constexpr const char* kOwnHardware = "own";
// Such checks held against the newest run after which the node was handed over: less than then is degraded.
void compare_hardware(NodeReport& node, const History& history);

// What was held against a node and was not measured since is still held against it: adds those checks as
// degraded.
void carry_over(NodeReport& node, const History& history);

}  // namespace muster
