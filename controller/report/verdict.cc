#include "controller/report/verdict.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <set>

#include "controller/plan/disks.h"

namespace muster {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr size_t kFleetMinimum = 3;  // values; a median of two cannot tell which one is wrong

// Memory is declared as installed; firmware and kernel keep some of it. 1.5 % + 128 MiB covers that and is less than
// one of 32 equal modules.
constexpr double kMemoryShare = 0.015;
constexpr double kMemoryFixed = 128.0 * 1024 * 1024;

std::string amount(double value, const std::string& unit) {
  // Four significant digits, without exponents for everyday sizes.
  std::string text = std::fabs(value) >= 1000 && std::fabs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                                         : fmt::format("{:.4g}", value);
  if (text == "1" && (unit == "disks" || unit == "ports" || unit == "processors" || unit == "GPUs"))
    return text + " " + unit.substr(0, unit.size() - 1);
  return unit.empty() ? text : text + " " + unit;
}

// ---- hardware ----------------------------------------------------------------------------------------------------

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

// All of `found` must match the glob; what does not is blamed.
Check judge_model(const char* part, std::string what, const std::string& pattern,
                  const std::vector<std::pair<std::string, std::string>>& found) {
  Check check = hardware_check(part, std::move(what));
  check.expected_text = pattern;
  check.derivation = "model pattern declared in the spec";
  std::set<std::string> models;
  for (const auto& [id, model] : found) {
    models.insert(model);
    if (!glob_match(pattern, model)) check.blame.push_back(fmt::format("{} is {}", id, model));
  }
  check.measured_text = fmt::format("{}", fmt::join(models, ", "));
  if (found.empty())
    check.reason = "declared and absent";
  else if (!check.blame.empty())
    check.reason = fmt::format("{} of {} do not match", check.blame.size(), found.size());
  if (!check.reason.empty()) check.verdict = Verdict::fail;
  return check;
}

// "5.0 x16" -> the link sysfs reports, "32.0 GT/s x16"; "" for anything else.
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
  check.derivation = fmt::format("declared {}, that is {} as trained, not as capable", declared,
                                 wanted.empty() ? "?" : wanted);
  std::set<std::string> seen;
  bool unknown = false;
  for (const auto& gpu : facts.gpus) {
    seen.insert(gpu.bus_speed.empty() ? "unknown" : gpu.bus_speed);
    if (gpu.bus_speed.empty())
      unknown = true;
    else if (gpu.bus_speed != wanted)
      check.blame.push_back(fmt::format("{} at {}", gpu.pci, gpu.bus_speed));
  }
  check.measured_text = fmt::format("{}", fmt::join(seen, ", "));
  if (!check.blame.empty()) {
    check.verdict = Verdict::fail;
    check.reason = fmt::format("{} of {} links trained at another speed or width", check.blame.size(),
                               facts.gpus.size());
  } else if (facts.gpus.empty()) {
    check.verdict = Verdict::fail;
    check.reason = "declared and no GPU found";
  } else if (unknown || wanted.empty()) {
    check.verdict = Verdict::skipped;
    check.reason = wanted.empty() ? fmt::format("'{}' is not a PCIe link", declared)
                                  : "the agent could not read the link";
  }
  return check;
}

