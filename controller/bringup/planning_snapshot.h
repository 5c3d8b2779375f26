// PlanningSnapshot: all inputs of a plan at one moment. Taken on the reactor's thread, which is quick because
// large parts are shared; immutable afterwards. A worker makes the planner's input from it. Thread safety:
// plain value type.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/facts.h"
#include "base/facts_text.h"
#include "base/time.h"
#include "controller/bringup/playbook_cache.h"
#include "controller/current/current_spec.h"
#include "controller/plan/planner_input.h"

namespace muster {

// Returns the slots ("" for the whole OS disk) on which writing began after a node's last inventory, at
// `seen_at`, or in the same millisecond. `written`: as in NodeRow::disk_written.
std::set<std::string> written_since(const std::map<std::string, TimeMs>& written, TimeMs seen_at);

// Returns the facts of an inventory from before these writes that are still valid: none if the whole disk was
// written. A slot that was written while the node's jobs ran counts as half written until the next inventory.
std::optional<HardwareFacts> still_known(HardwareFacts facts, const std::set<std::string>& written);

// The sources of NodeObservation::facts and ::machine.
struct LookedAt {
  FactsText facts;
  std::set<std::string> written = {};  // since that inventory
};

struct PlanningSnapshot {
  std::shared_ptr<const SpecRevision> spec;
  PlaybookCache::Shared playbooks;
  std::map<std::string, LookedAt> looked_at;  // by node; of others, `in` has the facts already
  PlannerInput in;                            // the rest
};

PlannerInput planner_input(const PlanningSnapshot& snapshot);
void add_facts(NodeObservation& seen, const std::string& node, const LookedAt& at);

// A summary of a plan's inputs, sufficient to find out later whether they changed, and how. An approval is
// checked against it instead of against a second plan. It covers every member of the planner's input; a new
// member does not compile until it is added. Left out: the times of a node's last inventory and last contact.
// A part's fields by name, each with its value or, for long values, its digest.
using InputFields = std::vector<std::pair<std::string_view, std::string>>;
// By part: "spec", "node gpu07", "image cpu", "playbook base", ...
using PlannedInputs = std::map<std::string, InputFields>;

PlannedInputs inputs_of(const PlanningSnapshot& snapshot);

// Returns the differences as text, one entry each: "node gpu07: its agent is now silent". Empty: none.
std::vector<std::string> changed_inputs(const PlannedInputs& before, const PlannedInputs& now);
// Only the first few, if there are many.
std::string in_one_line(const std::vector<std::string>& changed);

}  // namespace muster
