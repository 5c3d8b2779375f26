#include "controller/plan/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/distribution.h"
#include "base/machine_uuid.h"
#include "base/name_ranges.h"
#include "controller/plan/label_lines.h"
#include "controller/spec/hardware.h"

namespace muster {
namespace {

void check_identity(Planning& p, const Draft& d, const HardwareFacts& facts) {
  const std::string bound = machine_of(d.seen->product_uuid);
  const bool swapped = !bound.empty() && !facts.system.uuid.empty() && bound != facts.system.uuid;
  const bool allowed = p.forced(d) && (p.kind() == RequestKind::admit || p.kind() == RequestKind::reimage);
  if (swapped && allowed)
    p.plan.notes.push_back(
        fmt::format("{} is installed because of --force, although a different machine now has this name: "
                    "product UUID {} instead of {}",
                    d.spec->name, facts.system.uuid, bound));
  if (swapped && !allowed)
    p.refuse(d.spec->name, "node-swapped",
             fmt::format(
                 "a different machine now has this name: product UUID {} instead of {}; if it was replaced "
                 "on purpose, remove {} from the spec, run `muster node rm {}`, and declare it again",
                 facts.system.uuid, bound, d.spec->name, d.spec->name));
}

// On the controller's machine a disk that holds data is never formatted, even with policy `format`: the data
// may be the controller's.
void refuse_own_disks(Planning& p, const Draft& d) {
  if (d.disks.destroys.empty()) return;
  const std::string sign = own_sign(p, *d.spec);
  if (sign.empty()) return;
  const auto& facts = *d.seen->facts;
  for (const auto& lost : d.disks.destroys) {
    const auto blank = std::find_if(facts.disks.begin(), facts.disks.end(), [&](const DiskFacts& disk) {
      return disk.serial == lost.serial && disk.wwid == lost.wwid && disk.blank && !disk.mounted;
    });
    if (blank == facts.disks.end())
      p.refuse(
          d.spec->name, "own-machine",
          fmt::format("the controller runs on this machine ({}), and disk {} holds {}: on the controller "
                      "host only blank disks are formatted; wipe the disk by hand if its data may be lost",
                      sign, lost.serial, lost.content));
  }
}

void note_labels(Planning& p, const Draft& d, const HardwareFacts& facts) {
  if (d.imaging || p.kind() == RequestKind::accept) return;
  const LabelLines lines = label_lines(p.spec, *d.spec, facts);
  for (const auto* list : {&lines.of_system, &lines.of_storage})
    for (const auto& line : *list)
      p.plan.notes.push_back(fmt::format(
          "{} has {}, written by an earlier version of muster: a second disk could have that label, so the "
          "UUID replaces the label",
          d.spec->name, line));
}

// Of the system that the steps run in; null: unknown. The RAM system is none of these.
const Distribution* distribution_of(const Planning& p, const Draft& d) {
  const Distribution* runs = d.imaging ? nullptr : find_distribution(d.seen->facts->os_id);
  return runs ? runs : p.spec.distribution_of(*d.spec);
}

// A rollback boots a system of which only the digest is known, and `accept` runs no playbook.
void refuse_playbooks(Planning& p, const Draft& d) {
  if (p.rolls_back() || p.kind() == RequestKind::accept) return;
  const Distribution* distribution = distribution_of(p, d);
  for (const auto& name : p.playbooks_of(d)) {
    const auto playbook = p.in.playbooks.find(name);
    if (playbook == p.in.playbooks.end()) continue;
    if (const auto why = why_not_on(playbook->second.only_for, distribution); !why.empty())
      p.refuse(d.spec->name, "distribution", fmt::format("playbook '{}' {}", name, why));
  }
}

// Why the node's image is written, in place or through the RAM system; "": it is not.
std::string why_imaged(const Planning& p, const Draft& d) {
  if (d.spec->adopt.declared() || p.kind() == RequestKind::accept || p.rolls_back()) return "";
  const PlannerImage* image = p.image_of(d);
  if (!image) return "";  // refused
  if (p.requests_image()) return "a re-image of it is requested";
  if (d.older && !p.in.request.reimage) return "";
  if (d.older) return fmt::format("it runs an older build of image {}, which is replaced", d.spec->image);
  if (d.seen->image_digest.empty()) return "muster has not installed it yet";
  if (d.seen->image_digest != image->digest)
    return fmt::format("it does not run the declared build of image {}", d.spec->image);
  if (in_ram(d)) return "it runs the RAM system";
  return in_installed(d) ? "" : "its installed system is not running";
}

// How the machine differs from the one that was ordered; "": not, or its system is not replaced.
std::string unlike_to_install(const Planning& p, const Draft& d) {
  if (!d.imaging) return "";
  return fmt::format("{}", fmt::join(unlike_hardware(d.spec->hardware, *d.seen->facts, p.spec.lab), "; "));
}

void prepare(Planning& p, Draft& d) {
  const HardwareFacts& facts = *d.seen->facts;
  check_identity(p, d, facts);
  if (!p.image_of(d) && !d.spec->adopt.declared() && p.kind() != RequestKind::accept && !p.rolls_back())
    return p.refuse(
        d.spec->name, "image-missing",
        d.spec->image.empty() ? "no image is declared" : "image '" + d.spec->image + "' is not built");
  std::string unlike = unlike_to_install(p, d);
  if (!unlike.empty() && p.forced(d))
    p.plan.notes.push_back(d.spec->name + " is installed because of --force, although " + unlike);
  else
    d.unlike = std::move(unlike);
  if (!d.unlike.empty()) return;
  d.disks = choose_disks(p.spec, *d.spec, facts,
                         {d.imaging, imaged_here(d, facts), d.imaging ? d.spec->image : "", p.in.authority});
  p.refusals.insert(p.refusals.end(), d.disks.refusals.begin(), d.disks.refusals.end());
  if (!d.disks.refusals.empty()) return;
  refuse_own_disks(p, d);
  note_labels(p, d, facts);
  refuse_playbooks(p, d);
  if (d.imaging && d.disks.groups["os"].empty())
    p.refuse(d.spec->name, "disk-os", "no disk group 'os' is declared");
  choose_way(p, d);
  render(p, d, image_digest_of(p, d));
}

// The node leaves the image that it runs, unless it is unlike: drop_unlike() leaves such a node as it is.
void expect_gpu_driver(Planning& p, const Draft& d) {
  if (!p.forced(d) && !unlike_to_install(p, d).empty()) return;
  if (p.image_of(d)->gpu_driver.empty())
    p.with_gpu_driver.erase(d.spec->name);
  else
    p.with_gpu_driver.insert(d.spec->name);
}

}  // namespace

void prepare_all(Planning& p) {
  for (auto& d : p.drafts) {
    d.older = runs_older_build(p, d);
    std::string why = why_imaged(p, d);
    d.imaging = !why.empty();
    if (d.imaging) p.why[d.spec->name] = std::move(why);
    if (d.imaging) expect_gpu_driver(p, d);
    if (!leaves_work(p, d)) continue;
    p.leaving.insert(d.spec->name);
    if (!p.forced(d)) p.pausing.insert(d.spec->name);
  }
  for (auto& d : p.drafts) prepare(p, d);
  note_older_builds(p);
}

void drop_unlike(Planning& p) {
  std::vector<Draft> rest;
  const auto& named = p.in.request.nodes;
  for (auto& d : p.drafts) {
    const NodeName& name = d.spec->name;
    if (d.unlike.empty()) {
      rest.push_back(std::move(d));
      continue;
    }
    p.leaving.erase(name);
    p.pausing.erase(name);
    p.why.erase(name);
    const std::string what = fmt::format(
        "{}. Correct the machine or its `hardware` in the spec, or install it anyway with `muster plan "
        "{}--limit {} --force {}`",
        d.unlike, p.kind() == RequestKind::reimage ? "--kind reimage " : "", name, name);
    if (std::find(named.begin(), named.end(), name) != named.end()) {
      p.refuse(name, "hardware-unlike", what);
      continue;
    }
    p.plan.left_out.push_back(name);
    p.plan.left_out_rules[name] = "hardware-unlike";
    p.plan.notes.push_back(fmt::format("{} is left out and not installed (hardware-unlike): {}", name, what));
  }
  p.drafts = std::move(rest);
}

void refuse_shared_disks(Planning& p) {
  std::vector<SelectedDisk> selected;
  std::set<std::string> planned;
  for (const auto& d : p.drafts) {
    planned.insert(d.spec->name);
    for (const auto& [group, disks] : d.disks.groups)
      for (const auto& disk : disks) selected.push_back({&d.spec->name, &disk, true});
  }
  for (const auto& node : p.spec.nodes) {
    const auto seen = p.in.nodes.find(node.name);
    if (planned.count(node.name) || seen == p.in.nodes.end()) continue;
    const auto& facts = seen->second.facts ? seen->second.facts : seen->second.machine;
    if (!facts) continue;
    for (const auto& disk : facts->disks)
      for (const auto& [name, group] : node.disks)
        if (disk_matches(group.match, disk)) selected.push_back({&node.name, &disk, false});
  }
  for (auto& refusal : refuse_shared(selected)) p.refusals.push_back(std::move(refusal));
}

namespace {

// Why the node is configured although its image is not written; "": it is as declared.
std::string why_configured(const Planning& p, const Draft& d) {
  if (d.seen->state != NodeState::accepted)
    return fmt::format("its state is {}{}", to_string(d.seen->state),
                       d.seen->reason.empty() ? "" : " (" + d.seen->reason + ")");
  if (!d.seen->online) return "its agent is silent";
  if (d.seen->config_digest != d.digest) return "its configuration or acceptance is declared differently";
  if (d.seen->facts && label_lines(p.spec, *d.spec, *d.seen->facts).any())
    return "its file systems are mounted by UUID from now on";
  return p.forced(d) ? "it was named with --force" : "";
}

}  // namespace

void drop_unchanged(Planning& p) {
  if (p.kind() != RequestKind::up && p.kind() != RequestKind::adopt) return;
  std::vector<Draft> rest;
  for (auto& d : p.drafts) {
    if (!d.imaging) {
      std::string why = why_configured(p, d);
      if (why.empty() && d.disks.refusals.empty()) {
        p.plan.unchanged.push_back(d.spec->name);
        continue;
      }
      p.why[d.spec->name] = std::move(why);
    }
    rest.push_back(std::move(d));
  }
  p.drafts = std::move(rest);
}

namespace {

// "" if it is not recorded.
std::string name_of_running(const Planning& p, const Draft& d) {
  const auto& facts = d.seen->facts ? d.seen->facts : d.seen->machine;
  if (facts)
    for (const auto& [letter, slot] : facts->boot.slots)
      if (slot.digest == d.seen->image_digest && !slot.image.empty()) return slot.image;
  for (const auto& [name, image] : p.in.images)
    if (image.digest == d.seen->image_digest) return name;
  return "";
}

}  // namespace

bool runs_older_build(const Planning& p, const Draft& d) {
  const PlannerImage* image = p.image_of(d);
  const NodeState state = d.seen->state;
  if (!image || d.spec->adopt.declared() || d.seen->doubtful || !in_installed(d)) return false;
  if (state != NodeState::accepted && state != NodeState::degraded) return false;
  if (d.seen->image_digest.empty() || d.seen->image_digest == image->digest) return false;
  const std::string running = name_of_running(p, d);
  return running.empty() || running == d.spec->image;
}

void note_older_builds(Planning& p) {
  if (p.kind() != RequestKind::up) return;
  constexpr size_t kShown = 3;
  // An agent of an earlier version does not report its image's name, which may differ from the declared one.
  std::map<std::pair<std::string, bool>, std::vector<std::string>> by_image;
  for (const auto& d : p.drafts)
    if (d.older && !d.imaging)
      by_image[{d.spec->image, !name_of_running(p, d).empty()}].push_back(d.spec->name);
  for (const auto& [key, nodes] : by_image) {
    const auto& [image, known] = key;
    const std::vector<std::string> shown(nodes.begin(),
                                         nodes.begin() + std::min<long>(kShown, std::ssize(nodes)));
    p.plan.notes.push_back(
        fmt::format("{} node{} {} '{}' ({}{}): run `muster reimage {}` or `muster up --reimage`",
                    nodes.size(), nodes.size() == 1 ? " runs" : "s run",
                    known ? "an older build of image" : "an image that is not the newest build of", image,
                    fmt::join(shown, ", "), nodes.size() > kShown ? ", ..." : "", names_in_ranges(nodes)));
  }
}

}  // namespace muster
