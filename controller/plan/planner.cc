#include "controller/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/digest.h"
#include "base/json_dump.h"
#include "controller/locate/pairing.h"
#include "controller/plan/context.h"
#include "controller/plan/disks.h"
#include "controller/plan/gpu_policy.h"
#include "controller/plan/hardware.h"
#include "controller/plan/lint.h"
#include "controller/plan/rails_seen.h"
#include "controller/plan/simulated.h"

namespace muster {
namespace {

constexpr DurationMs kInventory = 5 * kMinute, kImage = 45 * kMinute;
constexpr DurationMs kSteps = 30 * kMinute, kStage = 20 * kMinute, kCheck = 40 * kMinute,
                     kDrain = 24 * 60 * kMinute;
// Beside the boot: the provider's part (controller/provider_install.h).
constexpr DurationMs kReinstall = 90 * kMinute;

struct Stage {
  std::string playbook;
  int number = 1;
};

// Everything known about one node before its actions are written down.
struct Draft {
  const NodeSpec* spec = nullptr;
  const NodeObservation* seen = nullptr;
  NodeDisks disks;
  bool imaging = false;
  std::string unlike;   // other hardware than declared, in words: it is not installed
  bool serves = false;  // only lets others in (add_servers)
  std::vector<PlannedStep> configure, accept;
  std::map<std::string, std::vector<PlannedStep>> cluster;  // by playbook
  std::vector<PlannedStep> accept_cluster;
  std::string digest;            // of its configuration
  std::string last;              // id of its last action so far
  std::set<std::string> behind;  // leaders' actions that come before it for certain
};

// An action with steps that a leader does for others, who do not go on without it.
struct Led {
  std::string action, node;
  std::set<std::string> behind;          // as of that node
  std::vector<const NodeSet*> audience;  // for whom
};

Json steps_json(const std::vector<wire::Step>& steps) {
  Json out = Json::array();
  for (const auto& s : steps) out.push_back(wire::to_json(s));
  return out;
}
std::vector<wire::Step> bare(const std::vector<PlannedStep>& planned) {
  std::vector<wire::Step> out;
  for (const auto& p : planned) out.push_back(p.step);
  return out;
}

// Parameters of a `steps` or `check` action. The ring is for steps that want the next live node
// (controller/run/narrow.h): one for all of them, where they are about the same nodes.
Json order_params(const std::vector<PlannedStep>& steps, bool check) {
  Json params = {
      {"steps", steps_json(bare(steps))}, {"mode", check ? "check" : "apply"}, {"stop_on_failure", !check}};
  std::map<std::string, const NodeSet*> rings;
  std::set<const NodeSet*> different;
  for (const auto& s : steps)
    if (s.about && s.step.params.value("next_live", false)) different.insert(rings[s.step.id] = s.about);
  if (different.size() == 1) params["ring"] = (*different.begin())->ring;
  if (different.size() > 1)
    for (const auto& [id, set] : rings) params["rings"][id] = set->ring;
  return params;
}

// The steps' own deadlines count: a burn-in takes hours.
DurationMs check_timeout(const std::vector<wire::Step>& steps) {
  DurationMs sum = 5 * kMinute;
  for (const auto& step : steps) {
    const auto it = step.params.find("deadline_seconds");
    if (it != step.params.end() && it->is_number())
      sum += it->get<int64_t>() * kSecond;
    else
      sum += 2 * kMinute;
  }
  return std::max(kCheck, sum);
}

// Steps among which the node restarts wait for its firmware, too.
DurationMs with_restart(DurationMs time, const std::vector<wire::Step>& steps, const Spec& spec) {
  const bool restarts =
      std::any_of(steps.begin(), steps.end(), [](const wire::Step& s) { return s.module == "reboot"; });
  return restarts ? time + spec.limits.boot : time;
}

class Planner {
 public:
  explicit Planner(const PlannerInput& input) : in_(input), spec_(input.spec) {
    if (spec_.lab_acceptance) simulated_.emplace(*spec_.lab_acceptance);
  }

  Result<PlanOutcome> run() {
    plan_.cluster = spec_.cluster;
    plan_.follows = in_.follows;
    plan_.spec_revision = in_.revision;
    plan_.simulated = spec_.lab;
    plan_.profile = profile();
    plan_.limits = {
        spec_.limits.parallel_imaging, spec_.limits.parallel_netboot, spec_.limits.power_stagger,
        spec_.limits.failure_budget < 0 ? PlanLimits{}.failure_budget : spec_.limits.failure_budget,
        spec_.limits.netboot};
    address_ = in_.controller_address.empty() ? provisioning_address(spec_) : in_.controller_address;
    find_machines();
    choose_nodes();
    if (drains()) {
      write_drain();
    } else if (!wake() && !discover()) {
      for (auto& draft : drafts_) prepare(draft);
      drop_unlike();
      refuse_shared_disks();
      drop_unchanged();
      add_servers();
      check_storage_leaders();
      const bool fine = problems_.empty() && refusals_.empty();
      if (fine && drafts_.empty() && !in_request_skips() && !hopeless_.empty())
        write_discovery(std::move(hopeless_));
      else if (fine)
        write_actions();
    }
    if (!problems_.empty()) {
      std::string all;
      for (const auto& p : problems_) all += (all.empty() ? "" : "\n") + p;
      return fail(Code::invalid, all);
    }
    if (refusals_.empty())
      for (const auto& problem : lint_plan(plan_)) problems_.push_back(problem);
    if (refusals_.empty()) check_adopted_are_kept();
    if (!problems_.empty())
      return fail(Code::failed, "the planner made a plan that lint refuses: " + problems_.front());
    return PlanOutcome{std::move(plan_), std::move(refusals_)};
  }

 private:
  RequestKind kind() const { return in_.request.kind; }
  const std::string& profile() const {
    return in_.request.profile.empty() ? spec_.acceptance_profile : in_.request.profile;
  }
  bool drains() const { return kind() == RequestKind::drain || kind() == RequestKind::undrain; }
  void refuse(const std::string& node, const std::string& rule, const std::string& message) {
    refusals_.push_back({node, rule, message});
  }

