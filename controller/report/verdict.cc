#include "controller/report/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/standin.h"
#include "controller/report/drive_floors.h"
#include "controller/report/expected.h"
#include "controller/report/measured.h"
#include "controller/spec/hardware.h"

namespace muster {
namespace {

bool says_it(const std::string& text) { return text.find(kSimulatedGpu) != std::string::npos; }

// True if the check is about GPUs; hardware/pcie is about the links of the GPUs only.
bool all_about_gpus(const Check& check) {
  return says_it(check.title) || check.name.starts_with("gpu ") || check.name.starts_with("hardware/gpu") ||
         check.name == "hardware/pcie";
}

bool metric_of_gpus(const Check& check) {
  const std::string metric = check.name.substr(check.name.rfind('/') + 1);
  return metric.starts_with("gpu") || metric.starts_with("nvlink");
}

void say_it(std::string& text) {
  if (!text.empty() && !says_it(text)) text += fmt::format(" ({})", kSimulatedGpu);
}

constexpr double kGiB = 1024.0 * 1024 * 1024;

Check hardware_check(const char* part, std::string what) {
  Check check;
  check.name = std::string("hardware/") + part;
  check.title = std::move(what);
  check.verdict = Verdict::pass;
  return check;
}

void judge_count(Check& check, double found, double declared, const char* unit) {
  check.measured = found;
  check.expected = declared;
  check.unit = unit;
  check.measured_text = amount(found, unit);
  check.expected_text = amount(declared, unit);
  check.because = fmt::format("the declared {}", check.expected_text);
  check.source = "the spec";
  check.derivation = "equal to the count declared in the spec";
  if (found == declared) return;
  check.verdict = Verdict::fail;
  check.reason = fmt::format("{} found, {} declared", amount(found, unit), amount(declared, unit));
}

Check not_declared(const char* part, std::string what, std::string found) {
  Check check = hardware_check(part, std::move(what));
  check.verdict = Verdict::not_applicable;
  check.mandatory = false;
  check.measured_text = std::move(found);
  check.derivation = "not declared in the spec";
  return check;
}

// All of `found` must match the glob; parts that do not are listed as faulty.
Check judge_model(const char* part, std::string what, const std::string& pattern,
                  const std::vector<std::pair<std::string, std::string>>& found) {
  Check check = hardware_check(part, std::move(what));
  check.expected_text = pattern;
  check.derivation = "model pattern declared in the spec";
  std::set<std::string> models;
  for (const auto& [id, model] : found) {
    models.insert(model);
    if (!glob_match(pattern, model)) check.faulty_parts.push_back(fmt::format("{} is {}", id, model));
  }
  check.measured_text = fmt::format("{}", fmt::join(models, ", "));
  if (found.empty())
    check.reason = "declared, but absent";
  else if (!check.faulty_parts.empty())
    check.reason = fmt::format("{} of {} do not match", check.faulty_parts.size(), found.size());
  if (!check.reason.empty()) check.verdict = Verdict::fail;
  return check;
}

// "5.0 x16" -> the link as sysfs reports it, "32.0 GT/s x16"; "" for anything else.
std::string trained_link(const std::string& declared) {
  static const std::map<std::string, std::string> kRates = {
      {"1.0", "2.5"}, {"2.0", "5.0"}, {"3.0", "8.0"}, {"4.0", "16.0"}, {"5.0", "32.0"}, {"6.0", "64.0"}};
  const size_t space = declared.find(' ');
  if (space == std::string::npos) return "";
  std::string generation = declared.substr(0, space);
  if (generation.find('.') == std::string::npos) generation += ".0";
  const auto rate = kRates.find(generation);
  return rate == kRates.end() ? "" : rate->second + " GT/s " + declared.substr(space + 1);
}

Check judge_pcie(const std::string& declared, const HardwareFacts& facts) {
  Check check = hardware_check("pcie", "PCIe links of the GPUs");
  const std::string wanted = trained_link(declared);
  check.expected_text = declared;
  check.derivation = fmt::format("declared {}, which means {}: the trained link counts, not the capability",
                                 declared, wanted.empty() ? "?" : wanted);
  std::set<std::string> seen;
  bool unknown = false;
  for (const auto& gpu : facts.gpus) {
    seen.insert(gpu.bus_speed.empty() ? "unknown" : gpu.bus_speed);
    if (gpu.bus_speed.empty())
      unknown = true;
    else if (gpu.bus_speed != wanted)
      check.faulty_parts.push_back(fmt::format("{} at {}", gpu.pci, gpu.bus_speed));
  }
  check.measured_text = fmt::format("{}", fmt::join(seen, ", "));
  if (!check.faulty_parts.empty()) {
    check.verdict = Verdict::fail;
    check.reason = fmt::format("{} of {} links trained at a different speed or width",
                               check.faulty_parts.size(), facts.gpus.size());
  } else if (facts.gpus.empty()) {
    check.verdict = Verdict::fail;
    check.reason = "declared, but no GPU found";
  } else if (unknown || wanted.empty()) {
    check.verdict = Verdict::skipped;
    check.reason = wanted.empty() ? fmt::format("'{}' is not a PCIe link", declared)
                                  : "the agent could not read the PCIe link";
  }
  return check;
}

void judge_gpus(const HardwareSpec& spec, const HardwareFacts& facts, std::vector<Check>& out) {
  const int gpus = counted_gpus(spec, facts);
  const std::string found = fmt::format("{} found", gpus);
  const bool declared = spec.gpus.value_or(0) > 0 || !spec.gpu_model.empty();
  if (!declared && (!spec.gpus || gpus == 0)) {  // any GPU is a mismatch if the spec declares 0
    out.push_back(not_declared("gpus", "GPUs", found));
    return;
  }
  Check count = hardware_check("gpus", "GPUs");
  if (spec.gpus) {
    judge_count(count, gpus, *spec.gpus, "GPUs");
  } else {
    count.measured = gpus;
    count.measured_text = found;
    count.expected_text = "at least one";
    count.derivation = "a GPU model is declared";
    if (gpus == 0) count.verdict = Verdict::fail, count.reason = "declared, but absent";
  }
  out.push_back(std::move(count));
  if (spec.gpu_model.empty()) return;
  std::vector<std::pair<std::string, std::string>> models;
  for (const auto& gpu : facts.gpus) models.emplace_back(gpu.pci, gpu.model);
  out.push_back(judge_model("gpu_model", "GPU model", spec.gpu_model, models));
}

Check judge_memory(int64_t declared, uint64_t found_bytes) {
  Check check = hardware_check("memory", "Memory");
  const double wanted = static_cast<double>(declared), found = static_cast<double>(found_bytes);
  const double floor = least_memory(declared);
  check.measured = found / kGiB;
  check.expected = floor / kGiB;
  check.unit = "GiB";
  check.measured_text = fmt::format("{:.2f} GiB", found / kGiB);
  check.expected_text = fmt::format("at least {:.2f} GiB", floor / kGiB);
  check.because = fmt::format("the declared {:.2f} GiB", wanted / kGiB);
  check.source = "the spec";
  check.derivation = fmt::format(
      "at least the declared {:.2f} GiB, less 1.5 % and 128 MiB that firmware and kernel may keep",
      wanted / kGiB);
  if (found < floor) {
    check.verdict = Verdict::fail;
    check.reason = fmt::format("{:.2f} GiB found, {:.2f} GiB declared", found / kGiB, wanted / kGiB);
  }
  return check;
}

Check judge_nics(const std::map<std::string, int>& declared, const HardwareFacts& facts) {
  Check check = hardware_check("nics", "Network ports with a link");
  int wanted = 0;
  for (const auto& [kind, count] : declared) wanted += count;
  int up = 0;
  for (const auto& nic : facts.nics) {
    if (nic.link_up)
      ++up;
    else
      check.faulty_parts.push_back(fmt::format("{} ({}) has no link", nic.name, nic.mac));
  }
  check.measured = up;
  check.expected = wanted;
  check.unit = "ports";
  check.measured_text = fmt::format("{} of {} ports have a link", up, facts.nics.size());
  check.expected_text = "at least " + amount(wanted, "ports");
  check.because = fmt::format("the declared {}", amount(wanted, "ports"));
  check.source = "the spec";
  check.derivation = "at least the sum of the counts declared in the spec";
  if (up >= wanted) {
    check.faulty_parts.clear();
    return check;
  }
  check.verdict = Verdict::fail;
  check.reason = fmt::format("{} with a link, {} declared", amount(up, "ports"), wanted);
  return check;
}

Check judge_disks(const DiskGroup& group, const HardwareFacts& facts) {
  Check check = hardware_check(("disks/" + group.name).c_str(), "Disks in group " + group.name);
  const auto found = std::count_if(facts.disks.begin(), facts.disks.end(),
                                   [&](const DiskFacts& d) { return disk_matches(group.match, d); });
  judge_count(check, static_cast<double>(found), group.match.count, "disks");
  check.derivation = "the number of disks that match the group's selector must equal its declared count";
  return check;
}

// ---- a spec that was generated from the hosts themselves (controller/hosts/hosts_spec.h)

// What the machine has, if no majority shows what it should have: compared with its own history only.
void keep_own(const HardwareFacts& facts, std::vector<Check>& out) {
  const auto up =
      std::count_if(facts.nics.begin(), facts.nics.end(), [](const auto& nic) { return nic.link_up; });
  const std::map<std::string, std::pair<double, const char*>> found = {
      {"hardware/gpus", {static_cast<double>(compute_gpus(facts)), "GPUs"}},
      {"hardware/cpus", {facts.cpus.count, "processors"}},
      {"hardware/memory", {static_cast<double>(facts.memory_bytes) / kGiB, "GiB"}},
      {"hardware/nics", {static_cast<double>(up), "ports"}}};
  for (auto& check : out) {
    const auto one = found.find(check.name);
    if (check.verdict != Verdict::not_applicable || one == found.end()) continue;
    check.derivation = "no majority among the hosts in its group";
    check.like = kOwnHardware;
    check.measured = one->second.first;
    check.unit = one->second.second;
  }
}

// Not declared: the expected values are what most hosts in a group have.
void say_majority(const HardwareSpec& spec, std::vector<Check>& out) {
  for (auto& check : out) {
    if (check.verdict == Verdict::not_applicable || check.name.starts_with("hardware/disks/")) continue;
    const bool memory = check.name == "hardware/memory";
    if (check.expected) {
      check.because =
          fmt::format("what most hosts in its group have, {}",
                      memory ? fmt::format("{:.2f} GiB", static_cast<double>(spec.memory_bytes_min) / kGiB)
                             : amount(*check.expected, check.unit));
      check.source = "the inventories of the hosts in its group";
    }
    check.derivation =
        fmt::format("what most hosts in its group have{}",
                    memory ? ", less 1.5 % and 128 MiB that firmware and kernel may keep" : "");
    if (check.verdict != Verdict::fail || !check.measured || !check.expected) continue;
    const double most = memory ? static_cast<double>(spec.memory_bytes_min) / kGiB : *check.expected;
    check.reason = fmt::format("{} of {}{}", amount(*check.measured, ""), amount(most, check.unit),
                               check.name == "hardware/nics" ? " with a link"
                               : memory                      ? " of memory"
                                                             : "");
  }
}

// Without facts the declared hardware cannot be checked: one skipped check gives this reason.
std::vector<Check> unknown_hardware() {
  Check check = hardware_check("facts", "Hardware inventory");
  check.verdict = Verdict::skipped;
  check.reason = "no inventory of this node";
  check.derivation = "the declared hardware must be found";
  return {check};
}

}  // namespace

void say_simulated(const HardwareFacts& facts, std::vector<Check>& checks) {
  if (simulated_gpus(facts) == 0) return;
  for (auto& check : checks) {
    const bool all = all_about_gpus(check);
    if (!all && !metric_of_gpus(check)) continue;
    if (all) say_it(check.title);  // else the title must be the same on all nodes
    say_it(check.measured_text);
    say_it(check.reason);
    if (check.measured_text.empty() && check.reason.empty()) check.measured_text = kSimulatedGpu;
  }
}

std::vector<Check> judge_hardware(const NodeSpec& node, const HardwareFacts* facts) {
  if (!facts) return unknown_hardware();
  std::vector<Check> out;
  const HardwareSpec& spec = node.hardware;
  if (spec.cpus) {
    Check check = hardware_check("cpus", "Processors");
    judge_count(check, facts->cpus.count, *spec.cpus, "processors");
    out.push_back(std::move(check));
  } else {
    out.push_back(not_declared("cpus", "Processors", fmt::format("{} processors", facts->cpus.count)));
  }
  if (!spec.cpu_model.empty()) {
    std::vector<std::pair<std::string, std::string>> models;
    if (!facts->cpus.model.empty()) models.emplace_back("cpu", facts->cpus.model);
    out.push_back(judge_model("cpu_model", "Processor model", spec.cpu_model, models));
  }
  if (spec.memory_bytes_min > 0)
    out.push_back(judge_memory(spec.memory_bytes_min, facts->memory_bytes));
  else
    out.push_back(not_declared("memory", "Memory",
                               fmt::format("{:.2f} GiB", static_cast<double>(facts->memory_bytes) / kGiB)));
  judge_gpus(spec, *facts, out);
  if (!spec.pcie.empty()) out.push_back(judge_pcie(spec.pcie, *facts));
  if (!spec.nics.empty())
    out.push_back(judge_nics(spec.nics, *facts));
  else
    out.push_back(not_declared("nics", "Network ports", fmt::format("{} ports", facts->nics.size())));
  for (const auto& [name, group] : node.disks) out.push_back(judge_disks(group, *facts));
  if (is_generated(node)) {
    keep_own(*facts, out);
    say_majority(spec, out);
  }
  say_simulated(*facts, out);
  return out;
}

Status check_limit(const std::string& metric, const Json& expectation) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double min = -kInfinity, max = kInfinity, low = 0, high = 0, least = 0;
  std::map<std::string, double> ratios = {
      {"fleet_min_ratio", 1}, {"history_min_ratio", 1}, {"ratio", 1}, {"fail_ratio", 1}, {"of_raw_reads", 1}};
  std::string unit, derived;
  JsonReader r(expectation, metric);
  r.get_or("min", min, -kInfinity);
  r.get_or("max", max, kInfinity);
  r.get_or("degraded_below", low, 0.0);
  r.get_or("degraded_above", high, 0.0);
  r.get_or("otherwise_min", least, 0.0);
  r.get_or("derive", derived, {});
  r.get_or("unit", unit, {});
  for (auto& [name, ratio] : ratios) r.get_or(name.c_str(), ratio, 1.0);
  TRY_(r.finish());
  if (min > max) return fail(Code::invalid, fmt::format("min {} is above max {}", min, max));
  for (const auto& [name, ratio] : ratios)
    if (!(ratio > 0 && ratio <= 1))
      return fail(Code::invalid, fmt::format("{} is {}, but must be above 0 and at most 1", name, ratio));
  const auto& names = derivable();
  if (!derived.empty() && std::find(names.begin(), names.end(), derived) == names.end()) {
    const std::string near = nearest_spelling(derived, names);
    return fail(Code::invalid, fmt::format("there is no derived value '{}'{}", derived,
                                           near.empty() ? "" : ", did you mean '" + near + "'?"));
  }
  if (derived == kDriveModels && !is_known_of_drives(metric))
    return fail(
        Code::invalid,
        "only read_mbps, parallel_mbps, write_mbps and random_read_iops can be derived from drive models");
  if (expectation.contains("of_raw_reads") != expectation.contains("otherwise_min"))
    return fail(Code::invalid, "`of_raw_reads` and `otherwise_min` must be given together");
  if (derived.empty() == (expectation.contains("ratio") || expectation.contains("fail_ratio")))
    return fail(Code::invalid, "`derive` requires `ratio` or `fail_ratio`, and vice versa");
  return Ok{};
}

Status check_expectations(const Json& expect) {
  if (expect.is_null()) return Ok{};
  if (!expect.is_object()) return fail(Code::invalid, "expect: expected an object of metrics");
  for (const auto& [metric, expectation] : expect.items())
    if (const Status fine = check_limit(metric, expectation); !fine.ok())
      return fail(Code::invalid, fmt::format("expect.{}: {}", metric, fine.error().message));
  return Ok{};
}

}  // namespace muster
