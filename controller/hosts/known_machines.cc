#include "controller/hosts/known_machines.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_dump.h"
#include "sys/os.h"

namespace muster {
namespace {

constexpr const char* kFile = "/machines.json";

// A plain user can read less than root could in the previous run: parts that are missing now are kept.
MachineParts merged(const MachineParts& before, MachineParts now) {
  if (now.uuid.empty()) now.uuid = before.uuid;
  if (now.gpus.empty()) now.gpus = before.gpus;
  if (now.drives.empty()) now.drives = before.drives;
  if (now.ports.empty()) now.ports = before.ports;
  if (now.machine_id.empty()) now.machine_id = before.machine_id;
  return now;
}

}  // namespace

Result<KnownMachines> KnownMachines::read(const std::string& folder) {
  KnownMachines out(folder);
  const Files files(folder);
  if (!files.exists(kFile)) return out;
  TRY(const auto text, files.read(kFile));
  const auto broken = [&](const std::string& why) {
    return fail(Code::corrupt, fmt::format("{}{}: {}: this file records which machine each host was; if you "
                                           "remove it, all hosts count as new",
                                           folder, kFile, why));
  };
  const auto json = parse_json(text);
  if (!json.ok()) return broken(json.error().message);
  if (!json->is_object()) return broken("not an object");
  for (const auto& [host, known] : json->items()) {
    if (!known.is_object() || !known.contains("parts")) return broken(host + " has no `parts`");
    const auto parts = machine_parts_from_json(known["parts"]);
    if (!parts.ok()) return broken(host + ": " + parts.error().message);
    const Json run = known.value("history_after", Json(0));
    out.hosts_[host] = {*parts, run.is_number_integer() ? run.get<int64_t>() : 0};
  }
  return out;
}

Status KnownMachines::write() const {
  Json out = Json::object();
  for (const auto& [host, known] : hosts_)
    out[host] = {{"parts", to_json(known.parts)}, {"history_after", known.history_after}};
  return Files(folder_).write(kFile, dump_json(out, 2) + "\n", 0600);
}

MachineChange KnownMachines::meet(const std::string& host, const MachineParts& now, int64_t newest_run) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) {
    hosts_[host] = {now, 0};
    return {};
  }
  Known& known = found->second;
  MachineChange change = compare_machines(known.parts, now);
  if (change.same == SameMachine::no)
    known = {now, newest_run};
  else
    known.parts = merged(known.parts, now);
  return change;
}

std::map<std::string, int64_t> KnownMachines::history_after() const {
  std::map<std::string, int64_t> out;
  for (const auto& [host, known] : hosts_)
    if (known.history_after > 0) out[host] = known.history_after;
  return out;
}

}  // namespace muster
