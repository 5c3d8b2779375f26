// The measurements of earlier runs in short form, stored with each signed report and used for comparison.
//
// A system that was not kept leaves no history. A value counts as history only if it passed on a node that
// was accepted or degraded, so a bad run does not lower the limits. Thread safety: stateless functions.
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
  bool good = false;                 // passed, on a node that was accepted or degraded
  bool degraded = false;             // it counted against the node in that run
  std::string like = {}, kind = {};  // Check::like, Check::kind
  std::string reason = {};
  std::vector<std::string> faulty_parts = {};
};

struct History {
  // node -> (check, subject) -> values, newest first; at least one
  using Key = std::pair<std::string, std::string>;
  std::map<std::string, std::map<Key, std::vector<PastValue>>> nodes = {};

  const std::vector<PastValue>& of(const std::string& node, const std::string& check,
                                   const std::string& subject) const;
};

// Returns the text that is stored with a report.
std::string measured_text(const Report& report);
// Adds an earlier run's text; call it for the newest run first. Code::corrupt if the text cannot be read.
Status add_history(History& history, int64_t run, const std::string& text);

// Drops what was measured up to run `last`, when a different machine had the node's name.
void drop_until(History& history, const std::string& node, int64_t last);

// Value of Check::like for hardware whose expected value neither the spec nor equal machines give.
inline constexpr const char* kOwnHardware = "own";
// Degrades such checks if less is found than in the newest run that accepted the node (even if degraded).
void compare_hardware(NodeReport& node, const History& history);

// Adds, as degraded, the checks that counted against the node in an earlier run and were not measured since
// then: these findings still count.
void carry_over(NodeReport& node, const History& history);
bool is_carried_over(const Check& check);

}  // namespace muster
