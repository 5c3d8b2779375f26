#include "controller/plan/planning.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_dump.h"
#include "base/machine_uuid.h"
#include "controller/engines/engine.h"
#include "controller/power/describe/driver_description.h"

namespace muster {

Planning::Planning(const PlannerInput& input) : in(input), spec(input.spec) {
  if (spec.lab_acceptance) simulated.emplace(*spec.lab_acceptance);
}

const std::string& Planning::profile() const {
  return in.request.profile.empty() ? spec.acceptance_profile : in.request.profile;
}

const PlannerImage* Planning::image_of(const Draft& d) const {
  const auto it = in.images.find(d.spec->image);
  return it == in.images.end() ? nullptr : &it->second;
}

const std::vector<std::string>& Planning::playbooks_of(const Draft& d) const {
  static const std::vector<std::string> kNone;
  const auto it = spec.roles.find(d.spec->role);
  return it == spec.roles.end() ? kNone : it->second;
}

bool provider_installs(const Draft& d) {
  // Any record of an installed or adopted system on the node means that its disks may hold data.
  const bool never_ours = d.seen->image_digest.empty() && d.seen->config_digest.empty() &&
                          (!d.seen->mode || *d.seen->mode == wire::Mode::ram);
  return switched_by(*d.spec) == Switch::provider && !d.spec->power.install_image.empty() && !in_ram(d) &&
         !in_installed(d) && !d.seen->doubtful && never_ours;
}

bool in_ram(const Draft& d) { return d.seen->online && d.seen->mode == wire::Mode::ram; }

bool in_installed(const Draft& d) {
  return d.seen->online && (d.seen->mode == wire::Mode::installed || d.seen->mode == wire::Mode::adopted);
}

bool asleep(const Planning& p, const Draft& d) {
  if (p.kind() != RequestKind::up || d.spec->adopt.declared() || d.seen->online) return false;
  return d.seen->doubtful || (d.seen->facts && !d.seen->image_digest.empty());
}

bool imaged_here(const Draft& d, const HardwareFacts& facts) {
  return !d.seen->image_digest.empty() && machine_of(d.seen->product_uuid) == machine_of(facts.system.uuid);
}

std::string own_sign(const Planning& p, const NodeSpec& node) {
  const auto known = p.in.nodes.find(node.name);
  if (known == p.in.nodes.end()) return sign_of_own_machine(p.in.own, node, "", nullptr);
  const NodeObservation& seen = known->second;
  const auto& facts = seen.facts ? seen.facts : seen.machine;
  return sign_of_own_machine(p.in.own, node, seen.product_uuid, facts ? &*facts : nullptr);
}

bool leads(const Planning& p, const StorageSpec& s, const NodeSpec& node) {
  const NodeSpec* leader = storage_leader(p.spec, s);
  return leader && leader->name == node.name;
}

bool has_quorum(const Planning& p, const StorageSpec& s) {
  const int enough = engine_of(s).quorum;
  return enough > 0 && std::count_if(p.spec.nodes.begin(), p.spec.nodes.end(),
                                     [&](const NodeSpec& n) { return is_member(s, n); }) >= enough;
}

std::string ends_a_hang(const NodeSpec& node) {
  if (!is_switched(node)) return "";
  return switched_by(node) == Switch::provider ? "its provider" : "its BMC";
}

Digest image_digest_of(const Planning& p, const Draft& d) {
  if (!d.slot.empty()) return d.slot_digest;
  if (d.older && !d.imaging) return Digest(d.seen->image_digest);
  const PlannerImage* image = p.image_of(d);
  return image ? Digest(image->digest) : Digest();
}

// True if the node may have jobs or serve storage. The services of a quarantined node keep running.
bool may_work(const Draft& d) {
  switch (d.seen->state) {
    case NodeState::accepted:
    case NodeState::degraded:
    case NodeState::quarantined:
      return true;
    case NodeState::installing:
      return !d.seen->config_digest.empty();  // it was accepted before
    case NodeState::unknown:
    case NodeState::discovered:
    case NodeState::unadmitted:
    case NodeState::draining:
    case NodeState::drained:
      return false;
  }
  return false;
}

bool leaves_work(const Planning& p, const Draft& d) {
  const bool requested =
      p.kind() == RequestKind::reimage || p.rolls_back() || (p.in.request.reimage && d.older && d.imaging);
  return requested && in_installed(d) && may_work(d);
}

Action& add(Planning& p, Draft& d, NewAction what) {
  Action a{d.spec->name + "/" + what.name, d.spec->name,          what.kind,
           std::move(what.phase),          std::move(what.title), std::move(what.params)};
  a.timeout = what.timeout;
  a.max_attempts = what.attempts;
  if (!d.last.empty()) a.after.push_back({d.last, true});
  d.last = a.id;
  p.plan.actions.push_back(std::move(a));
  return p.plan.actions.back();
}

void add_netboot(Planning& p, Draft& d) {
  // The provider's reinstallation, besides the boot (controller/power/provider/provider_install.h).
  constexpr DurationMs kReinstall = 90 * kMinute;
  const PowerSpec& power = d.spec->power;
  if (provider_installs(d)) {
    const Json params = {{"reinstall", {{"image", power.install_image}, {"os", power.install_os}}}};
    add(p, d,
        {"netboot", ActionKind::netboot, "power",
         fmt::format("its provider reinstalls it ({}), then the new system starts the RAM system (kexec)",
                     power.install_image),
         params, p.spec.limits.netboot + kReinstall, 2});
    Destruction lost;
    lost.node = d.spec->name;
    lost.model = "every disk";
    lost.content = "content unknown";
    lost.why = "its provider reinstalls it (" + power.install_image + ")";
    lost.every_disk = true;
    p.plan.destroys.push_back(std::move(lost));
    return;
  }
  const Switch by = switched_by(*d.spec);
  Action& netboot = add(p, d,
                        {"netboot", ActionKind::netboot, "power",
                         !can_netboot(by)       ? "start the RAM system (kexec)"
                         : by == Switch::person ? "network boot, power switched by hand"
                                                : "network boot",
                         Json::object(), p.spec.limits.netboot, 3});
  if (by != Switch::person && !d.pause.empty()) add_steps(netboot.params, d.pause);
  if (by == Switch::person)
    p.plan.notes.push_back(fmt::format(
        "an operator must control the power of {}{} by hand: the run shows when, and waits up to {}",
        d.spec->name, d.spec->power.address.empty() ? "" : " (" + d.spec->power.address + ")",
        to_human(d.spec->power.within)));
  if (!can_netboot(by))
    p.plan.notes.push_back(
        d.spec->name + (by == Switch::provider ? " cannot be booted from the network" : " has no BMC") +
        ": its own system starts the RAM system, which returns to that system if it cannot reach "
        "the controller; a later fault requires an operator at the machine");
}

void group_by_node(Planning& p) {
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < p.plan.nodes.size(); ++i) place[p.plan.nodes[i]] = i;
  std::stable_sort(p.plan.actions.begin(), p.plan.actions.end(),
                   [&](const Action& a, const Action& b) { return place[a.node] < place[b.node]; });
}