  void choose_nodes() {
    static const NodeObservation kNever;
    const auto& wanted = in_.request.nodes;
    if (wanted.empty() && (asks_for_image() || kind() == RequestKind::adopt || drains()))
      problems_.push_back("name the nodes");
    for (const auto& name : wanted)
      if (!spec_.node(name))
        problems_.push_back(fmt::format("there is no node '{}' in the spec{}", name, suggestion(name)));
    for (const auto& node : spec_.nodes) {
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), node.name) == wanted.end()) continue;
      const auto seen = in_.nodes.find(node.name);
      Draft draft;
      draft.spec = &node;
      draft.seen = seen == in_.nodes.end() ? &kNever : &seen->second;
      if (draft.seen->held_by == HeldBy::an_operator) {
        hold(node.name, draft.seen->reason, !wanted.empty());
        continue;
      }
      if (refuse_own(draft)) continue;
      if (draft.seen->state == "drained" && wanted.empty()) {
        plan_.left_out.push_back(node.name);
        plan_.notes.push_back(node.name + " is left out: it is drained; `muster undrain " + node.name +
                              "` gives it back");
        continue;
      }
      if (node.adopt.declared() ? !may_plan_adopted(draft, !wanted.empty())
                                : !may_plan_installed(node.name) || !may_reach(draft, !wanted.empty()))
        continue;
      drafts_.push_back(std::move(draft));
    }
  }
  std::string own_sign(const NodeSpec& node) const {
    const auto known = in_.nodes.find(node.name);
    if (known == in_.nodes.end()) return sign_of_own_machine(in_.own, node, "", nullptr);
    const NodeObservation& seen = known->second;
    const auto& facts = seen.facts ? seen.facts : seen.machine;
    return sign_of_own_machine(in_.own, node, seen.product_uuid, facts ? &*facts : nullptr);
  }
  // The machine under the controller's feet keeps its system, whatever the spec and the request say.
  bool refuse_own(const Draft& d) {
    if (d.spec->adopt.declared() && !asks_for_image()) return false;
    const std::string sign = own_sign(*d.spec);
    if (sign.empty()) return false;
    refuse(d.spec->name, "own-machine",
           fmt::format("the controller runs on this machine ({}): it is never installed or switched off from "
                       "here. To manage it with the system it has, declare it with 'adopt' and without "
                       "image, mac and power: `muster node add {} --adopt HOST`",
                       sign, d.spec->name));
    return true;
  }
  // On it, not even a disk that the spec says to format over what it holds: that may be the controller's.
  void refuse_own_disks(const Draft& d) {
    if (d.disks.destroys.empty()) return;
    const std::string sign = own_sign(*d.spec);
    if (sign.empty()) return;
    const auto& facts = *d.seen->facts;
    for (const auto& lost : d.disks.destroys) {
      const auto blank = std::find_if(facts.disks.begin(), facts.disks.end(), [&](const DiskFacts& disk) {
        return disk.serial == lost.serial && disk.wwid == lost.wwid && disk.blank && !disk.mounted;
      });
      if (blank == facts.disks.end())
        refuse(d.spec->name, "own-machine",
               fmt::format("the controller runs on this machine ({}), and disk {} holds {}: here only blank "
                           "disks are formatted; wipe it by hand if nobody needs it",
                           sign, lost.serial, lost.content));
    }
  }
  bool asks_for_image() const { return kind() == RequestKind::reimage || kind() == RequestKind::admit; }
  bool may_plan_installed(const std::string& node) {
    if (kind() != RequestKind::adopt) return true;
    problems_.push_back(fmt::format("{} is declared as a node that muster installs, not with 'adopt'", node));
    return false;
  }
  // Nothing but its own agent can reach an adopted node, and nothing but `adopt` brings that agent back.
  bool may_plan_adopted(const Draft& d, bool named) {
    const std::string& name = d.spec->name;
    if (kind() == RequestKind::adopt) return true;
    if (asks_for_image()) {
      refuse(name, "adopted-node",
             "it was adopted with the operating system it had, and is never re-imaged; to have muster "
             "install it, declare image, mac, power and the disk group 'os' instead of 'adopt'");
      return false;
    }
    if (in_installed(d)) return true;
    const bool ever = d.seen->mode.has_value();
    const std::string why = fmt::format("{}; `muster node add {} --adopt {}` {}",
                                        ever ? "its agent does not answer" : "it was never adopted", name,
                                        d.spec->adopt.host, ever ? "starts it again" : "does it");
    return out_of_reach(name, why, named);
  }
  bool out_of_reach(const std::string& name, const std::string& why, bool named) {
    if (named) {
      refuse(name, "not-running", why);
      return false;
    }
    plan_.left_out.push_back(name);
    plan_.notes.push_back(name + " is left out: " + why);
    return false;
  }
  // Without a BMC there is nobody to wake it and nobody to boot it but the agent of the system it runs.
  static bool rented(const NodeSpec& node) { return node.power.driver == "sakura-phy"; }
  static bool in_band(const NodeSpec& node) { return node.power.driver == "ssh" || rented(node); }
  // Only what muster never installed, and what nobody knows better of: everything on its disks may be lost.
  static bool provider_installs(const Draft& d) {
    return rented(*d.spec) && !d.spec->power.install_image.empty() && !in_ram(d) && !in_installed(d) &&
           !d.seen->doubtful && d.seen->image_digest.empty();
  }
  bool may_reach(const Draft& d, bool named) {
    if (!in_band(*d.spec) || in_ram(d) || in_installed(d)) return true;
    const std::string& name = d.spec->name;
    if (rented(*d.spec)) {
      if (drains() || asleep(d) || provider_installs(d)) return true;
      const bool ours = d.seen->doubtful || !d.seen->image_digest.empty();
      return out_of_reach(
          name,
          ours ? fmt::format("its agent does not answer, and its provider cannot boot it from the network; "
                             "`muster up` powers it on and waits for it. To have its provider install it "
                             "anew, with everything on its disks lost: `muster node rm {}`, then `muster up`",
                             name)
               : std::string("it has no agent, and its provider cannot boot it from the network; with "
                             "power.install in the spec the provider installs it anew, with everything on "
                             "its disks lost"),
          named);
    }
    return out_of_reach(
        name,
        d.seen->mode.has_value()
            ? "its agent does not answer, and nothing here can switch it (power driver ssh)"
            : fmt::format("it has no BMC (power driver ssh) and no agent yet; adopt the system it runs with "
                          "`muster node add {} --adopt HOST`, then declare it with image, mac, power and the "
                          "disk group 'os' instead of 'adopt'",
                          name),
        named);
  }
  // Behind everything that decides: whatever else goes wrong in here, no plan does this to a host that muster
  // did not install.
  void check_adopted_are_kept() {
    for (const auto& action : plan_.actions) {
      const NodeSpec* node = spec_.node(action.node);
      const bool replaces = action.kind == ActionKind::netboot || action.kind == ActionKind::image ||
                            action.kind == ActionKind::boot_disk || action.kind == ActionKind::power_off;
      if (node && node->adopt.declared() && replaces)
        problems_.push_back(action.id + ": not on an adopted node");
      if (node && (replaces || action.kind == ActionKind::wake) && !own_sign(*node).empty())
        problems_.push_back(action.id + ": not on the controller's own machine");
    }
  }
  void hold(const std::string& node, const std::string& reason, bool named) {
    if (named)
      return refuse(
          node, "node-held",
          fmt::format("quarantined {}; `muster node quarantine {} --release` gives it back", reason, node));
    plan_.left_out.push_back(node);
    plan_.notes.push_back(fmt::format("{} is left out: quarantined {}", node, reason));
  }
  std::string suggestion(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& n : spec_.nodes) names.push_back(n.name);
    const std::string near = nearest_spelling(name, names);
    return near.empty() ? "" : ", did you mean '" + near + "'?";
  }

  // Installed, or perhaps: and its agent says nothing. It reboots, lost its power, is cut off, or is broken:
  // nobody knows from here.
  bool asleep(const Draft& d) const {
    if (kind() != RequestKind::up || d.spec->adopt.declared() || d.seen->online) return false;
    return d.seen->doubtful || (d.seen->facts && !d.seen->image_digest.empty());
  }
  // True when a plan was made that only wakes them; what is to be done with them, and with the others, is
  // planned when they answer. One that did not answer in such a run is left alone until somebody names it.
  bool wake() {
    std::vector<Draft> silent, rest;
    const auto& named = in_.request.nodes;
    for (auto& d : drafts_) {
      const std::string& name = d.spec->name;
      if (!asleep(d)) {
        rest.push_back(std::move(d));
      } else if (d.seen->state == "quarantined" &&
                 std::find(named.begin(), named.end(), name) == named.end()) {
        plan_.left_out.push_back(name);
        plan_.notes.push_back(
            fmt::format("{} is left out: its agent is silent; `muster up --limit {}` powers it on and waits "
                        "for it, `muster reimage {}` installs it anew",
                        name, name, name));
      } else {
        silent.push_back(std::move(d));
      }
    }
    drafts_ = std::move(rest);
    if (silent.empty() || in_.request.skip_unseen) return false;
    plan_.kind = "wake";
    for (auto& d : silent) {
      plan_.nodes.push_back(d.spec->name);
      plan_.notes.push_back(fmt::format(
          "{}: {}", d.spec->name,
          d.seen->doubtful
              ? "its agent was not heard since the database was put back: what it runs is not known"
              : "its agent is silent: it is powered on if it is off, and waited for; nothing of it is "
                "written"));
      add(d, "wake", ActionKind::wake, "power", "wait for its agent, power on if off", Json::object(),
          spec_.limits.boot, 1);
    }
    drafts_.clear();
    return true;
  }

  bool in_request_skips() const { return in_.request.skip_unseen || kind() == RequestKind::accept; }

  // True when a discover plan was made: some nodes were never seen. Nodes that a discovery already failed to
  // find do not hold the others: they are looked for again when there is nothing else to do.
  bool discover() {
    std::vector<Draft> seen, unseen;
    for (auto& d : drafts_) (d.seen->facts && !provider_installs(d) ? seen : unseen).push_back(std::move(d));
    const bool all_failed = std::all_of(unseen.begin(), unseen.end(),
                                        [](const Draft& d) { return d.seen->state == "quarantined"; });
    if (!unseen.empty() && !in_request_skips() && (seen.empty() || !all_failed)) {
      write_discovery(std::move(unseen));
      return true;
    }
    drafts_ = std::move(seen);
    hopeless_ = std::move(unseen);
    return false;
  }

  void write_discovery(std::vector<Draft> unseen) {
    drafts_ = std::move(unseen);
    hopeless_.clear();
    plan_.kind = "discover";
    for (auto& d : drafts_) {
      plan_.nodes.push_back(d.spec->name);
      if (!in_ram(d) && !in_installed(d) && !d.spec->adopt.declared()) add_netboot(d);
      add(d, "inventory", ActionKind::inventory, "discover", "look at the hardware", Json::object(),
          kInventory);
    }
    plan_.notes.push_back(std::string(provider_writes_ ? "beside what the provider does, " : "") +
                          "nothing is written to any disk; the plan to install follows from what is found");
  }

  static bool in_ram(const Draft& d) { return d.seen->online && d.seen->mode == wire::Mode::ram; }
  static bool in_installed(const Draft& d) {
    return d.seen->online && (d.seen->mode == wire::Mode::installed || d.seen->mode == wire::Mode::adopted);
  }
  const PlannerImage* image_of(const Draft& d) const {
    const auto it = in_.images.find(d.spec->image);
    return it == in_.images.end() ? nullptr : &it->second;
  }

  void prepare(Draft& d) {
    const PlannerImage* image = image_of(d);
    const HardwareFacts& facts = *d.seen->facts;
    check_identity(d, facts);
    const bool adopted = d.spec->adopt.declared();
    if (!image && !adopted && kind() != RequestKind::accept)
      return refuse(
          d.spec->name, "image-missing",
          d.spec->image.empty() ? "no image is declared" : "image '" + d.spec->image + "' is not built");
    const bool current = image && in_installed(d) && d.seen->image_digest == image->digest;
    d.imaging = !adopted && kind() != RequestKind::accept && (asks_for_image() || !current);
    std::string unlike;
    if (d.imaging)
      for (const auto& difference : unlike_hardware(d.spec->hardware, facts, spec_.lab))
        unlike += (unlike.empty() ? "" : "; ") + difference;
    if (!unlike.empty() && forced(d))
      plan_.notes.push_back(d.spec->name + " is installed as forced, although " + unlike);
    else
      d.unlike = std::move(unlike);
    if (!d.unlike.empty()) return;
    d.disks = choose_disks(spec_, *d.spec, facts,
                           {d.imaging, imaged_here(d, facts), d.imaging ? d.spec->image : "", in_.authority});
    refusals_.insert(refusals_.end(), d.disks.refusals.begin(), d.disks.refusals.end());
    if (!d.disks.refusals.empty()) return;
    refuse_own_disks(d);
    if (d.imaging && d.disks.groups["os"].empty())
      refuse(d.spec->name, "disk-os", "no disk group 'os' is declared");
    render(d, image ? image->digest : "");
  }

  // Another machine than the one that was ordered is not installed; the others do not wait for it.
  void drop_unlike() {
    std::vector<Draft> rest;
    const auto& named = in_.request.nodes;
    for (auto& d : drafts_) {
      const std::string& name = d.spec->name;
      if (d.unlike.empty()) {
        rest.push_back(std::move(d));
        continue;
      }
      const std::string what = fmt::format(
          "{}. Correct `hardware` in the spec or the machine, or install it all the same: `muster plan "
          "{}--limit {} --force {}`",
          d.unlike, kind() == RequestKind::reimage ? "--kind reimage " : "", name, name);
      if (std::find(named.begin(), named.end(), name) != named.end()) {
        refuse(name, "hardware-unlike", what);
        continue;
      }
      plan_.left_out.push_back(name);
      plan_.left_out_rules[name] = "hardware-unlike";
      plan_.notes.push_back(
          fmt::format("{} is left out: it is not installed (hardware-unlike): {}", name, what));
    }
    drafts_ = std::move(rest);
  }

  // Nodes outside the plan count as they were seen last: their disks may be in use.
  void refuse_shared_disks() {
    std::vector<SelectedDisk> selected;
    std::set<std::string> planned;
    for (const auto& d : drafts_) {
      planned.insert(d.spec->name);
      for (const auto& [group, disks] : d.disks.groups)
        for (const auto& disk : disks) selected.push_back({&d.spec->name, &disk, true});
    }
    for (const auto& node : spec_.nodes) {
      const auto seen = in_.nodes.find(node.name);
      if (planned.count(node.name) || seen == in_.nodes.end()) continue;
      const auto& facts = seen->second.facts ? seen->second.facts : seen->second.machine;
      if (!facts) continue;
      for (const auto& disk : facts->disks)
        for (const auto& [name, group] : node.disks)
          if (disk_matches(group.match, disk)) selected.push_back({&node.name, &disk, false});
    }
    for (auto& refusal : refuse_shared(selected)) refusals_.push_back(std::move(refusal));
  }

  // Only an agent of this controller's tells it which image it runs.
  static bool imaged_here(const Draft& d, const HardwareFacts& facts) {
    return !d.seen->image_digest.empty() && d.seen->product_uuid == facts.system.uuid;
  }

  bool forced(const Draft& d) const { return in_.request.force.count(d.spec->name) > 0; }

  void check_identity(const Draft& d, const HardwareFacts& facts) {
    const std::string& bound = d.seen->product_uuid;
    const bool swapped = !bound.empty() && !facts.system.uuid.empty() && bound != facts.system.uuid;
    const bool allowed = forced(d) && (kind() == RequestKind::admit || kind() == RequestKind::reimage);
    if (swapped && !allowed)
      refuse(d.spec->name, "node-swapped",
             fmt::format("another machine answers here: product UUID {} instead of {}; when it was replaced "
                         "on purpose: take {} out of the spec, `muster node rm {}`, and declare it again",
                         facts.system.uuid, bound, d.spec->name, d.spec->name));
  }

  // The same steps twice: as they are sent, and without what happens to be on the disks, for the digest.
  void render(Draft& d, const std::string& image_digest) {
    const std::string prefix = "acceptance/" + profile();
    Json digest = {{"image", image_digest}, {"steps", Json::array()}};
    for (const bool real : {true, false}) {
      NodeContext context(
          {spec_, *d.spec, d.disks, address_, in_.public_values, *cluster_, real, in_.request.force});
      Draft scratch;
      Draft& into = real ? d : scratch;
      std::vector<std::string> repeated;
      std::vector<std::string>& problems = real ? problems_ : repeated;
      for (const auto& name : playbooks_of(d)) {
        const Playbook* playbook = find_playbook(name, real);
        if (playbook && !playbook->not_exercised.empty() && untried_.insert(name).second)
          plan_.notes.push_back("playbook " + name +
                                " was never run on the real thing: " + playbook->not_exercised);
        if (playbook && !playbook->origin.empty() && own_.insert(name).second)
          plan_.notes.push_back(fmt::format("playbook {} is {}", name, playbook->origin));
        if (playbook) render_playbook(*playbook, d, context, into, problems);
      }
      if (!profile().empty())
        if (const Playbook* profile = find_playbook(prefix, real)) {
          context.enter(std::string());
          into.accept = plan_steps(*profile, "node", context, problems);
          into.accept_cluster = plan_steps(*profile, "cluster", context, problems);
          if (simulated_) simulated_->change(into.accept);
          if (simulated_) simulated_->change(into.accept_cluster);
          hold_gpus(d, into, problems);
        }
      if (!real) digest["steps"] = all_steps(scratch);
    }
    d.digest = sha256(dump_ascii(digest));
  }

  // `acceptance: { gpu: mandatory }`.
  void hold_gpus(const Draft& d, Draft& into, std::vector<std::string>& problems) const {
    if (!spec_.gpu_acceptance.mandatory) return;
    if (!in_.gpu_results)
      return problems.push_back("acceptance.gpu is mandatory, and its signed results were not read");
    const auto seen = machines_.find(d.spec->name);
    hold_to_results(*in_.gpu_results, *d.spec, seen == machines_.end() ? nullptr : seen->second, into.accept,
                    problems);
  }

  void find_machines() {
    for (const auto& [name, seen] : in_.nodes)
      if (seen.machine)
        machines_[name] = &*seen.machine;
      else if (seen.facts)
        machines_[name] = &*seen.facts;
    cluster_.emplace(spec_, machines_);
  }

  // What is on the nodes' disks is not looked at: nothing here may format one. Nodes go one after the other,
  // so that what leaves the first is not sent to the second.
  void write_drain() {
    const bool out = kind() == RequestKind::drain;
    plan_.kind = out ? "drain" : "undrain";
    std::string before;
    for (auto& d : drafts_) {
      if (!in_installed(d)) {
        refuse(d.spec->name, "not-running", "its installed system is not online");
        continue;
      }
      // Else a node that never passed its acceptance could become accepted on the way out and back in.
      const std::string& state = d.seen->state;
      if (state != "drained" && state != "draining" && !(out && state == "accepted")) {
        refuse(
            d.spec->name, out ? "not-accepted" : "not-drained",
            fmt::format("it is {}; `muster up --limit {}` configures and measures it", state, d.spec->name));
        continue;
      }
      if (out && !may_leave(d)) continue;
      if (d.seen->facts)
        d.disks = choose_disks(spec_, *d.spec, *d.seen->facts,
                               {false, imaged_here(d, *d.seen->facts), "", in_.authority});
      else if (d.seen->machine)
        d.disks = choose_disks(spec_, *d.spec, *d.seen->machine,
                               {false, imaged_here(d, *d.seen->machine), "", in_.authority});
      d.disks.destroys.clear();
      NodeContext context({spec_, *d.spec, d.disks, address_, in_.public_values, *cluster_, true});
      std::vector<PlannedStep> steps;
      auto names = playbooks_of(d);
      if (out) std::reverse(names.begin(), names.end());
      for (const auto& name : names)
        if (const Playbook* playbook = find_playbook(name, true)) {
          context.enter(name);
          for (auto& step : plan_steps(*playbook, plan_.kind, context, problems_))
            steps.push_back(std::move(step));
        }
      if (steps.empty())
        problems_.push_back("no playbook of " + d.spec->name + " has steps of phase " + plan_.kind);
      plan_.nodes.push_back(d.spec->name);
      plan_.config_digests[d.spec->name] = d.seen->config_digest;
      Action& a =
          add(d, plan_.kind, ActionKind::steps, plan_.kind,
              fmt::format("{} ({} steps)", plan_.kind, steps.size()), order_params(steps, false), kDrain);
      if (!before.empty()) a.after.push_back({before, true});
      before = a.id;
    }
    group_by_node();
  }

  // What only this node has cannot be moved off it.
  bool may_leave(const Draft& d) {
    for (const auto& s : spec_.storage) {
      if (s.engine == "local") continue;
      if (s.engine == "beegfs" && holds_data(s, *d.spec)) {
        refuse(d.spec->name, "drain-leader",
               fmt::format("muster cannot empty its target of storage '{}' (engine beegfs)", s.name));
        return false;
      }
      if (!leads(s, *d.spec)) continue;
      // With three monitors none of Ceph's nodes is special.
      if (s.engine == "ceph" && std::count_if(spec_.nodes.begin(), spec_.nodes.end(),
                                              [&](const NodeSpec& n) { return is_member(s, n); }) >= 3)
        continue;
      refuse(d.spec->name, "drain-leader",
             fmt::format("it is the {} of storage '{}' and cannot be emptied",
                         s.engine == "nfs"    ? "server"
                         : s.engine == "ceph" ? "only monitor"
                                              : "master",
                         s.name));
      return false;
    }
    return true;
  }

  void render_playbook(const Playbook& playbook, const Draft& d, NodeContext& context, Draft& into,
                       std::vector<std::string>& problems) const {
    context.enter(playbook.name);
    const auto image = spec_.images.find(d.spec->image);
    const bool baked = image != spec_.images.end() &&
                       std::count(image->second.bake.begin(), image->second.bake.end(), playbook.name);
    for (const std::string phase : {"image", "node"}) {
      if (phase == "image" && baked) continue;
      const auto steps = plan_steps(playbook, phase, context, problems);
      into.configure.insert(into.configure.end(), steps.begin(), steps.end());
    }
    auto steps = plan_steps(playbook, "cluster", context, problems);
    if (!steps.empty()) into.cluster[playbook.name] = std::move(steps);
  }

  static Json all_steps(const Draft& d) {
    Json out = {{"configure", steps_json(bare(d.configure))},
                {"accept", steps_json(bare(d.accept))},
                {"accept_cluster", steps_json(bare(d.accept_cluster))}};
    for (const auto& [name, steps] : d.cluster) out["cluster"][name] = steps_json(bare(steps));
    return out;
  }

  const std::vector<std::string>& playbooks_of(const Draft& d) const {
    static const std::vector<std::string> kNone;
    const auto it = spec_.roles.find(d.spec->role);
    return it == spec_.roles.end() ? kNone : it->second;
  }
  const Playbook* find_playbook(const std::string& name, bool complain) {
    const auto it = in_.playbooks.find(name);
    if (it != in_.playbooks.end()) return &it->second;
    if (complain && missing_.insert(name).second) {
      std::vector<std::string> names;
      for (const auto& [known, playbook] : in_.playbooks) names.push_back(known);
      const std::string near = nearest_spelling(name, names);
      problems_.push_back("there is no playbook '" + name + "'" +
                          (near.empty() ? "" : ", did you mean '" + near + "'?"));
    }
    return nullptr;
  }

  void drop_unchanged() {
    if (kind() != RequestKind::up && kind() != RequestKind::adopt) return;
    std::vector<Draft> rest;
    for (auto& d : drafts_) {
      const bool same =
          !d.imaging && d.seen->state == "accepted" && d.seen->online && d.seen->config_digest == d.digest;
      if (same && !forced(d) && d.disks.refusals.empty())
        plan_.unchanged.push_back(d.spec->name);
      else
        rest.push_back(std::move(d));
    }
    drafts_ = std::move(rest);
  }

  // Shared file systems are exported to declared nodes one by one: one that is new needs a step on the
  // server, which this plan may not be about. That step alone is taken, and only where what is declared
  // changed since the server was configured.
  void add_servers() {
    if (kind() == RequestKind::accept || in_.request.nodes.empty() || drafts_.empty()) return;
    for (const auto& s : spec_.storage) {
      if (s.engine != "nfs" && s.engine != "moosefs") continue;
      const NodeSpec* server = storage_leader(spec_, s);
      if (!server) continue;
      if (std::any_of(drafts_.begin(), drafts_.end(), [&](const Draft& d) { return d.spec == server; }))
        continue;  // all its sections
      const auto seen = in_.nodes.find(server->name);
      if (seen != in_.nodes.end()) add_server(*server, seen->second, s.name);
    }
    const auto by_place = [](const Draft& a, const Draft& b) { return a.spec < b.spec; };  // as in the spec
    std::sort(drafts_.begin(), drafts_.end(), by_place);
  }
  void add_server(const NodeSpec& node, const NodeObservation& seen, const std::string& storage) {
    Draft d;
    d.spec = &node;
    d.seen = &seen;
    d.serves = true;
    const auto& facts = seen.facts ? seen.facts : seen.machine;
    if (!in_installed(d) || !facts || seen.held_by == HeldBy::an_operator) {
      plan_.notes.push_back(
          fmt::format("{} serves storage '{}' and does not take part: a node that is new to it cannot mount "
                      "it before `muster up` reached {}",
                      node.name, storage, node.name));
      return;
    }
    d.disks = choose_disks(spec_, node, *facts, {false, imaged_here(d, *facts), "", in_.authority});
    d.disks.destroys.clear();
    const PlannerImage* image = image_of(d);
    render(d, image ? image->digest : "");
    if (d.digest == seen.config_digest) return;
    d.digest = seen.config_digest;  // the rest of what changed is for a plan that is about it
    d.configure.clear();
    d.accept.clear();
    d.accept_cluster.clear();
    const auto other = [](const PlannedStep& s) {
      return s.step.module != "nfs_server" && s.step.module != "moosefs_master";
    };
    for (auto it = d.cluster.begin(); it != d.cluster.end();) {
      it->second.erase(std::remove_if(it->second.begin(), it->second.end(), other), it->second.end());
      it = it->second.empty() ? d.cluster.erase(it) : std::next(it);
    }
    if (d.cluster.empty()) return;
    plan_.notes.push_back(
        fmt::format("{} lets the others mount storage '{}'; nothing else happens there", node.name, storage));
    plan_.serving.push_back(node.name);
    drafts_.push_back(std::move(d));
  }

  // Behind an empty master or monitor in the place of a lost one, everybody's files are gone from sight:
  // nothing starts where it is certain that the leader has no metadata for the data that is there. The agent
  // never makes it either, so naming the leader is no risk: that is how it is installed again before its
  // metadata is brought back.
  void check_storage_leaders() {
    if (kind() == RequestKind::accept) return;
    for (const auto& s : spec_.storage) {
      const auto members = std::count_if(spec_.nodes.begin(), spec_.nodes.end(),
                                         [&](const NodeSpec& n) { return is_member(s, n); });
      if (s.engine != "moosefs" && (s.engine != "ceph" || members >= 3))
        continue;  // of three monitors a new one joins the others
      const auto leader =
          std::find_if(drafts_.begin(), drafts_.end(), [&](const Draft& d) { return leads(s, *d.spec); });
      // One that came along for its own step alone is not asked what it would begin with (add_servers).
      if (leader == drafts_.end() || leader->serves) keep_former_master(s);
      if (leader == drafts_.end() || !lacks_metadata(s, *leader)) continue;
      const std::string& name = leader->spec->name;
      const std::string what = fmt::format("it leads storage '{}' and has no {}, but {} of it", s.name,
                                           s.engine == "ceph" ? "monitor's store" : "metadata", data_on(s));
      const auto& named = in_.request.nodes;
      if (std::find(named.begin(), named.end(), name) != named.end())
        plan_.notes.push_back(fmt::format(
            "{}: {}; it will not begin an empty one: docs/storage.md, losing the metadata", name, what));
      else
        refuse(
            name, "storage-leader",
            fmt::format("{}: an empty one in its place would lose them. When the spec changed who comes "
                        "first, change that back; when {} lost its disk, `muster up --limit {}` installs it "
                        "without beginning anew, and docs/storage.md says how to bring the metadata back",
                        what, name, name));
    }
  }
  // The master of before is stopped so that the declared one takes over: not by a plan in which that one has
  // no part, or none but to let others mount.
  void keep_former_master(const StorageSpec& s) {
    if (s.engine != "moosefs" || s.server.empty()) return;
    const auto declared = in_.nodes.find(s.server);
    if (declared != in_.nodes.end() && declared->second.online && has_metadata(s, declared->second) &&
        was_settled(declared->second))
      return;
    for (const Draft& d : drafts_)
      if (is_member(s, *d.spec) && has_metadata(s, *d.seen))
        refuse(
            d.spec->name, "storage-leader",
            fmt::format("it may be the master of storage '{}', {} is to be, and this plan does not make it "
                        "the master: nobody would be. `muster up` without --limit",
                        s.name, s.server));
  }
  // A former master that came back has metadata, too, and does not lead: it was held, or looked at since.
  static bool was_settled(const NodeObservation& seen) {
    return seen.state == "accepted" || seen.state == "degraded";
  }
  static bool has_metadata(const StorageSpec& s, const NodeObservation& seen) {
    if (!seen.facts) return false;
    const auto found = seen.facts->storage_metadata.find(s.engine);
    return found != seen.facts->storage_metadata.end() && found->second;
  }
  bool leads(const StorageSpec& s, const NodeSpec& node) const {
    const NodeSpec* leader = storage_leader(spec_, s);
    return leader && leader->name == node.name;
  }
  // Certain: what is only not known is left to the agent, which looks.
  bool lacks_metadata(const StorageSpec& s, const Draft& d) const {
    if (!d.disks.refusals.empty() || data_on(s).empty()) return false;
    if (d.imaging && !d.disks.os_is_ours) return true;
    // Data and no metadata at the same moment. Without data of its own it may have been seen before either
    // was made.
    // A declared master may take it from a copy, which its agent looks for before the former one is stopped.
    if (s.engine == "moosefs" && !s.server.empty()) return false;
    const auto found = d.seen->facts->storage_metadata.find(s.engine);
    return found != d.seen->facts->storage_metadata.end() && !found->second &&
           holds_our_data(spec_, *d.spec, s, *d.seen->facts);
  }
  std::string data_on(const StorageSpec& s) const {
    std::string out;
    for (const auto& node : spec_.nodes)
      if (const auto seen = machines_.find(node.name);
          seen != machines_.end() && holds_our_data(spec_, node, s, *seen->second))
        out += (out.empty() ? "" : ", ") + node.name;
    return out.empty() ? out : out + (out.find(',') == std::string::npos ? " holds data" : " hold data");
  }

  // ---- actions ----

  Action& add(Draft& d, const std::string& name, ActionKind action, const std::string& phase,
              const std::string& title, Json params, DurationMs timeout, int attempts = 2) {
    Action a{d.spec->name + "/" + name, d.spec->name, action, phase, title, std::move(params)};
    a.timeout = timeout;
    a.max_attempts = attempts;
    if (!d.last.empty()) a.after.push_back({d.last, true});
    d.last = a.id;
    plan_.actions.push_back(std::move(a));
    return plan_.actions.back();
  }

  void add_reinstall(Draft& d) {
    const PowerSpec& power = d.spec->power;
    add(d, "netboot", ActionKind::netboot, "power",
        fmt::format("its provider installs {} anew, then the RAM system is started from it (kexec)",
                    power.install_image),
        {{"reinstall", {{"image", power.install_image}, {"os", power.install_os}}}},
        spec_.limits.netboot + kReinstall, 2);
    provider_writes_ = true;
  }

  void add_netboot(Draft& d) {
    if (provider_installs(d)) return add_reinstall(d);
    const bool own = in_band(*d.spec);
    add(d, "netboot", ActionKind::netboot, "power",
        own ? "hand over to the RAM system (kexec)" : "network boot", Json::object(), spec_.limits.netboot,
        3);
    if (own)
      plan_.notes.push_back(d.spec->name +
                            (rented(*d.spec) ? " cannot be booted from the network" : " has no BMC") +
                            ": its own system starts the RAM system, which goes back to it as long "
                            "as it did not reach the controller; what goes wrong later needs somebody there");
  }

  void write_actions() {
    plan_.kind = plan_kind();
    for (const auto& d : hopeless_) {
      plan_.left_out.push_back(d.spec->name);
      plan_.notes.push_back(d.spec->name + " was never seen and is left out; `muster up --limit " +
                            d.spec->name + "` looks for it again");
    }
    for (auto& d : drafts_) {
      plan_.nodes.push_back(d.spec->name);
      plan_.config_digests[d.spec->name] = kind() == RequestKind::accept ? d.seen->config_digest : d.digest;
      if (kind() == RequestKind::accept) {
        if (!in_installed(d)) refuse(d.spec->name, "not-running", "its installed system is not online");
        continue;
      }
      plan_.destroys.insert(plan_.destroys.end(), d.disks.destroys.begin(), d.disks.destroys.end());
      if (d.imaging) write_image(d);
      if (d.configure.empty()) continue;
      add(d, "configure", ActionKind::steps, "configure",
          fmt::format("configure ({} steps)", d.configure.size()), order_params(d.configure, false),
          with_restart(kSteps, bare(d.configure), spec_));
    }
    if (kind() != RequestKind::accept) {
      write_stages();
      for (auto& d : drafts_)
        if (!d.serves)
          add(d, "look", ActionKind::inventory, "accept", "look at the result", Json::object(), kInventory);
    }
    write_acceptance();
    group_by_node();
    for (const auto& s : spec_.storage) {
      if (s.engine == "beegfs")
        plan_.notes.push_back(
            "storage '" + s.name +
            "' (engine beegfs) has no redundancy: losing a node or a drive loses files of all nodes");
      if (s.engine == "moosefs" && in_.request.force.count(s.server))
        plan_.notes.push_back("storage '" + s.name + "': " + s.server +
                              " may begin from a copy of the metadata of any age, as forced");
    }
    std::map<std::string, std::string> rails;
    for (const auto& d : drafts_)
      if (d.imaging && d.seen->facts) rails[d.spec->name] = rails_seen(spec_, *d.spec, *d.seen->facts);
    for (auto& note : rail_notes(rails)) plan_.notes.push_back(std::move(note));
    for (const auto& storage : spec_.storage)
      if (storage.engine == "moosefs" && !storage.server.empty() && in_.request.force.count(storage.server))
        plan_.notes.push_back(
            fmt::format("storage {}: {} may begin from a copy of the metadata of any age, as forced",
                        storage.name, storage.server));
    if (profile().empty()) plan_.notes.push_back("no acceptance profile is declared: nothing is measured");
    if (auto note = simulated_gpu_note(machines_); !note.empty()) plan_.notes.push_back(std::move(note));
    if (simulated_ && !profile().empty())
      for (auto& note : simulated_->notes(profile())) plan_.notes.push_back(std::move(note));
  }

  std::string plan_kind() const {
    if (drafts_.empty()) return "none";
    if (kind() == RequestKind::accept) return "accept";
    if (kind() == RequestKind::reimage) return "reimage";
    if (kind() == RequestKind::admit) return "admit";
    if (kind() == RequestKind::adopt) return "adopt";
    const bool imaging =
        std::any_of(drafts_.begin(), drafts_.end(), [](const Draft& d) { return d.imaging; });
    return imaging ? "install" : "apply";
  }

  void write_image(Draft& d) {
    const PlannerImage& image = *image_of(d);
    const DiskFacts& disk = d.disks.groups["os"].front();
    plan_.images[d.spec->image] = image.digest;
    if (d.disks.os_is_ours)
      plan_.notes.push_back(
          d.spec->name +
          ": the OS disk carries muster's layout; its unused root slot is written, state is kept");
    if (!in_ram(d)) add_netboot(d);
    wire::ImageJob job;
    job.image = d.spec->image;
    job.digest = image.digest;
    job.manifest_path = image.manifest_path;
    job.base_url = "http://" + address_ + ":7480";
    job.disk_serial = disk.serial;
    job.disk_wwid = disk.wwid;
    job.disk_model = disk.model;
    job.disk_size_bytes = static_cast<int64_t>(disk.size_bytes);
    job.allow_ours = d.disks.os_is_ours;
    job.content_hash = d.disks.os_is_ours ? "" : disk.content_hash;
    job.cluster = spec_.cluster;
    job.authority = in_.authority;
    job.hostname = d.spec->name;
    job.address_cidr = d.spec->address + "/" + prefix_of(spec_.network.provisioning.cidr);
    job.mac = d.spec->mac;
    job.gateway = spec_.network.gateway;
    job.dns = spec_.network.dns;
    job.search = spec_.network.search;
    job.controller_url = "https://" + address_ + ":7443";
    job.console = variable(d, "console", spec_.lab ? "ttyS0" : "");
    job.kernel_options = in_.kernel_options;
    if (const std::string own = variable(d, "kernel_options", ""); !own.empty())
      job.kernel_options += (job.kernel_options.empty() ? "" : " ") + own;
    job.root_size = variable(d, "root_size", "");
    add(d, "image", ActionKind::image, "image", "write image " + d.spec->image, wire::to_json(job), kImage,
        3);
    add(d, "boot", ActionKind::boot_disk, "boot", "boot from disk", {{"digest", image.digest}},
        spec_.limits.boot, 2);
  }

  std::string variable(const Draft& d, const std::string& name, const std::string& fallback) const {
    if (const auto it = d.spec->vars.find(name); it != d.spec->vars.end()) return it->second;
    if (const auto it = spec_.vars.find(name); it != spec_.vars.end()) return it->second;
    return fallback;
  }

  // In the order in which nodes name them first, but behind everything that a role names before it: what one
  // role has between two playbooks of another one comes between them. Where roles contradict each other, the
  // first to name both is right.
  std::vector<std::string> playbooks_in_order() const {
    std::vector<std::string> waiting, out;
    std::map<std::string, std::set<std::string>> behind;
    std::set<std::string> roles;
    for (const auto& d : drafts_) {
      if (!roles.insert(d.spec->role).second) continue;
      const auto& names = playbooks_of(d);
      for (size_t i = 0; i < names.size(); ++i) {
        if (!std::count(waiting.begin(), waiting.end(), names[i])) waiting.push_back(names[i]);
        for (size_t j = 0; j < i; ++j)
          if (!behind[names[j]].count(names[i])) behind[names[i]].insert(names[j]);
      }
    }
    while (!waiting.empty()) {
      auto next = std::find_if(waiting.begin(), waiting.end(), [&](const std::string& name) {
        return std::none_of(waiting.begin(), waiting.end(),
                            [&](const std::string& other) { return behind[name].count(other) > 0; });
      });
      if (next == waiting.end()) next = waiting.begin();
      out.push_back(*next);
      waiting.erase(next);
    }
    return out;
  }

  // Their stages in order of number.
  std::vector<Stage> stages() const {
    std::vector<Stage> out;
    for (const auto& name : playbooks_in_order()) {
      std::set<int> numbers;
      for (const auto& d : drafts_)
        if (const auto it = d.cluster.find(name); it != d.cluster.end())
          for (const auto& s : it->second) numbers.insert(s.stage);
      for (const int n : numbers) out.push_back({name, n});
    }
    return out;
  }

  using StepsOf = std::function<const std::vector<PlannedStep>*(const Draft&)>;

  // One action per node that has steps in this stage, behind everything all nodes did before.
  void write_stage(int number, const std::string& name, const std::string& phase, ActionKind action,
                   const std::string& title, const StepsOf& steps_of) {
    std::vector<std::string> barrier;
    for (const auto& d : drafts_)
      if (!d.last.empty()) barrier.push_back(d.last);
    const int behind = static_cast<int>(plan_.barriers.size());
    bool used = false;
    std::vector<Led> led;
    for (auto& d : drafts_) {
      std::vector<PlannedStep> steps;
      std::vector<const NodeSet*> audience;
      if (const auto* all = steps_of(d))
        for (const auto& s : *all)
          if (s.stage == number) {
            steps.push_back(s);
            if (s.on == "leader" && s.about && !std::count(audience.begin(), audience.end(), s.about))
              audience.push_back(s.about);
          }
      if (steps.empty()) continue;
      const bool check = action == ActionKind::check;
      const DurationMs timeout =
          check ? check_timeout(bare(steps)) : with_restart(kStage, bare(steps), spec_);
      Action& a = add(d, name, action, phase, title, order_params(steps, check), timeout, check ? 1 : 2);
      if (!barrier.empty()) a.behind = behind, used = true;
      put_behind_leaders(d, a);
      if (audience.empty()) continue;
      d.behind.insert(a.id);
      // Of those with the same audience in one stage the last one counts.
      led.erase(std::remove_if(led.begin(), led.end(), [&](const Led& l) { return l.audience == audience; }),
                led.end());
      led.push_back({a.id, d.spec->name, d.behind, std::move(audience)});
    }
    led_.insert(led_.end(), led.begin(), led.end());
    if (used) plan_.barriers.push_back(std::move(barrier));
  }

  // Hard: whoever a leader does something for does not go on without it. Whoever is not concerned does.
  void put_behind_leaders(Draft& d, Action& a) {
    bool newest = true;
    for (auto led = led_.rbegin(); led != led_.rend(); ++led) {
      if (std::none_of(led->audience.begin(), led->audience.end(),
                       [&](const NodeSet* set) { return set->has(*d.spec); }))
        continue;
      if (led->node != d.spec->name && (newest || !d.behind.count(led->action)))
        a.after.push_back({led->action, true});
      newest = false;
      d.behind.insert(led->behind.begin(), led->behind.end());
      d.behind.insert(led->action);
    }
  }

  void write_stages() {
    for (const auto& stage : stages()) {
      const std::string phase = stage.playbook.rfind("storage", 0) == 0 ? "storage" : "cluster";
      write_stage(stage.number, fmt::format("{}-{}", stage.playbook, stage.number), phase, ActionKind::steps,
                  fmt::format("{} stage {}", stage.playbook, stage.number),
                  [&](const Draft& d) -> const std::vector<PlannedStep>* {
                    const auto it = d.cluster.find(stage.playbook);
                    return it == d.cluster.end() ? nullptr : &it->second;
                  });
    }
  }

  // Whom of its peers a node's links are measured with: of many nodes not every pair, but log2 N + 2
  // partners, from which the bad one can be told (controller/locate/).
  std::set<std::string> link_partners(const std::string& node, const Json& peers) const {
    std::set<std::string> measured = {node};
    for (const Json& peer : peers) measured.insert(peer.value("name", ""));
    std::vector<std::string> nodes;
    for (const auto& d : drafts_)
      if (!d.serves && measured.count(d.spec->name)) nodes.push_back(d.spec->name);
    const auto self = std::find(nodes.begin(), nodes.end(), node) - nodes.begin();
    std::set<std::string> out;
    for (const int i : locate::partners(static_cast<int>(nodes.size()), static_cast<int>(self)))
      out.insert(nodes[static_cast<size_t>(i)]);
    return out;
  }

  // "peers_in_plan": true keeps only the peers that take part: a link test needs both ends at work at the
  // same time. A step that has no peer left is left out.
  void keep_peers_in_plan(Draft& d) const {
    std::vector<PlannedStep> kept;
    for (auto& s : d.accept_cluster) {
      if (s.step.params.value("peers_in_plan", false)) {
        s.step.params.erase("peers_in_plan");
        const Json declared = s.step.params.value("peers", Json::array());
        const std::set<std::string> partners = link_partners(d.spec->name, declared);
        Json peers = Json::array();
        for (const Json& peer : declared)
          if (partners.count(peer.value("name", ""))) peers.push_back(peer);
        if (peers.empty()) continue;
        s.step.params["peers"] = std::move(peers);
      }
      kept.push_back(std::move(s));
    }
    d.accept_cluster = std::move(kept);
  }

  void write_acceptance() {
    for (auto& d : drafts_) keep_peers_in_plan(d);
    if (drafts_.size() < spec_.nodes.size())
      plan_.notes.push_back(
          "links are measured between the nodes of this plan only; `muster accept` measures all of them");
    std::set<int> numbers;
    for (auto& d : drafts_) {
      for (auto& s : d.accept) s.stage = 1;
      for (const auto& s : d.accept_cluster) numbers.insert(s.stage);
    }
    write_stage(1, "accept", "accept", ActionKind::check, "acceptance",
                [](const Draft& d) { return &d.accept; });
    for (const int n : numbers)
      write_stage(n, fmt::format("accept-{}", n), "accept", ActionKind::check,
                  fmt::format("acceptance together, stage {}", n),
                  [](const Draft& d) { return &d.accept_cluster; });
  }

  void group_by_node() {
    std::map<std::string, size_t> place;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) place[plan_.nodes[i]] = i;
    std::stable_sort(plan_.actions.begin(), plan_.actions.end(),
                     [&](const Action& a, const Action& b) { return place[a.node] < place[b.node]; });
  }

  const PlannerInput& in_;
  const Spec& spec_;
  std::string address_;
  std::vector<Draft> drafts_;
  std::vector<Draft> hopeless_;  // never seen, and not discovered now
  bool provider_writes_ = false;
  Plan plan_;
  std::vector<Refusal> refusals_;
  std::vector<std::string> problems_;
  std::set<std::string> missing_, untried_, own_;
  std::optional<Simulated> simulated_;
  std::map<std::string, const HardwareFacts*> machines_;
  std::optional<ClusterContext> cluster_;
  std::vector<Led> led_;  // so far, each with steps of its own
};

}  // namespace

Result<PlanOutcome> make_plan(const PlannerInput& input) { return Planner(input).run(); }

std::string provisioning_address(const Spec& spec) {
  if (!spec.network.controller.empty()) return spec.network.controller;
  const std::string& cidr = spec.network.provisioning.cidr;
  const std::string network = cidr.substr(0, cidr.find('/'));
  const auto dot = network.rfind('.');
  return dot == std::string::npos ? network : network.substr(0, dot) + ".1";
}

}  // namespace muster
