// From what is wrong now to why: problems of many nodes that have one thing in common are one cause.
//
// A property of nodes (switch, rack, image, firmware, model) explains their problems if it covers them
// clearly better than the healthy nodes: all that have it and hardly any other, or so many of them that
// chance does not do it (controller/causes/explain.h). A part that acceptance located, a reason, and a step
// are common where several nodes name the same one. What nothing explains is a cause per node.
// Pure: no clock, no store. The inputs are gathered by controller/bringup/current_causes.h and by reports.
// Thread safety: plain values and stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/record.h"
#include "base/time.h"

namespace muster {

// What sort of thing is wrong. The words (cause_kind_word()) are in --json, messages and the spec.
enum class CauseKind {
  node_silent,      // no reports
  node_failed,      // a run quarantined the node, or the node went back to its old system
  node_degraded,    // acceptance: works, but not as well as it should
  node_waits,       // a person has to do something (a manual task, a power button)
  rollout_stopped,  // canary failed, budget exceeded, paused by an operator's cancel
  window_bad,       // the window's result is not "done" or "progress"
  image_build,      // an image could not be built
  controller,       // a problem of the controller itself (dhcp, a certificate's end, disk full)
  receiver,         // a receiver of notices does not take them
};
inline constexpr Words<CauseKind, 9> kCauseKinds = {{{CauseKind::node_silent, "node_silent"},
                                                     {CauseKind::node_failed, "node_failed"},
                                                     {CauseKind::node_degraded, "node_degraded"},
                                                     {CauseKind::node_waits, "node_waits"},
                                                     {CauseKind::rollout_stopped, "rollout_stopped"},
                                                     {CauseKind::window_bad, "night_bad"},
                                                     {CauseKind::image_build, "image_build"},
                                                     {CauseKind::controller, "controller"},
                                                     {CauseKind::receiver, "receiver"}}};
MUSTER_WORDS(CauseKind, kCauseKinds)

// One thing that is wrong now.
struct Problem {
  CauseKind kind = CauseKind::controller;
  NodeName node = {};       // "" for the cluster as a whole
  std::string reason = {};  // as operators see it, one line
  std::string step = {};    // action or step that failed; "" if none did
  std::string image = {};   // name of the image concerned; "" if none is
  TimeMs since = 0;         // 0: unknown
  std::string part = {};    // that acceptance located at this node or between it and others; "" if none
  std::string next = {};    // the command to type; "": the usual one for its kind
  bool operator==(const Problem&) const = default;
};

// Where a node is, and what it is. "" where it is not known: unknown values have nothing in common.
struct NodePlace {
  std::string rack = {}, network_switch = {}, model = {}, firmware = {}, image = {};
  bool operator==(const NodePlace&) const = default;
};

// Problems with one reason behind them.
struct Cause {
  // Stable while the cause lasts and over restarts, whichever nodes join or leave: 12 lower-case hexadecimal
  // digits. The same cause has the same id when it comes again.
  std::string id;
  CauseKind kind = CauseKind::controller;
  std::string what;             // one line, no newline: "31 of 31 nodes behind switch leaf3 are silent"
  std::string detail;           // one line: the reason most of them give; may be ""
  std::string next;             // the command to type; never ""
  std::vector<NodeName> nodes;  // sorted; empty for the cluster as a whole
  // What its nodes have in common: switch, rack, image, firmware, model, part, reason, step, or cluster
  // (half of all nodes; its value is ""). "" if nothing is: then it is one node, or none.
  std::string common, common_value;
  TimeMs since = 0;  // of the earliest problem; 0: unknown
};
MUSTER_RECORD(Cause, id, kind, what, detail, next, nodes, common, common_value, since)

// Returns the causes of `problems`, most nodes first. `places` has every node of the cluster, also healthy
// ones: what healthy nodes share as well explains nothing. `before`: the causes as they were found last; one
// of them with something in common lasts until the last of its nodes is well, so that a switch whose nodes
// come back one by one stays one cause. Without them the result is the same, but for such remainders.
std::vector<Cause> find_causes(const std::vector<Problem>& problems,
                               const std::map<NodeName, NodePlace>& places,
                               const std::vector<Cause>& before = {});

std::string cause_kind_word(CauseKind kind);
// An image as a value of NodePlace: its name and the first digits of its build, "node 3f2a91c04b7d". Either
// may be "".
std::string image_value(const std::string& name, const std::string& digest);
// {id, kind, what, detail, next, nodes, common, common_value, since} each, as --json and reports have them.
Json causes_json(const std::vector<Cause>& causes);
// "gpu[01-31]", as commands take it.
std::string nodes_of(const Cause& cause);
// The cause that has this node among its nodes, the most general one; null: none.
const Cause* cause_of(const std::vector<Cause>& causes, const NodeName& node);

}  // namespace muster
