// Preview: what `muster up` would do under a spec that may not be stored, as one JSON value:
//   images   [{name, why, error?}]: would be built; `error`: cannot be
//   secrets  [{name, nodes, receivers}]: named and not set
//   plans    [{kind, nodes: [{node, work, why, accepted_again, facts_time, compared, steps}], unchanged,
//            left_out, left_out_rules, notes, destroys, refusals}]: in order; after a plan that wakes or
//            discovers nodes comes what is planned for the others. With refusals it has nothing else; if a
//            plan after the first cannot be made, it is {error, refusals: []}
//   digest   of the spec's text, the images and the plans together: what `up SPEC --approve` takes; "" if a
//            plan is refused or cannot be made
//   first_plan  digest of the first plan, if `up` would show exactly that one; "" otherwise
//   removed  nodes that the present spec declares and this one does not
// Made by the planner from the nodes as they were last seen. An image that would be built is planned as if it
// were there. Thread: a worker's; builds and writes nothing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/json.h"
#include "base/time.h"
#include "controller/bringup/plan_worker.h"
#include "controller/options/options.h"

namespace muster {

struct PreviewSources {
  Json about = Json::object();                  // members to add
  std::optional<PlanningSnapshot> before = {};  // under the present spec; none: there is no usable one
  std::set<std::string> secrets = {};           // names of those that are set
  // Set for `live`: to be checked on the nodes, and why others cannot be.
  bool live = false;
  std::map<std::string, Json> steps = {};
  std::map<std::string, std::string> not_checked = {};
  std::map<std::string, TimeMs> facts_times = {};  // of each node's last inventory; 0: never
};

// Fills in `steps` and `not_checked` of the sources. The value is in MadePlan::shown; the plan itself is not
// kept.
Result<MadePlanPtr> preview_of(const PlanningSnapshot& after, PreviewSources& sources,
                               const DaemonOptions& options);

}  // namespace muster
