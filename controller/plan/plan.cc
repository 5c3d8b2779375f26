#include "controller/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/printable.h"
#include "base/record.h"
#include "controller/plan/shared_text.h"

namespace muster {
namespace {

constexpr int kVersion = 1;
constexpr Words<ActionKind, 12> kActionWords = {{{ActionKind::netboot, "netboot"},
                                                 {ActionKind::inventory, "inventory"},
                                                 {ActionKind::image, "image"},
                                                 {ActionKind::boot_disk, "boot_disk"},
                                                 {ActionKind::steps, "steps"},
                                                 {ActionKind::check, "check"},
                                                 {ActionKind::reboot, "reboot"},
                                                 {ActionKind::power_off, "power_off"},
                                                 {ActionKind::wake, "wake"},
                                                 {ActionKind::write_slot, "write_slot"},
                                                 {ActionKind::boot_slot, "boot_slot"},
                                                 {ActionKind::return_slot, "return_slot"}}};
constexpr Words<PlanKind, 12> kPlanWords = {{{PlanKind::discover, "discover"},
                                             {PlanKind::wake, "wake"},
                                             {PlanKind::install, "install"},
                                             {PlanKind::apply, "apply"},
                                             {PlanKind::reimage, "reimage"},
                                             {PlanKind::rollback, "rollback"},
                                             {PlanKind::admit, "admit"},
                                             {PlanKind::adopt, "adopt"},
                                             {PlanKind::accept, "accept"},
                                             {PlanKind::drain, "drain"},
                                             {PlanKind::undrain, "undrain"},
                                             {PlanKind::none, "none"}}};
}  // namespace
MUSTER_WORDS(ActionKind, kActionWords)
MUSTER_WORDS(PlanKind, kPlanWords)

bool measures(PlanKind kind) {
  switch (kind) {
    case PlanKind::install:
    case PlanKind::apply:
    case PlanKind::reimage:
    case PlanKind::rollback:
    case PlanKind::admit:
    case PlanKind::adopt:
    case PlanKind::accept:
      return true;
    case PlanKind::discover:
    case PlanKind::wake:
    case PlanKind::drain:
    case PlanKind::undrain:
    case PlanKind::none:
      return false;
  }
  return false;
}

NodeState end_state(PlanKind kind) {
  if (kind == PlanKind::discover) return NodeState::discovered;
  return kind == PlanKind::drain ? NodeState::drained : NodeState::accepted;
}

MUSTER_RECORD(Dependency, action, hard)
MUSTER_RECORD(Action, id, node, kind, phase, title, opt(after), as(timeout, "timeout_ms"), max_attempts,
              repeatable, sparse(behind), sparse(when_failed))
MUSTER_RECORD(Destruction, node, group, serial, wwid, model, size_bytes, kernel_name, content, content_hash,
              why, sparse(every_disk))
MUSTER_RECORD(PlanLimits, parallel_imaging, parallel_netboot, as(power_stagger, "power_stagger_ms"),
              failure_budget, opt(netboot, "netboot_ms"))
MUSTER_RECORD(Plan, kind, cluster, sparse(follows), spec_revision, opt(profile), simulated, images, limits,
              nodes, sparse(serving), unchanged, sparse(left_out), sparse(left_out_rules), sparse(barriers),
              opt(destroys), notes, config_digests)

namespace {

struct StoredAction {
  Action action = {};
  const Json* params = nullptr;
};
struct StoredPlan {
  int version = 0;
  Plan plan = {};
  const Json* actions = nullptr;
};
MUSTER_RECORD(StoredAction, flat(action), params)
MUSTER_RECORD(StoredPlan, version, flat(plan), actions)

// Everything except its parameters.
Json action_head(const Action& action) { return record_json(action); }

Result<Action> action_from_json(const Json& json, const std::string& path, TextPool& texts) {
  TRY(auto read, read_record<StoredAction>(json, path));
  read.action.params = ActionParams::with_texts(read.params ? *read.params : Json(), texts);
  return std::move(read.action);
}

// Everything except the actions.
Json plan_head(const Plan& plan) {
  Json out = record_json(plan);
  out["version"] = kVersion;
  return out;
}

std::string size_text(int64_t bytes) {
  if (bytes >= 1'000'000'000'000) return fmt::format("{:.1f} TB", static_cast<double>(bytes) / 1e12);
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

// A machine without an inventory is shown as a whole, because its disks are unknown.
std::string render_destroys(const Plan& plan) {
  std::vector<std::string> whole;
  std::string disks;
  int count = 0;
  for (const auto& d : plan.destroys) {
    if (d.every_disk) {
      whole.push_back(d.node);
      continue;
    }
    ++count;
    disks += fmt::format("  {:<10} {:<6} serial {:<20} {:<24} {:>9}  now: {}  ->  {}\n", d.node, d.group,
                         printable(d.serial, '?'), printable(d.model, '?'), size_text(d.size_bytes),
                         printable(d.content, '?'), d.why);
  }
  std::string out;
  if (!whole.empty())
    out += fmt::format(
        "WILL BE DESTROYED: all data on all disks of {} (content unknown), because the provider reinstalls "
        "these machines\n",
        joined(whole));
  if (count > 0) out += fmt::format("WILL BE DESTROYED: {} disk{}\n{}", count, count == 1 ? "" : "s", disks);
  return out.empty() ? "Nothing will be destroyed.\n" : out;
}

std::string render_node(const Plan& plan, const NodeName& node, bool verbose) {
  std::string out, line;
  for (const auto& a : plan.actions) {
    if (a.node != node) continue;
    if (!verbose) {
      if (!a.when_failed) line += (line.empty() ? "" : " -> ") + a.title;
      continue;
    }
    out += fmt::format("    {:<10} {:<28} {}\n", to_string(a.kind), a.id, a.title);
    for (const Json& s : a.params["steps"])
      out += fmt::format("        - {} ({})\n", s.value("id", ""), s.value("module", ""));
  }
  return verbose ? fmt::format("  {}\n{}", node, out) : fmt::format("  {:<10} {}\n", node, line);
}

}  // namespace

std::vector<std::string> installed_by_provider(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& action : plan.actions)
    if (action.params.contains("reinstall")) out.push_back(action.node);
  return out;
}

std::string_view to_string(ActionKind kind) { return word_of(kActionWords, kind); }

Result<ActionKind> action_kind_from_string(std::string_view text) {
  if (const auto kind = value_of(kActionWords, text)) return *kind;
  return fail(Code::invalid, "unknown action kind '" + std::string(text) + "'");
}

std::string_view to_string(PlanKind kind) { return word_of(kPlanWords, kind); }

Result<PlanKind> plan_kind_from_string(std::string_view text) {
  if (const auto kind = value_of(kPlanWords, text)) return *kind;
  return fail(Code::invalid, "unknown plan kind '" + std::string(text) + "'");
}

const Action* Plan::find(const std::string& id) const {
  const auto it = std::find_if(actions.begin(), actions.end(), [&](const Action& a) { return a.id == id; });
  return it == actions.end() ? nullptr : &*it;
}

Json to_json(const Plan& p) {
  Json out = plan_head(p);
  out["actions"] = Json::array();
  for (const auto& a : p.actions) {
    out["actions"].push_back(action_head(a));
    out["actions"].back()["params"] = a.params.json();
  }
  return out;
}

void write_plan(const Plan& p, const std::function<void(std::string_view)>& take) {
  const TextAround plan = text_around(plan_head(p), "actions");
  take(plan.before);
  take("[");
  for (size_t i = 0; i < p.actions.size(); ++i) {
    const TextAround action = text_around(action_head(p.actions[i]), "params");
    if (i > 0) take(",");
    take(action.before);
    p.actions[i].params.each_piece(take);
    take(action.after);
  }
  take("]");
  take(plan.after);
}

std::string plan_text(const Plan& p) {
  size_t about = 0;
  for (const auto& a : p.actions) about += a.params.size_of_texts() + 1000;
  std::string out;
  out.reserve(about);
  write_plan(p, [&](std::string_view piece) { out += piece; });
  return out;
}

Result<Plan> plan_from_json(const Json& json) {
  TRY(auto read, read_record<StoredPlan>(json, "plan"));
  if (read.version != kVersion)
    return fail(Code::invalid, fmt::format("plan: version {} is not supported", read.version));
  if (!read.actions) return std::move(read.plan);
  if (!read.actions->is_array()) return fail(Code::invalid, "plan.actions: expected a list");
  TextPool texts;
  for (const Json& one : *read.actions) {
    const std::string path = fmt::format("plan.actions[{}]", read.plan.actions.size());
    TRY(read.plan.actions.emplace_back(), action_from_json(one, path, texts));
  }
  return std::move(read.plan);
}

Digest plan_digest(const Plan& plan) {
  JsonDigest digest;
  write_plan(plan, [&](std::string_view piece) { digest.add(piece); });
  return Digest(digest.finish());
}

std::string render_plan(const Plan& plan, bool verbose) {
  std::string out = fmt::format("Plan {}: {} on {} node{} of cluster {} (spec revision {}){}\n",
                                short_digest(plan_digest(plan).str()), to_string(plan.kind),
                                plan.nodes.size(), plan.nodes.size() == 1 ? "" : "s", plan.cluster,
                                plan.spec_revision, plan.simulated ? "  [SIMULATED HARDWARE]" : "");
  if (plan.empty()) out += "Nothing to do.\n";
  for (const auto& [name, digest] : plan.images)
    out += fmt::format("  image {}: {}\n", name, digest.substr(0, 19));
  for (const auto& node : plan.nodes) out += render_node(plan, NodeName(node), verbose);
  if (!plan.unchanged.empty()) out += "  unchanged: " + joined(plan.unchanged) + "\n";
  for (const auto& note : plan.notes) out += "  note: " + note + "\n";
  return plan.empty() ? out : out + render_destroys(plan);
}

}  // namespace muster
