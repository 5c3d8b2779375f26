// From what is wrong now to why: problems of many nodes that have one thing in common are one cause.
// Pure: no clock, no store. The inputs are gathered by whoever has them (status, notices, a report).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/time.h"

namespace muster {

// What sort of thing is wrong. The words (cause_kind_word()) are in --json, messages and the spec.
enum class CauseKind {
  node_silent,      // no reports
  node_failed,      // an action of a run failed, or the node is quarantined
  node_degraded,    // acceptance: works, but not as well as it should
  node_waits,       // a person has to do something (a manual task, a power button)
  rollout_stopped,  // canary failed, budget exceeded, paused by an operator's cancel
  night_bad,        // the window's result is not "done" or "progress"
  image_build,      // an image could not be built
  controller,       // a problem of the controller itself (dhcp, a certificate's end, disk full)
  receiver,         // a receiver of notices does not take them
};

// One thing that is wrong now.
struct Problem {
  CauseKind kind = CauseKind::controller;
  NodeName node;       // "" for the cluster as a whole
  std::string reason;  // as operators see it, one line
  std::string step;    // action or step that failed; "" if none did
  std::string image;   // name of the image concerned; "" if none is
  TimeMs since = 0;
};

// Where a node is, and what it is. "" where it is not known: unknown values have nothing in common.
struct NodePlace {
  std::string rack, network_switch, model, firmware, image;
};

// Problems with one reason behind them.
struct Cause {
  std::string id;  // stable while the cause lasts and over restarts: 12 lower-case hexadecimal digits
  CauseKind kind = CauseKind::controller;
  std::string what;                  // one line, no newline: "31 nodes behind switch leaf3 are silent"
  std::string detail;                // the reason most of them give; may be ""
  std::string next;                  // the command to type; never ""
  std::vector<NodeName> nodes;       // sorted; empty for the cluster as a whole
  std::string common, common_value;  // "switch", "leaf3"; "" if nothing is
  TimeMs since = 0;                  // of the earliest problem
};

// Returns the causes of `problems`, most nodes first. `places` has every node of the cluster, also healthy
// ones: what healthy nodes share as well explains nothing.
std::vector<Cause> find_causes(const std::vector<Problem>& problems,
                               const std::map<NodeName, NodePlace>& places);

std::string cause_kind_word(CauseKind kind);

}  // namespace muster
