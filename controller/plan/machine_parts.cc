#include "controller/plan/machine_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/lower.h"
#include "base/machine_uuid.h"
#include "base/placeholders.h"
#include "base/record.h"

namespace muster {
namespace {

// "" if invalid: systemd writes "uninitialized" to an image that has none yet (machine-id(5)).
std::string own_machine_id(const std::string& given) {
  const std::string id = lower(given);
  const bool digits = id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return digits && id.find_first_not_of(id[0]) != std::string::npos ? id : "";
}

// All kinds of parts, each with its name in messages.
struct Kind {
  const char* what;
  const std::set<std::string> MachineParts::*list;
};
constexpr Kind kKinds[] = {
    {"GPU", &MachineParts::gpus}, {"drive", &MachineParts::drives}, {"port", &MachineParts::ports}};

struct Shared {
  size_t shared = 0, before = 0, now = 0;
  // Only GPUs and ports count here: drives are moved, and an enclosure may show a drive to two hosts.
  bool fixed_known = false, fixed_shared = false;
};

// Only kinds known of both machines: an unprivileged user may not see the serial numbers of drives.
Shared count_shared(const MachineParts& before, const MachineParts& now) {
  Shared out;
  for (const Kind& kind : kKinds) {
    const auto &a = before.*kind.list, &b = now.*kind.list;
    if (a.empty() || b.empty()) continue;
    out.before += a.size();
    out.now += b.size();
    const auto shared = static_cast<size_t>(
        std::count_if(a.begin(), a.end(), [&](const std::string& one) { return b.count(one) > 0; }));
    out.shared += shared;
    if (kind.list == &MachineParts::drives) continue;
    out.fixed_known = true;
    out.fixed_shared = out.fixed_shared || shared > 0;
  }
  return out;
}

SameMachine by_machine_id(const MachineParts& before, const MachineParts& now) {
  if (before.machine_id.empty() || now.machine_id.empty()) return SameMachine::unknown;
  return before.machine_id == now.machine_id ? SameMachine::copied : SameMachine::no;
}

SameMachine is_same(const MachineParts& before, const MachineParts& now) {
  const Shared count = count_shared(before, now);
  const size_t fewer = std::min(count.before, count.now), more = std::max(count.before, count.now);
  if (!before.uuid.empty() && !now.uuid.empty()) {
    if (!same_uuid(before.uuid, now.uuid)) return SameMachine::no;
    return fewer >= 2 && count.shared == 0 ? SameMachine::no : SameMachine::yes;
  }
  if (fewer == 0) return by_machine_id(before, now);
  if (count.fixed_known && !count.fixed_shared) return SameMachine::no;
  return 2 * count.shared >= more ? SameMachine::yes : SameMachine::no;
}

void add_changed(const MachineParts& before, const MachineParts& now, std::vector<std::string>& out) {
  for (const Kind& kind : kKinds) {
    const auto &a = before.*kind.list, &b = now.*kind.list;
    if (a.empty() || b.empty()) continue;
    for (const std::string& one : a)
      if (!b.count(one)) out.push_back(fmt::format("{} {} is missing", kind.what, one));
    for (const std::string& one : b)
      if (!a.count(one)) out.push_back(fmt::format("{} {} is new", kind.what, one));
  }
}

// Two machines are compared only if they share a key.
std::vector<std::string> keys_of(const NamedMachine& machine) {
  const MachineParts& parts = machine.parts;
  std::vector<std::string> out;
  if (!machine.boot_id.empty()) out.push_back("boot " + machine.boot_id);
  // The first fields of a UUID depend on its byte order; the last two fields do not.
  if (parts.uuid.size() > 19) out.push_back("uuid " + parts.uuid.substr(19));
  for (const Kind& kind : kKinds)
    for (const std::string& one : parts.*kind.list) out.push_back(std::string(kind.what) + " " + one);
  if (!parts.machine_id.empty()) out.push_back("machine-id " + parts.machine_id);
  return out;
}

SameMachine same_now(const NamedMachine& one, const NamedMachine& other) {
  if (!one.boot_id.empty() && !other.boot_id.empty())
    return one.boot_id == other.boot_id ? SameMachine::yes : SameMachine::no;
  return compare_machines(one.parts, other.parts).same;
}

// Disjoint sets of machine numbers; find() returns the lowest number in a machine's set.
class Joined {
 public:
  explicit Joined(size_t count) : root_(count) {
    for (size_t i = 0; i < count; ++i) root_[i] = i;
  }
  size_t find(size_t i) {
    while (root_[i] != i) i = root_[i] = root_[root_[i]];
    return i;
  }
  void join(size_t a, size_t b) {
    const size_t first = find(a), second = find(b);
    root_[std::max(first, second)] = std::min(first, second);
  }

