#include "controller/plan/passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/machine_uuid.h"

namespace muster {
namespace {

constexpr DurationMs kWrite = 45 * kMinute, kResume = 15 * kMinute;
// Added to the time of one boot, because the node may lose its power or its link while it commits.
constexpr DurationMs kCommit = 5 * kMinute;
// Added to the drain timeout, so that the step's own deadline passes before the action's: the step's error
// names the jobs that did not end.
constexpr DurationMs kSpare = 15 * kMinute;
// Slurm's controller, or the master of a storage section, may be restarting at the same time.
constexpr int kResumeAttempts = 60;

struct Slots {
  std::string running, other;
  std::string why;  // not empty: why the slots are uncertain, or that the running slot is not the default
};

std::string other_of(const std::string& slot) { return slot == "a" ? "b" : "a"; }

const SlotFacts* slot_of(const BootFacts& boot, const std::string& letter) {
  const auto found = boot.slots.find(letter);
  return found == boot.slots.end() ? nullptr : &found->second;
}

// The last inventory may be older than a commit or the end of a trial; the image digest is newer, because the
// agent reports it at every boot. An accepted node runs its default slot, since it is accepted in a new slot
// only after the commit. If the result is wrong nevertheless, the agent rejects the order.
Slots slots_of(const Draft& d) {
  const BootFacts& boot = d.seen->facts->boot;
  if (boot.running != "a" && boot.running != "b")
    return {"", "", "its agent does not report which root slot it runs from"};
  Slots out{boot.running, other_of(boot.running), ""};
  const SlotFacts* seen = slot_of(boot, out.running);
  if (!seen || seen->digest == d.seen->image_digest || d.seen->image_digest.empty()) return out;
  const SlotFacts* other = slot_of(boot, out.other);
  if (!other || other->digest != d.seen->image_digest)
    out.why = "it runs an image that is not recorded for either of its root slots";
  else if (boot.standing != out.other)
    out.why = "the system that it runs is not committed";
  else
    std::swap(out.running, out.other);
  return out;
}

// Returns why neither a re-image in place nor a rollback is possible; "" if nothing prevents it: the node is
// in service, in a known slot, and installed by muster on this machine.
std::string why_no_trial(const Planning& p, const Draft& d, Slots& slots) {
  if (d.spec->adopt.declared()) return "it was adopted with its existing operating system";
  if (!own_sign(p, *d.spec).empty()) return "the controller runs on this machine";
  if (!d.seen->online || d.seen->mode != wire::Mode::installed) return "its installed system is not online";
  if (d.seen->doubtful)
    return "since the database was restored, its agent has not reported which system it runs";
  // A rollback is also allowed for quarantined nodes: it is meant for nodes that failed in their new system.
  const NodeState state = d.seen->state;
  const bool works = state == NodeState::accepted || state == NodeState::degraded ||
                     (p.rolls_back() && state == NodeState::quarantined);
  if (!works) return fmt::format("its state is {}, not accepted", to_string(state));
  if (!imaged_here(d, *d.seen->facts)) return "muster has no record of installing this machine";
  slots = slots_of(d);
  if (!slots.why.empty()) return slots.why;
  const std::string& no_trial = d.seen->facts->boot.no_trial;
  if (!no_trial.empty()) return no_trial;
  if (d.disks.groups.count("os") == 0 || !d.disks.os_is_ours)
    return "its OS disk does not have muster's layout";
  if (!d.disks.destroys.empty())
    return "some of its data disks would be formatted, which rolling back to the old slot would not undo";
  return "";
}

std::string why_not_in_place(const Planning& p, const Draft& d, Slots& slots) {
  if (p.in.request.through_ram) return "as requested";
  if (const std::string why = why_no_trial(p, d, slots); !why.empty()) return why;
  const PlannerImage* image = p.image_of(d);
  if (!image || !image->trial)
    return fmt::format(
        "image '{0}' does not roll back by itself after a failed boot: run `muster image build {0} "
        "--rebuild`",
        d.spec->image);
  if (p.in.programs.empty()) return "the controller has no agent binary to install with the image";
  const SlotFacts* running = slot_of(d.seen->facts->boot, slots.running);
  const std::string declared = installed_address(p.spec, *d.spec);
  if (running && !running->address.empty() && running->address != declared)
    return fmt::format("its address is now {}, but the spec declares {}", running->address, declared);
  return "";
}

std::string why_no_rollback(const Planning& p, const Draft& d, Slots& slots) {
  if (const std::string why = why_no_trial(p, d, slots); !why.empty()) return why;
  const SlotFacts* other = slot_of(d.seen->facts->boot, slots.other);
  if (!other || other->stage.empty() || other->digest.empty())
    return fmt::format("nothing was ever written to its other root slot ({})", slots.other);
  if (other->stage != "written")
    return fmt::format("its other root slot ({}) is only partly written ({})", slots.other, other->stage);
  if (!other->fault.empty()) return other->fault;
  if (other->image.empty())
    return fmt::format(
        "its other root slot ({}) was written by an earlier version of muster, whose systems do not roll "
        "back by themselves",
        slots.other);
  if (!other->trial) {
    // A re-image writes that slot, and the slot that runs now becomes the other one, so the running system
    // must be one that rolls back by itself.
    const SlotFacts* running = slot_of(d.seen->facts->boot, slots.running);
    return fmt::format(
        "its other root slot ({}) holds a system that may not roll back by itself after a failed boot; "
        "re-image the node in place {}, then a rollback is possible",
        slots.other, running && running->trial ? "once" : "twice");
  }
  if (other->image != d.spec->image)
    return fmt::format("its other root slot ({}) holds image '{}', but the spec declares '{}'", slots.other,
                       other->image, d.spec->image);
  const std::string declared = installed_address(p.spec, *d.spec);
  if (!other->address.empty() && other->address != declared)
    return fmt::format("its address in the other root slot ({}) is {}, but the spec declares {}", slots.other,
                       other->address, declared);
  return "";
}

bool fits_on_esp(const Draft& d, const PlannerImage& image) {
  const uint64_t room = d.seen->facts ? d.seen->facts->boot.room : 0;
  return room == 0 || image.boot_size <= room;
}

// Refuses an image whose kernel and initrd do not fit beside those of the standing system, whichever way the
// node takes: through the RAM system the other slot is written, too.
void refuse_without_room(Planning& p, const Draft& d) {
  const PlannerImage* image = p.image_of(d);
  if (p.rolls_back() || !image || !d.disks.os_is_ours || fits_on_esp(d, *image)) return;
  p.refuse(d.spec->name, "esp-room",
           fmt::format(
               "kernel and initrd of image '{}' need {} MiB on the EFI system partition, but beside those of "
               "the standing system there is space for {} MiB: build the image with a smaller initrd",
               d.spec->image, image->boot_size >> 20, d.seen->facts->boot.room >> 20));
}

const char* limits_of(const Planning& p) { return p.in.request.batch ? "rollout" : "limits"; }

// Refuses a trial that is shorter than the acceptance: it would roll back every system, even a good one.
void refuse_short_trial(Planning& p, const Draft& d) {
  if (d.slot.empty() || d.seen->accept_took <= p.spec.limits.trial) return;
  p.refuse(d.spec->name, "trial-short",
           fmt::format(
               "{0}.trial is {1}, but the last configuration and acceptance of the node took {2}: every new "
               "system would be rolled back before it is committed; raise {0}.trial{3}",
               limits_of(p), to_human(p.spec.limits.trial), to_human(d.seen->accept_took),
               p.rolls_back() || p.in.request.batch ? "" : ", or use `--through-ram`"));
}

// Returns the time limit for writing the whole partition at half the allowed rate.
DurationMs write_time(const Planning& p, const Draft& d) {
  const int64_t rate = p.spec.limits.image_write_rate;
  if (rate <= 0) return kWrite;
  uint64_t size = 0;
  for (const auto& part : d.disks.groups.at("os").front().partitions)
    if (part.label == "muster-root-" + d.slot) size = part.size_bytes;
  const double seconds = 2.0 * static_cast<double>(size) / static_cast<double>(rate);
  return std::max(kWrite, static_cast<DurationMs>(seconds) * kSecond);
}

// Adds a `when_failed` action. It depends only on `before`: it begins after an ordinary action has failed.
Action& add_when_failed(Planning& p, Draft& d, const std::string& before, NewAction what) {
  d.last = before;
  Action& a = add(p, d, std::move(what));
  a.when_failed = true;
  return a;
}

// True for a node that goes through the RAM system but still runs its installed system: if its jobs do not
// end in time, the node is returned to service in that system.
bool may_stay(const Draft& d) { return !d.pause.empty() && in_installed(d) && d.seen->facts; }

// An agent that does not report its slot is of an earlier version, and rejects orders with a step module that
// it lacks. The resume steps are dropped as well: they would only undo the dropped pause steps.
void drop_unknown_steps(Planning& p, Draft& d) {
  if (!d.seen->facts->boot.running.empty()) return;
  if (std::none_of(d.pause.begin(), d.pause.end(), has_new_module)) return;
  std::erase_if(d.pause, has_new_module);
  std::erase_if(d.resume, has_new_module);
  p.plan.notes.push_back(
      d.spec->name +
      " has an agent of an earlier version, which cannot prepare shared storage for the node's absence: "
      "while the node is away, the storage may copy the data that the node holds");
}

void choose_pause(Planning& p, Draft& d) {
  if (!leaves_work(p, d)) return;
  d.pause = steps_of_phase(p, d, "pause", true);
  d.resume = steps_of_phase(p, d, "resume", false);
  drop_unknown_steps(p, d);
  if (d.pause.empty() || !p.forced(d)) return;
  d.pause.clear();
  d.resume.clear();
  p.plan.notes.push_back(d.spec->name + " is not drained first, because of --force: its jobs are killed");
}

// Returns the digest that the node's agent reported; if none, the one recorded for the slot on its disk.
std::string digest_of(const Draft& d, const std::string& slot) {
  const SlotFacts* noted = slot_of(d.seen->facts->boot, slot);
  return d.seen->image_digest.empty() && noted ? noted->digest : d.seen->image_digest;
}

void write_return(Planning& p, Draft& d) {
  const Slots slots = slots_of(d);
  const DurationMs patience = 2 * p.spec.limits.boot + p.spec.limits.trial;
  const std::string state{to_string(d.seen->state)};
  std::string before;
  if (slots.why.empty())
    before = add_when_failed(
                 p, d, "",
                 {"return", ActionKind::return_slot, "return",
                  d.slot.empty() ? "if its jobs do not end: return to its previous state"
                                 : "if any of this fails: return to slot " + slots.running,
                  Json{{"slot", slots.running}, {"digest", digest_of(d, slots.running)}, {"state", state}},
                  patience, 2})
                 .id;
  // The node's state is a parameter of `return` or, if that action is missing, of `look-old`.
  Json was = Json::object();
  if (before.empty()) was["state"] = state;
  if (!d.resume.empty())
    before = add_when_failed(p, d, before,
                             {"resume-old", ActionKind::steps, "resume",
                              fmt::format("after the return: resume ({} steps)", d.resume.size()),
                              order_params(d.resume, false), kResume, kResumeAttempts})
                 .id;
  add_when_failed(
      p, d, before,
      {"look-old", ActionKind::inventory, "return", "after the return: take an inventory", was, kInventory});
}

// Fills in the draft of a node and returns true if its other slot can be written now. Problems are reported
// later, by the plan of the node's own batch.
bool may_prefetch(Planning& p, const std::string& name, Draft& d) {
  const auto seen = p.in.nodes.find(name);
  d.spec = p.spec.node(name);
  if (!d.spec || seen == p.in.nodes.end() || !seen->second.facts) return false;
  d.seen = &seen->second;
  const bool planned = std::find(p.plan.nodes.begin(), p.plan.nodes.end(), name) != p.plan.nodes.end();
  if (planned || d.seen->on_trial || d.seen->held_by != HeldBy::nobody || !p.image_of(d)) return false;
  d.imaging = true;
  d.disks = choose_disks(p.spec, *d.spec, *d.seen->facts,
                         {true, imaged_here(d, *d.seen->facts), d.spec->image, p.in.authority});
  Slots slots;
  const PlannerImage& image = *p.image_of(d);
  if (!fits_on_esp(d, image) || !d.disks.refusals.empty() || !why_not_in_place(p, d, slots).empty())
    return false;
  d.slot = slots.other;
  d.slot_digest = Digest(image.digest);
  return true;
}

void note_way(Planning& p, const Draft& d) {
  p.plan.notes.push_back(fmt::format(
      "{} is {} in place with one reboot{}", d.spec->name, p.rolls_back() ? "rolled back" : "re-imaged",
      ends_a_hang(*d.spec).empty() ? "; if the new system hangs, an operator has to reset the node" : ""));
}

}  // namespace

void choose_way(Planning& p, Draft& d) {
  const bool requested = p.kind() == RequestKind::reimage || (p.kind() == RequestKind::up && d.older);
  if (!p.rolls_back() && !(d.imaging && requested)) return;
  refuse_without_room(p, d);
  Slots slots;
  const std::string why = p.rolls_back() ? why_no_rollback(p, d, slots) : why_not_in_place(p, d, slots);
  if (!why.empty()) {
    d.not_in_place = why;
    if (p.rolls_back())
      p.refuse(d.spec->name, "rollback", why);
    else
      p.plan.notes.push_back(fmt::format("{} is re-imaged through the RAM system: {}", d.spec->name, why));
  } else {
    d.slot = slots.other;
    const auto& held = d.seen->facts->boot.slots;
    d.slot_digest = Digest(p.rolls_back() ? held.at(d.slot).digest : p.image_of(d)->digest);
    note_way(p, d);
    refuse_short_trial(p, d);
  }
  choose_pause(p, d);
}

void write_slot_and_pause(Planning& p, Draft& d) {
  if (!d.slot.empty() && !p.rolls_back()) {
    const auto job = image_order(p, d);
    if (!job) return;
    p.plan.images[d.spec->image] = job->digest;
    const wire::SlotJob slot{*job, d.slot, p.in.programs, p.spec.limits.image_write_rate};
    add(p, d,
        {"write", ActionKind::write_slot, "image",
         fmt::format("write image {} to slot {} while jobs run", d.spec->image, d.slot), wire::to_json(slot),
         write_time(p, d), 3});
  }
  if (d.pause.empty()) return;
  add(p, d,
      {"pause", ActionKind::steps, "pause", fmt::format("drain jobs ({} steps)", d.pause.size()),
       order_params(d.pause, false), p.spec.limits.drain_timeout + kSpare, 1});
}

void write_prefetches(Planning& p) {
  if (!p.in.request.batch || p.in.request.batch->prefetch.empty()) return;
  std::vector<std::string> batch;
  for (const auto& d : p.drafts)
    if (!d.last.empty()) batch.push_back(d.last);
  const int behind = static_cast<int>(p.plan.barriers.size());
  const size_t actions = p.plan.actions.size();
  for (const auto& name : p.in.request.batch->prefetch) {
    Draft d;
    if (!may_prefetch(p, name, d)) continue;
    const size_t before = p.plan.actions.size();
    write_slot_and_pause(p, d);
    if (p.plan.actions.size() == before) continue;
    p.plan.actions.back().behind = behind;
    p.plan.nodes.push_back(name);
    p.plan.serving.push_back(name);
    add(p, d,
        {"look", ActionKind::inventory, "image", "take an inventory of what was written", Json::object(),
         kInventory});
    add_when_failed(p, d, "",
                    {"look-old", ActionKind::inventory, "return", "if the write fails: take an inventory",
                     Json{{"state", to_string(d.seen->state)}}, kInventory});
  }
  if (p.plan.actions.size() > actions) p.plan.barriers.push_back(std::move(batch));
}

void write_trials(Planning& p) {
  std::vector<std::string> barrier;
  for (const auto& d : p.drafts)
    if (!d.last.empty()) barrier.push_back(d.last);
  const int behind = static_cast<int>(p.plan.barriers.size());
  bool used = false;
  for (auto& d : p.drafts) {
    if (d.slot.empty()) continue;
    const std::string ends = ends_a_hang(*d.spec);
    const std::string title =
        fmt::format("boot slot {} once{}{}", d.slot,
                    p.rolls_back() ? fmt::format(" (image {})", d.slot_digest.str().substr(0, 19)) : "",
                    ends.empty() ? "; if the node hangs, an operator has to reset it"
                                 : "; if the node hangs, " + ends + " power-cycles it");
    const bool others =
        std::any_of(barrier.begin(), barrier.end(), [&](const std::string& id) { return id != d.last; });
    const wire::BootSlotJob job{d.slot, d.slot_digest, p.spec.limits.trial};
    Action& boot = add(
        p, d, {"boot", ActionKind::boot_slot, "boot", title, wire::to_json(job), 2 * p.spec.limits.boot, 1});
    if (!d.pause.empty()) add_steps(boot.params, d.pause);
    if (others) boot.behind = behind, used = true;
  }
  if (!used) return;
  p.plan.barriers.push_back(std::move(barrier));
  const auto paused = [](const Draft& d) { return !d.pause.empty(); };
  if (std::count_if(p.drafts.begin(), p.drafts.end(), paused) > 1)
    p.plan.notes.push_back(fmt::format(
        "nodes that are re-imaged in place reboot together, once the last node of this plan has "
        "no jobs left: until then the other nodes accept no new jobs. To avoid this, {} or lower "
        "{}.drain_timeout",
        p.in.request.batch ? "set rollout.max_unavailable to 1" : "re-image them one by one", limits_of(p)));
}

void write_ends(Planning& p) {
  for (auto& d : p.drafts) {
    if (!d.slot.empty()) {
      wire::Step commit;
      commit.id = "muster/commit";
      commit.module = "slot";
      commit.phase = "commit";
      commit.params = {{"slot", d.slot}, {"digest", d.slot_digest}};
      add(p, d,
          {"commit", ActionKind::steps, "commit", fmt::format("make slot {} the default", d.slot),
           order_params({PlannedStep{"commit", std::make_shared<const RenderedStep>(commit)}}, false),
           p.spec.limits.boot + kCommit, 2});
    }
    if (!d.resume.empty())
      add(p, d,
          {"resume", ActionKind::steps, "resume", fmt::format("resume work ({} steps)", d.resume.size()),
           order_params(d.resume, false), kResume, kResumeAttempts});
    if (!d.slot.empty() || may_stay(d)) write_return(p, d);
  }
}

}  // namespace muster
