#include "controller/plan/passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/engines/engine.h"
#include "controller/plan/gpus_for_jobs.h"
#include "controller/plan/interconnect.h"

namespace muster {
namespace {

constexpr DurationMs kImage = 45 * kMinute, kStepsLimit = 30 * kMinute;

PlanKind plan_kind(const Planning& p) {
  if (p.drafts.empty()) return PlanKind::none;
  if (p.kind() == RequestKind::accept) return PlanKind::accept;
  if (p.kind() == RequestKind::reimage) return PlanKind::reimage;
  if (p.rolls_back()) return PlanKind::rollback;
  if (p.kind() == RequestKind::admit) return PlanKind::admit;
  if (p.kind() == RequestKind::adopt) return PlanKind::adopt;
  const bool imaging =
      std::any_of(p.drafts.begin(), p.drafts.end(), [](const Draft& d) { return d.imaging; });
  return imaging ? PlanKind::install : PlanKind::apply;
}

void write_image(Planning& p, Draft& d) {
  const auto job = image_order(p, d);
  if (!job) return;
  p.plan.images[d.spec->image] = job->digest;
  if (d.disks.os_is_ours)
    p.plan.notes.push_back(
        d.spec->name +
        ": the OS disk has muster's layout; its unused root slot is written, and /state is kept");
  if (!in_ram(d)) add_netboot(p, d);
  add(p, d,
      {"image", ActionKind::image, "image", "write image " + d.spec->image, wire::to_json(*job), kImage, 3});
  add(p, d,
      {"boot", ActionKind::boot_disk, "boot", "boot from disk", Json{{"digest", job->digest}},
       p.spec.limits.boot, 2});
}

}  // namespace

void write_actions(Planning& p) {
  p.plan.kind = plan_kind(p);
  for (const auto& d : p.unreachable_nodes) {
    p.plan.left_out.push_back(d.spec->name);
    p.plan.notes.push_back(d.spec->name + " was never seen and is left out; run `muster up --limit " +
                           d.spec->name + "` to discover it again");
  }
  for (auto& d : p.drafts) {
    p.plan.nodes.push_back(d.spec->name);
    p.plan.config_digests[d.spec->name] = p.kind() == RequestKind::accept ? d.seen->config_digest : d.digest;
    if (p.kind() == RequestKind::accept) {
      if (!in_installed(d)) p.refuse(d.spec->name, "not-running", "its installed system is not online");
      continue;
    }
    p.plan.destroys.insert(p.plan.destroys.end(), d.disks.destroys.begin(), d.disks.destroys.end());
    write_slot_and_pause(p, d);
    if (d.imaging && d.slot.empty()) write_image(p, d);
  }
  write_prefetches(p);
  write_trials(p);
  for (auto& d : p.drafts) {
    if (d.configure.empty() || p.kind() == RequestKind::accept) continue;
    add(p, d,
        {"configure", ActionKind::steps, "configure", fmt::format("configure ({} steps)", d.configure.size()),
         order_params(d.configure, false), with_restart(kStepsLimit, d.configure, p.spec)});
  }
  if (p.kind() != RequestKind::accept) {
    write_stages(p);
    for (auto& d : p.drafts)
      if (!d.serves)
        add(p, d,
            {"look", ActionKind::inventory, "accept", "take an inventory of the result", Json::object(),
             kInventory});
  }
  write_acceptance(p);
  write_ends(p);
  group_by_node(p);
  for (const auto& s : p.spec.storage) {
    const StorageEngine& engine = engine_of(s);
    if (!engine.caution.empty())
      p.plan.notes.push_back(fmt::format("storage '{}' (engine {}) {}", s.name, s.engine, engine.caution));
    if (engine.may_name_leader && p.in.request.force.count(s.server))
      p.plan.notes.push_back("storage '" + s.name + "': " + s.server +
                             " may start from a metadata copy of any age, because of --force");
  }
  std::map<std::string, std::string> rails;
  for (const auto& d : p.drafts)
    if (d.imaging && d.seen->facts) rails[d.spec->name] = rails_seen(p.spec, *d.spec, *d.seen->facts);
  for (auto& note : rail_notes(rails)) p.plan.notes.push_back(std::move(note));
  if (p.profile().empty()) p.plan.notes.push_back("no acceptance profile is declared: nothing is measured");
  if (auto note = simulated_gpu_note(p.machines); !note.empty()) p.plan.notes.push_back(std::move(note));
  if (auto note = unused_gpu_note(p.spec, p.machines, p.with_gpu_driver);
      !note.empty() && p.kind() != RequestKind::accept)
    p.plan.notes.push_back(std::move(note));
  if (p.simulated && !p.profile().empty())
    for (auto& note : p.simulated->notes(p.profile())) p.plan.notes.push_back(std::move(note));
}

}  // namespace muster
