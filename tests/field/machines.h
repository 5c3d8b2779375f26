// Machines of field cases, made of their machine.json: disks, and what is on them; and the way of a data
// group from what is seen of them over the plan to the steps. Header-only; tests only.
//   {"disks": [{"name": "sda", "serial": "S", "wwid": "naa.1", "mib": 48, "read_only": true,
//               "multipath": "mpatha",
//               "xfs": {"label": "scratch", "id": "1"},
//               "md": {"name": "oldhost:scratch", "id": "1", "level": 0, "members": 2, "xfs": "scratch"}}]}
// "id" is what its UUID is made of; "xfs" of a member lies where the array's data begins.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "agent/core/step.h"
#include "agent/disk/disk.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"
#include "tests/unit/plan/fixture.h"

namespace muster::tests {

inline std::string sixteen(const std::string& id) { return fmt::format("{:0>16}", id).substr(0, 16); }

inline std::string xfs_block(const std::string& label, const std::string& id) {
  std::string block(512, '\0');
  block.replace(0, 4, "XFSB");
  block.replace(4, 4, std::string("\0\0\x10\0", 4));
  block.replace(32, 16, sixteen(id));
  block.replace(102, 2, std::string("\x02\0", 2));
  block.replace(108, label.size(), label);
  return block;
}

inline std::string little_endian(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

// md's superblock of version 1.2, which lies at 4 KiB.
inline std::string md_block(const Json& md, uint64_t disk_size) {
  const std::string name = md.value("name", "");
  std::string block(256, '\0');
  block.replace(0, 4, little_endian(0xa92b4efc, 4));
  block.replace(4, 4, little_endian(1, 4));
  block.replace(16, 16, sixteen(md.value("id", "0")));
  block.replace(32, name.size(), name);
  block.replace(72, 4, little_endian(md.value("level", 0u), 4));
  block.replace(92, 4, little_endian(md.value("members", 0u), 4));
  block.replace(128, 8, little_endian(FakeMachine::kArrayData / 512, 8));
  block.replace(136, 8, little_endian((disk_size - FakeMachine::kArrayData) / 512, 8));
  return block;
}

// dm-0 of dm-multipath, with this name, holds the disk.
inline void hold_by_map(FakeMachine& m, const std::string& disk, const std::string& map) {
  m.put("/sys/block/dm-0/dm/uuid", "mpath-3500a" + map + "\n");
  m.put("/sys/block/dm-0/dm/name", map + "\n");
  m.put("/sys/block/dm-0/slaves/" + disk + "/dev", "8:0\n");
  m.put("/sys/block/" + disk + "/holders/dm-0/dev", "253:0\n");
}

inline void add_disk(FakeMachine& m, const Json& d) {
  const std::string name = d.value("name", ""), folder = "/sys/block/" + name, serial = d.value("serial", "");
  const uint64_t size = d.value("mib", uint64_t{48}) << 20;
  m.add_disk(name, serial, size, d.value("model", "MADE UP"));
  m.put(folder + "/wwid", d.value("wwid", "") + "\n");
  m.put(folder + "/ro", d.value("read_only", false) ? "1\n" : "0\n");
  if (d.contains("multipath")) hold_by_map(m, name, d["multipath"].get<std::string>());
  if (name.starts_with("sd")) m.put(folder + "/device/vpd_pg80", std::string("\0\x80\0\x10", 4) + serial);
  if (d.contains("xfs"))
    m.write_disk(name, 0, xfs_block(d["xfs"].value("label", ""), d["xfs"].value("id", "0")));
  if (!d.contains("md")) return;
  m.write_disk(name, 4096, md_block(d["md"], size));
  if (d["md"].contains("xfs"))
    m.write_disk(name, FakeMachine::kArrayData, xfs_block(d["md"]["xfs"].get<std::string>(), "array"));
}

inline void build(FakeMachine& m, const std::string& machine) {
  const auto json = parse_json(machine);
  REQUIRE(json.ok());
  for (const Json& d : json->at("disks")) add_disk(m, d);
}

inline const DiskFacts& named(const std::vector<DiskFacts>& disks, const std::string& name) {
  for (const auto& d : disks)
    if (d.name == name) return d;
  FAIL("no disk " << name);
  std::abort();
}

// The fixture's cluster with these disks in node01, of which the group `fast` selects those of one size. Its
// OS disk and the one of MooseFS are paper. Installed from here before, in its RAM system now.
inline PlannerInput with_fast(const std::vector<DiskFacts>& disks, size_t count, DiskPolicy policy) {
  PlannerInput in = muster::testing::with_nodes(muster::testing::seen_in_ram);
  auto& facts = in.nodes["node01"].facts->disks;
  facts = {facts[0], facts[3]};
  facts.insert(facts.end(), disks.begin(), disks.end());
  in.nodes["node01"].image_digest = "sha256:cpu";
  DiskGroup& fast = in.spec.nodes[0].disks["fast"];
  fast.match = DiskMatch{};
  fast.match.size_bytes = int64_t{48} << 20;
  fast.match.count = static_cast<int>(count);
  fast.policy = policy;
  in.request.nodes = {"node01"};
  return in;
}

// The rule that refuses the plan; "" when nothing does.
inline std::string refused_by(const PlannerInput& in) {
  const auto made = make_plan(in);
  if (!made.ok()) return "error: " + made.error().message;
  return made->refusals.empty() ? "" : made->refusals.front().rule;
}

// The disks of `fast` as the plan gives them to the steps.
inline Json disks_in(const Plan& plan) {
  const Action* configure = plan.find("node01/configure");
  REQUIRE(configure != nullptr);
  for (const Json& step : configure->params["steps"])
    if (step["id"].get<std::string>().find("storage/array") == 0) return step["params"]["disks"];
  FAIL("the plan has no array");
  std::abort();
}

inline Status apply(FakeMachine& m, const std::string& module, const Json& params) {
  StepContext context = m.context();
  return find_step_module(module)->apply(context, params);
}
inline Result<CheckResult> check(FakeMachine& m, const std::string& module, const Json& params) {
  StepContext context = m.context();
  return find_step_module(module)->check(context, params);
}

// What the playbook storage-local does with them.
inline Status set_up(FakeMachine& m, const Json& disks) {
  TRY_(apply(m, "raid", {{"name", "scratch"}, {"level", "raid0"}, {"disks", disks}}));
  TRY_(apply(m, "filesystem", {{"fs", "xfs"}, {"label", "scratch"}, {"array", true}, {"disks", disks}}));
  return apply(m, "mount", {{"label", "scratch"}, {"target", "/scratch"}, {"fs", "xfs"}, {"disks", disks}});
}

}  // namespace muster::tests