 private:
  std::vector<size_t> root_;
};

}  // namespace

MachineParts machine_parts(const HardwareFacts& facts, const std::string& machine_id) {
  MachineParts out;
  out.uuid = lower(machine_of(facts.system.uuid));
  for (const GpuFacts& gpu : facts.gpus)
    if (names_one_thing(gpu.uuid)) out.gpus.insert(gpu.uuid);
  for (const DiskFacts& disk : facts.disks)
    if (disk.transport == "nvme" && names_one_thing(disk.serial)) out.drives.insert(disk.serial);
  for (const NicFacts& nic : facts.nics)
    if (nic.address_kind.empty() && !is_usb_driver(nic.driver) && names_one_port(nic.mac))
      out.ports.insert(lower(nic.mac));
  out.machine_id = own_machine_id(machine_id);
  return out;
}

std::string machine_identity(const MachineParts& parts) {
  if (!parts.uuid.empty()) return "uuid:" + parts.uuid;
  if (parts.gpus.empty() && parts.drives.empty() && parts.ports.empty() && parts.machine_id.empty())
    return "";
  const Json all = {{"gpus", parts.gpus},
                    {"drives", parts.drives},
                    {"ports", parts.ports},
                    {"machine_id", parts.machine_id}};
  return "parts:" + sha256(dump_ascii(all));
}

MachineChange compare_machines(const MachineParts& before, const MachineParts& now) {
  MachineChange out;
  out.same = is_same(before, now);
  if (!before.uuid.empty() && !now.uuid.empty() && !same_uuid(before.uuid, now.uuid))
    out.changed.push_back("the product UUID has changed");
  add_changed(before, now, out.changed);
  if (!before.machine_id.empty() && !now.machine_id.empty() && before.machine_id != now.machine_id)
    out.changed.push_back("the machine-id has changed: the system was reinstalled");
  return out;
}

std::vector<OneMachine> names_of_one_machine(const std::vector<NamedMachine>& machines) {
  std::map<std::string, std::vector<size_t>> by_key;
  for (size_t i = 0; i < machines.size(); ++i)
    for (const std::string& key : keys_of(machines[i])) by_key[key].push_back(i);
  Joined joined(machines.size());
  std::set<size_t> unsure;
  for (const auto& [key, sharing] : by_key)
    for (size_t i = 1; i < sharing.size(); ++i) {
      const auto same = same_now(machines[sharing[0]], machines[sharing[i]]);
      if (same != SameMachine::yes && same != SameMachine::copied) continue;
      if (same == SameMachine::copied) unsure.insert({sharing[0], sharing[i]});
      joined.join(sharing[0], sharing[i]);
    }
  std::map<size_t, OneMachine> groups;
  for (size_t i = 0; i < machines.size(); ++i) {
    OneMachine& group = groups[joined.find(i)];
    group.names.push_back(machines[i].name);
    if (unsure.count(i)) group.sure = false;
  }
  std::vector<OneMachine> out;
  for (auto& [first, group] : groups) {
    if (group.names.size() < 2) continue;
    std::sort(group.names.begin(), group.names.end());
    out.push_back(std::move(group));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.names < b.names; });
  return out;
}

MUSTER_RECORD(MachineParts, lenient, opt(uuid), opt(gpus), opt(drives), opt(ports), opt(machine_id))

Json to_json(const MachineParts& parts) { return record_json(parts); }

Result<MachineParts> machine_parts_from_json(const Json& json) {
  return read_record<MachineParts>(json, "machine");
}

}  // namespace muster