ActionParams order_params(const std::vector<PlannedStep>& steps, bool check) {
  ActionParams params = Json{{"mode", check ? "check" : "apply"}, {"stop_on_failure", !check}};
  add_steps(params, steps);
  return params;
}

void add_steps(ActionParams& params, const std::vector<PlannedStep>& steps) {
  std::vector<SharedText> texts;
  std::map<std::string, const NodeSet*> rings;
  std::set<const NodeSet*> different;
  for (const auto& s : steps) {
    texts.push_back(s.text());
    if (s.about && s.step().params.value("next_live", false)) different.insert(rings[s.step().id] = s.about);
  }
  params.set_steps(std::move(texts));
  if (different.size() == 1) params.set("ring", SharedText((*different.begin())->ring));
  if (different.size() < 2) return;
  SharedText by_step;
  for (const auto& [id, set] : rings) {
    by_step.add(
        std::make_shared<const std::string>((by_step.size() == 0 ? "{" : ",") + dump_json(Json(id)) + ":"));
    by_step.add(set->ring);
  }
  by_step.add_literal("}");
  params.set("rings", std::move(by_step));
}

DurationMs with_restart(DurationMs time, const std::vector<PlannedStep>& steps, const Spec& spec) {
  const bool restarts = std::any_of(steps.begin(), steps.end(),
                                    [](const PlannedStep& s) { return s.step().module == "reboot"; });
  return restarts ? time + spec.limits.boot : time;
}

}  // namespace muster
