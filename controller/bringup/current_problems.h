// What is wrong now. The only place that decides what counts as a problem, so that status, `why`, metrics
// and notices cannot disagree. Pure functions of values, which CurrentCauses gathers.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/names.h"
#include "base/steady.h"
#include "base/time.h"
#include "controller/causes/cause.h"
#include "controller/nodes/held_by.h"
#include "controller/nodes/states.h"
#include "controller/rollout/rollout_record.h"

namespace muster {

// Topic of ClusterNow::controller: the replacement of the CA stands half done.
inline constexpr const char* kReplacedCa = "ca";

struct NodeNow {
  NodeName name = {};
  NodeState state = NodeState::unknown;
  HeldBy held_by = HeldBy::nobody;
  std::string reason = {}, image_digest = {}, boot_id = {};  // of its row
  std::string faulty_part = {};                              // likewise
  TimeMs held_since = 0;                                     // likewise
  TimeMs silent_since = 0;                                   // NodesView::silent_since()
  bool starting = false;                                     // is_starting()
  bool switched = false;                                     // is_expected_away()
  // In the active run:
  std::optional<NodeRunState> in_run = {};  // none: it takes no part
  bool returning = false;                   // to its previous system; afterwards `in_run` is `returned`
  std::string run_reason = {};              // why it failed there, or goes back
  bool at_work = false;                     // the run reports why the node waits, also while it is silent
  std::string by_hand = {};                 // the manual task that is pending for it
  TimeMs by_hand_since = 0;
};

struct ClusterNow {
  std::vector<NodeNow> nodes = {};               // of the spec
  Json storage = Json::array();                  // StorageReports::status(), after lasting_problems()
  std::map<std::string, SteadyMs> healing = {};  // healing_sections()
  const rollout::Record* rollout = nullptr;      // the newest; null: none
  // When the rollout's unbuilt_images() that the spec declares were built last; 0: never.
  std::map<std::string, TimeMs> built_at = {};
  std::map<std::string, std::string> controller = {};  // NodesView::problems(), and kReplacedCa
  TimeMs time = 0;
  std::map<std::string, TimeMs> certificates = {};  // Authority::certificate_ends()
};

// A node has at most one: that it failed, else that a person must act, that it is silent, that it is
// degraded, or that its storage is, unless it is being installed. What a storage engine itself reports is one
// of a node without another one; that copies are missing is none while the section heals. None while an
// operator holds or drains it, and before it was installed; no silence while it is expected away. A canary
// that failed is part of the problem that its image is held, and none before its batch has ended; what it
// fails for later is one of its own. An image that a window did not build is one; a build by hand that fails
// is not, since who began it sees it. Topics "receiver NAME" of `controller` are problems of a receiver of
// notices. A certificate is one from two weeks before its end.
std::vector<Problem> current_problems(const ClusterNow& now);
// Those of `certificates` (Authority::certificate_ends()) alone.
std::vector<Problem> certificate_problems(const std::map<std::string, TimeMs>& certificates, TimeMs now);

// Of storage sections, by section, as StorageReports::status() lists them.
using StorageProblems = std::map<std::string, Json>;
// Leaves in `storage` the problems that count, and returns them. What a node has not mounted while it is
// starting or expected away is none, unless it was one before. What was one lasts while its node does not
// report; what the engine reported through it, only while it is expected away, for others may report as well.
// `before`: what was returned last.
StorageProblems lasting_problems(Json& storage, const StorageProblems& before,
                                 const std::vector<NodeNow>& nodes);

// All storage sections. Of those that heal, which may lack copies because a run took a member from its work,
// the time at which one was away last: until their engine reports no problem, and for an hour at most. Of
// others SteadyMs{}, also where the engine reported a problem before the run took one: that stays a problem.
// `before`: what was returned last, in which a section is missing at the first look; `away`: sections of
// which a run has a member now.
std::map<std::string, SteadyMs> healing_sections(const std::map<std::string, SteadyMs>& before,
                                                 const std::set<std::string>& away, const Json& storage,
                                                 SteadyMs now);

// The boot of a node that reported last, and when it was first seen. SteadyMs{}: at the first look, when it
// may have been long ago.
struct Boot {
  std::string id;
  SteadyMs seen;
};
// The boots of all nodes, from those that were returned last.
std::map<NodeName, Boot> boots_seen(std::map<NodeName, Boot> before, const std::vector<NodeNow>& nodes,
                                    SteadyMs now);
// True for five minutes from a boot: nothing waits for a node's file systems at boot, its agent neither.
bool is_starting(const Boot& boot, SteadyMs now);

// True if an operator had the node switched since `from.seen`, it has not reported from another boot than
// `from` yet, and the time that its boot may take has not passed.
bool is_expected_away(const Boot& from, const std::string& boot_id, SteadyMs now, DurationMs limit);

// True if the node counts, sick or healthy: it is in service, or was, and no operator took it out.
bool counts(const NodeNow& node);

}  // namespace muster