void judge_gpus(const HardwareSpec& spec, const HardwareFacts& facts, std::vector<Check>& out) {
  const std::string found = fmt::format("{} found", facts.gpus.size());
  const bool declared = spec.gpus.value_or(0) > 0 || !spec.gpu_model.empty();
  if (!declared && (!spec.gpus || facts.gpus.empty())) {  // a GPU where the spec says 0 is no match either
    out.push_back(not_declared("gpus", "GPUs", found));
    return;
  }
  Check count = hardware_check("gpus", "GPUs");
  if (spec.gpus) {
    judge_count(count, static_cast<double>(facts.gpus.size()), *spec.gpus, "GPUs");
  } else {
    count.measured = static_cast<double>(facts.gpus.size());
    count.measured_text = found;
    count.expected_text = "at least one";
    count.derivation = "a GPU model is declared";
    if (facts.gpus.empty()) count.verdict = Verdict::fail, count.reason = "declared and absent";
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
  const double floor = wanted - wanted * kMemoryShare - kMemoryFixed;
  check.measured = found / kGiB;
  check.expected = floor / kGiB;
  check.unit = "GiB";
  check.measured_text = fmt::format("{:.2f} GiB", found / kGiB);
  check.expected_text = fmt::format("at least {:.2f} GiB", floor / kGiB);
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
  Check check = hardware_check("nics", "Network ports with link");
  int wanted = 0;
  for (const auto& [kind, count] : declared) wanted += count;
  int up = 0;
  for (const auto& nic : facts.nics) {
    if (nic.link_up)
      ++up;
    else
      check.blame.push_back(fmt::format("{} ({}) has no link", nic.name, nic.mac));
  }
  check.measured = up;
  check.expected = wanted;
  check.unit = "ports";
  check.measured_text = fmt::format("{} of {} ports with link", up, facts.nics.size());
  check.expected_text = "at least " + amount(wanted, "ports");
  check.derivation = "at least the sum of the counts declared in the spec";
  if (up >= wanted) {
    check.blame.clear();
    return check;
  }
  check.verdict = Verdict::fail;
  check.reason = fmt::format("{} with link, {} declared", amount(up, "ports"), wanted);
  return check;
}

Check judge_disks(const DiskGroup& group, const HardwareFacts& facts) {
  Check check = hardware_check(("disks/" + group.name).c_str(), "Disks of group " + group.name);
  const auto found = std::count_if(facts.disks.begin(), facts.disks.end(),
                                   [&](const DiskFacts& d) { return disk_matches(group.match, d); });
  judge_count(check, static_cast<double>(found), group.match.count, "disks");
  check.derivation = "exactly as many disks match the group's selector as it declares";
  return check;
}

// Without facts nothing is known: what the spec declares is skipped, and says so.
std::vector<Check> unknown_hardware() {
  Check check = hardware_check("facts", "Hardware inventory");
  check.verdict = Verdict::skipped;
  check.reason = "no inventory of this node";
  check.derivation = "the declared hardware must be found";
  return {check};
}

// ---- measurements ------------------------------------------------------------------------------------------------

const Json& field(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto it = object.find(key);
  return it == object.end() ? kNull : *it;
}

std::string text_of(const Json& json) { return json.is_string() ? json.get<std::string>() : std::string(); }

std::optional<double> metric_value(const Json& result, const std::string& metric) {
  const Json& value = field(field(field(result, "metrics"), metric.c_str()), "value");
  if (!value.is_number() || !std::isfinite(value.get<double>())) return {};
  return value.get<double>();
}

// A step that measured several things ("parts": [{subject, result}]) is several steps. None at all does not apply.
std::vector<MeasuredStep> expand(const std::vector<MeasuredStep>& steps) {
  std::vector<MeasuredStep> out;
  for (const auto& step : steps) {
    const Json& parts = field(step.result, "parts");
    if (!parts.is_array()) {
      out.push_back(step);
      continue;
    }
    MeasuredStep one = step;
    one.result = nullptr;
    for (const auto& part : parts) {
      one.subject = text_of(field(part, "subject"));
      one.result = field(part, "result");
      out.push_back(one);
    }
    if (!parts.empty()) continue;
    one.status = "not_applicable";
    one.message = "there was nothing to measure";
    out.push_back(one);
  }
  return out;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

using Fleet =
    std::map<std::pair<std::string, std::string>, std::vector<double>>;  // (group, metric) -> values

Fleet collect_fleet(const std::vector<MeasuredStep>& steps) {
  Fleet out;
  for (const auto& step : steps) {
    if (!step.expect.is_object() || text_of(field(step.result, "outcome")) != "measured") continue;
    for (const auto& [metric, expectation] : step.expect.items())
      if (const auto value = metric_value(step.result, metric)) out[{step.group, metric}].push_back(*value);
  }
  return out;
}

Check begin_check(const MeasuredStep& step, const std::string& what) {
  Check check;
  check.name = step.group + "/" + what;
  check.title = step.title.empty() ? step.group : step.title;
  check.subject = step.subject;
  check.mandatory = step.mandatory;
  for (const auto& who : field(step.result, "blame"))
    if (who.is_string()) check.blame.push_back(who.get<std::string>());
  return check;
}

void set_failed(Check& check, std::string reason) {
  check.verdict = check.mandatory ? Verdict::fail : Verdict::degraded;
  check.reason = std::move(reason);
}

// Did it run, and was the data right?
Check judge_data(const MeasuredStep& step) {
  Check check = begin_check(step, "data");
  check.derivation = "every result must be right";
  check.evidence = step.result;
  const std::string outcome = text_of(field(step.result, "outcome"));
  const std::string verified = text_of(field(field(step.result, "detail"), "verified"));
  const std::string error = text_of(field(step.result, "error"));
  check.expected_text = "right";
  if (outcome == "measured") {
    check.verdict = Verdict::pass;
    check.measured_text = "right";
    if (!verified.empty()) check.derivation += ": " + verified;
  } else if (outcome == "corrupt" || outcome == "failed" || outcome == "refused") {
    check.measured_text = outcome;
    set_failed(check, error.empty() ? step.message : error);
  } else if (step.status == "failed") {
    check.measured_text = "failed";
    set_failed(check, step.message.empty() ? "the step failed without a message" : step.message);
  } else {
    check.verdict = Verdict::skipped;
    check.reason = !error.empty() ? error : !step.message.empty() ? step.message : "it did not run";
  }
  return check;
}

struct Floor {
  std::optional<double> value = {};
  std::string derivation = {};
};

Floor derive_floor(const Json& expectation, const std::vector<double>* fleet, const std::string& unit) {
  Floor out;
  if (const Json& min = field(expectation, "min"); min.is_number()) {
    out.value = min.get<double>();
    out.derivation = fmt::format("profile floor {}", amount(*out.value, unit));
  }
  const Json& ratio = field(expectation, "fleet_min_ratio");
  if (!ratio.is_number()) return out;
  if (!out.derivation.empty()) out.derivation += "; ";
  if (!fleet || fleet->size() < kFleetMinimum) {
    out.derivation += fmt::format("fleet rule not applied: {} value{}, needs {}", fleet ? fleet->size() : 0,
                                  fleet && fleet->size() == 1 ? "" : "s", kFleetMinimum);
    return out;
  }
  const double median = median_of(*fleet), floor = ratio.get<double>() * median;
  out.derivation += fmt::format("{:.3g} x fleet median {} of {} values = {}", ratio.get<double>(),
                                amount(median, unit), fleet->size(), amount(floor, unit));
  if (!out.value || floor > *out.value) out.value = floor;
  return out;
}

Check judge_metric(const MeasuredStep& step, const std::string& metric, const Json& expectation,
                   const Fleet& fleet) {
  Check check = begin_check(step, metric);
  const auto value = metric_value(step.result, metric);
  check.unit = text_of(field(expectation, "unit"));
  if (check.unit.empty())
    check.unit = text_of(field(field(field(step.result, "metrics"), metric.c_str()), "unit"));
  const auto values = fleet.find({step.group, metric});
  const Floor floor =
      derive_floor(expectation, values == fleet.end() ? nullptr : &values->second, check.unit);
  const Json& max = field(expectation, "max");
  check.expected = floor.value;
  check.derivation = floor.derivation;
  if (floor.value) check.expected_text = "at least " + amount(*floor.value, check.unit);
  if (max.is_number()) {
    if (!floor.value) check.expected = max.get<double>(), check.lower_is_better = true;
    check.expected_text += fmt::format("{}at most {}", check.expected_text.empty() ? "" : ", ",
                                       amount(max.get<double>(), check.unit));
    check.derivation += fmt::format("{}profile ceiling {}", check.derivation.empty() ? "" : "; ",
                                    amount(max.get<double>(), check.unit));
  }
  if (!value || text_of(field(step.result, "outcome")) != "measured") {
    check.verdict = Verdict::skipped;
    check.reason = "not measured";
    return check;
  }
  check.measured = value;
  check.measured_text = amount(*value, check.unit);
  check.verdict = Verdict::pass;
  if (floor.value && *value < *floor.value)
    set_failed(check, fmt::format("{} is below {}", check.measured_text, amount(*floor.value, check.unit)));
  else if (max.is_number() && *value > max.get<double>())
    set_failed(check,
               fmt::format("{} is above {}", check.measured_text, amount(max.get<double>(), check.unit)));
  return check;
}

}  // namespace

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
  return out;
}

