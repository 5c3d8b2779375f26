#include "controller/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "controller/plan/json_pieces.h"

namespace muster {
namespace {

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

// Everything except its parameters.
Json action_head(const Action& a) {
  Json after = Json::array();
  for (const auto& d : a.after) after.push_back({{"action", d.action}, {"hard", d.hard}});
  Json out = {{"id", a.id},
              {"node", a.node},
              {"kind", to_string(a.kind)},
              {"phase", a.phase},
              {"title", a.title},
              {"after", after},
              {"timeout_ms", a.timeout},
              {"max_attempts", a.max_attempts},
              {"repeatable", a.repeatable}};
  if (a.behind >= 0) out["behind"] = a.behind;
  if (a.when_failed) out["when_failed"] = true;
  return out;
}

Result<Action> action_from_json(const Json& json, const std::string& path, TextPool& texts) {
  JsonReader r(json, path);
  Action a;
  std::string kind;
  r.get("id", a.id);
  r.get("node", a.node);
  r.get("kind", kind);
  r.get("phase", a.phase);
  r.get("title", a.title);
  a.params = ActionParams::with_texts(r.raw("params"), texts);
  const Json after = r.raw("after");
  r.get("timeout_ms", a.timeout);
  r.get("max_attempts", a.max_attempts);
  r.get("repeatable", a.repeatable);
  r.get_or("behind", a.behind, -1);
  r.get_or("when_failed", a.when_failed, false);
  TRY_(r.finish());
  TRY(a.kind, action_kind_from_string(kind));
  for (const auto& item : after) {
    JsonReader d(item, path + ".after");
    Dependency dependency;
    d.get("action", dependency.action);
    d.get("hard", dependency.hard);
    TRY_(d.finish());
    a.after.push_back(std::move(dependency));
  }
  return a;
}

Json destruction_json(const Destruction& d) {
  Json out = {{"node", d.node},
              {"group", d.group},
              {"serial", d.serial},
              {"wwid", d.wwid},
              {"model", d.model},
              {"size_bytes", d.size_bytes},
              {"kernel_name", d.kernel_name},
              {"content", d.content},
              {"content_hash", d.content_hash},
              {"why", d.why}};
  if (d.every_disk) out["every_disk"] = true;
  return out;
}

Result<Destruction> destruction_from_json(const Json& json, const std::string& path) {
  JsonReader r(json, path);
  Destruction d;
  r.get("node", d.node);
  r.get("group", d.group);
  r.get("serial", d.serial);
  r.get("wwid", d.wwid);
  r.get("model", d.model);
  r.get("size_bytes", d.size_bytes);
  r.get("kernel_name", d.kernel_name);
  r.get("content", d.content);
  r.get("content_hash", d.content_hash);
  r.get("why", d.why);
  r.get_or("every_disk", d.every_disk, false);
  TRY_(r.finish());
  return d;
}

Json limits_json(const PlanLimits& l) {
  return {{"parallel_imaging", l.parallel_imaging},
          {"parallel_netboot", l.parallel_netboot},
          {"power_stagger_ms", l.power_stagger},
          {"failure_budget", l.failure_budget},
          {"netboot_ms", l.netboot}};
}

Status read_limits(const Json& json, PlanLimits& l) {
  JsonReader r(json, "plan.limits");
  r.get("parallel_imaging", l.parallel_imaging);
  r.get("parallel_netboot", l.parallel_netboot);
  r.get("power_stagger_ms", l.power_stagger);
  r.get("failure_budget", l.failure_budget);
  r.get_or("netboot_ms", l.netboot, l.netboot);  // plans of earlier versions lack it
  return r.finish();
}

// Everything except the actions.
Json plan_head(const Plan& p) {
  Json destroys = Json::array();
  for (const auto& d : p.destroys) destroys.push_back(destruction_json(d));
  Json out = {{"version", 1},
              {"kind", to_string(p.kind)},
              {"cluster", p.cluster},
              {"spec_revision", p.spec_revision},
              {"profile", p.profile},
              {"simulated", p.simulated},
              {"images", p.images},
              {"limits", limits_json(p.limits)},
              {"nodes", p.nodes},
              {"unchanged", p.unchanged},
              {"destroys", destroys},
              {"notes", p.notes},
              {"config_digests", p.config_digests}};
  if (!p.follows.empty()) out["follows"] = p.follows;
  if (!p.left_out.empty()) out["left_out"] = p.left_out;
  if (!p.left_out_rules.empty()) out["left_out_rules"] = p.left_out_rules;
  if (!p.serving.empty()) out["serving"] = p.serving;
  if (!p.barriers.empty()) out["barriers"] = p.barriers;
  return out;
}

std::string size_text(int64_t bytes) {
  if (bytes >= 1'000'000'000'000) return fmt::format("{:.1f} TB", static_cast<double>(bytes) / 1e12);
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

// Replaces control characters in text that hardware reports.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

// Lists what will be destroyed. If a machine has no inventory, its disks are unknown, and the machine is
// shown as a whole.
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
                         printable(d.serial), printable(d.model), size_text(d.size_bytes),
                         printable(d.content), d.why);
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

std::string render_node(const Plan& plan, const std::string& node, bool verbose) {
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
  JsonReader r(json, "plan");
  Plan p;
  int version = 0;
  std::string kind;
  r.get("version", version);
  r.get("kind", kind);
  r.get("cluster", p.cluster);
  r.get("spec_revision", p.spec_revision);
  r.get_or("profile", p.profile, {});
  r.get_or("follows", p.follows, {});
  r.get("simulated", p.simulated);
  r.get("images", p.images);
  const Json& limits = r.raw("limits");
  r.get("nodes", p.nodes);
  r.get("unchanged", p.unchanged);
  r.get_or("left_out", p.left_out, {});
  r.get_or("left_out_rules", p.left_out_rules, {});
  r.get_or("serving", p.serving, {});
  r.get_or("barriers", p.barriers, {});
  const Json& actions = r.raw("actions");
  const Json& destroys = r.raw("destroys");
  r.get("notes", p.notes);
  r.get("config_digests", p.config_digests);
  TRY_(r.finish());
  if (version != 1) return fail(Code::invalid, fmt::format("plan: version {} is not supported", version));
  TRY(p.kind, plan_kind_from_string(kind));
  TRY_(read_limits(limits, p.limits));
  TextPool texts;
  for (size_t i = 0; i < actions.size(); ++i) {
    TRY(auto action, action_from_json(actions[i], fmt::format("plan.actions[{}]", i), texts));
    p.actions.push_back(std::move(action));
  }
  for (size_t i = 0; i < destroys.size(); ++i) {
    TRY(auto destruction, destruction_from_json(destroys[i], fmt::format("plan.destroys[{}]", i)));
    p.destroys.push_back(std::move(destruction));
  }
  return p;
}

std::string plan_digest(const Plan& plan) {
  JsonDigest digest;
  write_plan(plan, [&](std::string_view piece) { digest.add(piece); });
  return digest.finish();
}

std::string render_plan(const Plan& plan, bool verbose) {
  std::string out = fmt::format("Plan {}: {} on {} node{} of cluster {} (spec revision {}){}\n",
                                plan_digest(plan).substr(7, 12), to_string(plan.kind), plan.nodes.size(),
                                plan.nodes.size() == 1 ? "" : "s", plan.cluster, plan.spec_revision,
                                plan.simulated ? "  [SIMULATED HARDWARE]" : "");
  if (plan.empty()) out += "Nothing to do.\n";
  for (const auto& [name, digest] : plan.images)
    out += fmt::format("  image {}: {}\n", name, digest.substr(0, 19));
  for (const auto& node : plan.nodes) out += render_node(plan, node, verbose);
  if (!plan.unchanged.empty()) out += "  unchanged: " + joined(plan.unchanged) + "\n";
  for (const auto& note : plan.notes) out += "  note: " + note + "\n";
  return plan.empty() ? out : out + render_destroys(plan);
}

}  // namespace muster
