#include "cli/machine_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/facts.h"
#include "base/json_at.h"
#include "base/split.h"
#include "base/standin.h"
#include "base/time.h"
#include "cli/terminal.h"

namespace muster::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string when(int64_t time) { return time ? to_iso8601(time) : "never"; }

std::string table(const Rows& rows, const std::string& indent = "") {
  std::vector<size_t> width;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i >= width.size()) width.push_back(0);
      width[i] = std::max(width[i], row[i].size());
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], width[i]);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

// "4: 8.6 GB, 2.1 GB x3"
std::string drives_words(const std::vector<DiskFacts>& disks) {
  std::vector<std::pair<std::string, int>> sizes;
  for (const auto& disk : disks) {
    const std::string size = human_bytes(static_cast<double>(disk.size_bytes));
    const auto same =
        std::find_if(sizes.begin(), sizes.end(), [&](const auto& s) { return s.first == size; });
    if (same == sizes.end())
      sizes.emplace_back(size, 1);
    else
      ++same->second;
  }
  std::string out = std::to_string(disks.size());
  for (size_t i = 0; i < sizes.size(); ++i)
    out += (i == 0 ? ": " : ", ") + sizes[i].first +
           (sizes[i].second > 1 ? fmt::format(" x{}", sizes[i].second) : "");
  return out;
}

std::string memory_words(uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 0x1p30);
}

// "8"; "2 (SIMULATED GPU)"
std::string gpu_words(const HardwareFacts& facts) {
  const std::string count = std::to_string(facts.gpus.size());
  return simulated_gpus(facts) > 0 ? fmt::format("{} ({})", count, kSimulatedGpu) : count;
}

std::vector<std::string> machine_row(const Json& machine) {
  std::vector<std::string> row = {clean_at(machine, "name"), when(integer_at(machine, "time"))};
  const auto facts =
      machine.contains("facts") ? hardware_facts_from_json(machine["facts"]) : Result<HardwareFacts>(Error{});
  if (!facts.ok()) {
    row.insert(row.end(), {"", "", "", "", "booted from the network; no inventory"});
    return row;
  }
  row.insert(row.end(), {clean(facts->system.serial), std::to_string(facts->cpus.count),
                         memory_words(facts->memory_bytes), gpu_words(*facts), drives_words(facts->disks)});
  return row;
}

// A row for all devices with the same reason.
Rows not_counted(const std::vector<LeftOut>& left_out) {
  constexpr size_t kShown = 4;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> names;
  for (const auto& one : left_out) names[{one.part, one.reason}].push_back(clean(one.name));
  Rows out = {{"NOT COUNTED", "NAMES", "WHY"}};
  for (const auto& [what, list] : names)
    out.push_back({clean(what.first), some_of(list, kShown), clean(what.second)});
  return out;
}

std::string parts(const HardwareFacts& f) {
  std::string out = table(
      {{"machine:", clean(f.system.vendor + " " + f.system.product)},
       {"serial:", clean(f.system.serial)},
       {"UUID:", clean(f.system.uuid)},
       {"firmware:", clean(f.firmware)},
       {"CPUs:", fmt::format("{} in {} sockets, {}", f.cpus.count, f.cpus.sockets, clean(f.cpus.model))},
       {"memory:", memory_words(f.memory_bytes)},
       {"GPUs:", gpu_words(f)}});
  Rows gpus, nics = {{"PORT", "MAC", "SPEED", "DRIVER", "PCI"}},
             disks = {{"DRIVE", "MODEL", "SIZE", "WWID", "CONTENT"}};
  for (const auto& g : f.gpus) gpus.push_back({clean(g.model), clean(g.serial), clean(g.pci)});
  for (const auto& n : f.nics)
    nics.push_back({clean(n.name), clean(n.mac),
                    n.speed_mbps > 0 ? fmt::format("{} Mbit/s", n.speed_mbps) : "", clean(n.driver),
                    clean(n.pci)});
  for (const auto& d : f.disks)
    disks.push_back({clean(d.serial), clean(d.model), human_bytes(static_cast<double>(d.size_bytes)),
                     clean(d.wwid), clean(d.content)});
  out += table(gpus, "  ") + "\n" + table(nics) + "\n" + table(disks);
  return f.left_out.empty() ? out : out + "\n" + table(not_counted(f.left_out));
}

}  // namespace

std::string render_nodes(const Json& nodes) {
  const Json declared = nodes.value("nodes", Json::array());
  Rows rows = {{"NODE", "ROLE", "STATE", "ADDRESS", "MAC", "LAST SEEN"}};
  for (const Json& n : declared)
    rows.push_back({clean_at(n, "name"), clean_at(n, "role"), clean_at(n, "state"), clean_at(n, "address"),
                    clean_at(n, "mac"), when(integer_at(n, "last_seen"))});
  std::string out = declared.empty() ? "no nodes yet: `muster up SPEC`\n" : table(rows);
  const Json unknown = nodes.value("unknown_machines", Json::array());
  const int64_t until = integer_at(nodes, "discover_until");
  if (unknown.empty() && until == 0) return out;
  out +=
      fmt::format("\nUndeclared machines ({}):\n", until ? "discovery is on until " + to_iso8601(until)
                                                         : "discovery is off; run `muster node discover on`");
  Rows machines = {{"MACHINE", "SEEN", "SERIAL", "CPUS", "MEMORY", "GPUS", "DRIVES"}};
  for (const Json& machine : unknown) machines.push_back(machine_row(machine));
  return out +
         (unknown.empty() ? "no undeclared machine has booted from the network yet\n" : table(machines));
}

std::string render_machine(const Json& node) {
  Rows head = {{clean_at(node, "name") + ":", clean_at(node, "state")}};
  static constexpr std::pair<const char*, const char*> kLines[] = {
      {"reason:", "reason"}, {"role:", "role"}, {"address:", "address"},
      {"MAC:", "mac"},       {"BMC:", "bmc"},   {"image:", "image_digest"}};
  for (const auto& [words, key] : kLines)
    if (const auto value = clean_at(node, key); !value.empty()) head.push_back({words, value});
  if (const Json adopted = node.value("adopted", Json()); adopted.is_object())
    head.push_back({"adopted:",
                    fmt::format("{}@{}:{}, host key {}", clean_at(adopted, "user"), clean_at(adopted, "host"),
                                adopted.value("port", 22), clean_at(adopted, "host_key"))});
  head.push_back({"last seen:", when(integer_at(node, "last_seen"))});
  head.push_back({"inventory from:", when(integer_at(node, "facts_time"))});
  const auto facts = node.contains("facts") && node["facts"].is_object()
                         ? hardware_facts_from_json(node["facts"])
                         : Result<HardwareFacts>(Error{});
  return table(head) + (facts.ok() ? "\n" + parts(*facts) : "");
}

}  // namespace muster::cli