std::map<std::string, std::vector<Check>> judge_measurements(const std::vector<MeasuredStep>& given) {
  const std::vector<MeasuredStep> steps = expand(given);
  const Fleet fleet = collect_fleet(steps);
  std::map<std::string, std::vector<Check>> out;
  for (const auto& step : steps) {
    auto& checks = out[step.node];
    if (step.status == "not_applicable") {
      Check check = begin_check(step, "data");
      check.verdict = Verdict::not_applicable;
      check.mandatory = false;
      check.derivation = step.message.empty() ? "not declared in the spec" : step.message;
      checks.push_back(std::move(check));
      continue;
    }
    checks.push_back(judge_data(step));
    if (!step.expect.is_object()) continue;
    for (const auto& [metric, expectation] : step.expect.items())
      checks.push_back(judge_metric(step, metric, expectation, fleet));
  }
  return out;
}

std::vector<LinkRecord> link_matrix(const std::vector<MeasuredStep>& given,
                                    const std::vector<std::string>& nodes,
                                    const std::map<std::string, std::string>& node_by_address) {
  const std::vector<MeasuredStep> steps = expand(given);
  std::map<std::pair<std::string, std::string>, LinkRecord> found;
  for (const auto& a : nodes)
    for (const auto& b : nodes)
      if (a != b) found[{a, b}] = {.from = a, .to = b};
  const auto checks = judge_measurements(steps);
  for (const auto& step : steps) {
    if (text_of(field(step.result, "check")) != "link") continue;
    const auto to = node_by_address.find(text_of(field(field(step.result, "detail"), "to")));
    if (to == node_by_address.end()) continue;
    Verdict verdict = Verdict::pass;
    for (const auto& check : checks.at(step.node))
      if (check.name.rfind(step.group + "/", 0) == 0 && check.subject == step.subject &&
          check.verdict != Verdict::pass)
        verdict = verdict == Verdict::fail ? verdict : check.verdict;
    const auto rtt = metric_value(step.result, "rtt_ms");
    const auto add = [&](const std::string& from, const std::string& target, const char* metric) {
      LinkRecord& record = found[{from, target}];
      const bool first = !record.mbps && record.verdict == Verdict::skipped;
      const auto rate = metric_value(step.result, metric);
      record.from = from;
      record.to = target;
      record.rtt_ms = rtt;
      // Measured from both ends: the lower rate and the worse verdict count.
      if (rate) record.mbps = record.mbps ? std::min(*record.mbps, *rate) : *rate;
      if (first || record.verdict == Verdict::pass || verdict == Verdict::fail) record.verdict = verdict;
    };
    add(step.node, to->second, "send_mbps");
    add(to->second, step.node, "receive_mbps");
  }
  std::vector<LinkRecord> out;
  for (auto& [pair, record] : found) out.push_back(std::move(record));
  return out;
}

Status check_expectations(const Json& expect) {
  if (expect.is_null()) return Ok{};
  if (!expect.is_object()) return fail(Code::invalid, "expect: expected an object of metrics");
  for (const auto& [metric, expectation] : expect.items()) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double min = -kInfinity, max = kInfinity, ratio = 1;
    std::string unit;
    JsonReader r(expectation, "expect." + metric);
    r.get_or("min", min, -kInfinity);
    r.get_or("max", max, kInfinity);
    r.get_or("fleet_min_ratio", ratio, 1.0);
    r.get_or("unit", unit, {});
    TRY_(r.finish());
    if (min > max)
      return fail(Code::invalid, fmt::format("expect.{}: min {} is above max {}", metric, min, max));
    if (!(ratio > 0 && ratio <= 1))
      return fail(Code::invalid,
                  fmt::format("expect.{}.fleet_min_ratio: {} is not in (0, 1]", metric, ratio));
  }
  return Ok{};
}

}  // namespace muster
