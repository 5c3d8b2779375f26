#include "controller/report/measured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "controller/causes/cause_text.h"

namespace muster {
namespace {

bool is_of_all_cores(const Json& expectation) {
  const std::string name = text_of(field(expectation, "derive"));
  return name == "cpu_peak" || name == "dimm_bandwidth";
}

// "4 x KIOXIA X": the drives that the measurement of a file system names, by model; "": it names none.
std::string drives_under(const MeasuredStep& step, const HardwareFacts& machine) {
  std::map<std::string, int> models;
  for (const Json& serial : field(field(step.result, "detail"), "drives")) {
    const auto known = std::find_if(machine.disks.begin(), machine.disks.end(),
                                    [&](const DiskFacts& disk) { return disk.serial == text_of(serial); });
    ++models[known == machine.disks.end() ? "drives" : known->model];
  }
  std::vector<std::string> out;
  for (const auto& [model, count] : models) out.push_back(fmt::format("{} x {}", count, model));
  return fmt::format("{}", fmt::join(out, ", "));
}

// True if the share is a quota of CPU time: it names no cores, so no peak of these cores can be derived.
bool by_quota(const MeasuredStep& step) { return step.share && step.share->cores_by == "cpu.max"; }

}  // namespace

void mark_shares(std::vector<MeasuredStep>& steps, const std::map<std::string, const HardwareFacts*>& facts) {
  for (auto& step : steps) {
    const auto found = facts.find(step.node);
    if (found == facts.end() || !found->second || found->second->share.words.empty()) continue;
    if (!is_link(step) && !is_collective(step)) step.share = &found->second->share;
  }
}

std::string machine_kind(const HardwareFacts& machine) {
  std::vector<std::string> words = {model_value(machine.system.vendor, machine.system.product),
                                    machine.cpus.model};
  std::erase(words, "");
  return fmt::format("{}", fmt::join(words, ", "));
}

void mark_machines(std::vector<MeasuredStep>& steps,
                   const std::map<std::string, const HardwareFacts*>& facts) {
  for (auto& step : steps) {
    const auto found = facts.find(step.node);
    if (found == facts.end() || !found->second || is_link(step) || is_collective(step) || !step.like.empty())
      continue;
    const HardwareFacts& machine = *found->second;
    std::set<std::string> gpus;
    for (const auto& gpu : machine.gpus)
      if (step.on_gpus) gpus.insert(gpu.model);
    std::vector<std::string> words = {machine_kind(machine), fmt::format("{}", fmt::join(gpus, ", "))};
    if (text_of(field(step.result, "check")) == "fio")
      words.insert(words.end(), {step.subject, drives_under(step, machine)});
    std::erase(words, "");
    step.kind = fmt::format("{}", fmt::join(words, ", "));
  }
}

std::string likeness(const MeasuredStep& step) {
  const std::string share = step.share ? fmt::format("{}", fmt::join(step.share->words, ", ")) : "";
  return step.like.empty() || share.empty() ? step.like + share : step.like + ", " + share;
}

bool is_for_whole_nodes(const Json& expectation, const MeasuredStep& step) {
  if (!step.share) return false;
  if (is_of_all_cores(expectation)) return true;
  return by_quota(step) && std::any_of(step.expect.begin(), step.expect.end(), is_of_all_cores);
}

bool is_underivable(const std::string& name, const MeasuredStep& step) {
  return step.share && (name == "dimm_bandwidth" || (name == "cpu_peak" && by_quota(step)));
}

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

std::string not_what_it_is_named_for(const MeasuredStep& step) {
  const Json& detail = field(step.result, "detail");
  if (step.lab || field(detail, "cache_resident") != true) return "";
  const auto mib = [&](const char* key) {
    const Json& bytes = field(detail, key);
    return bytes.is_number() ? fmt::format("{:.0f} MiB", bytes.get<double>() / 1024 / 1024)
                             : "an unknown size";
  };
  return fmt::format(
      "the rate is the cache's and not the memory's: arrays of {} are below four times the last level cache "
      "of "
      "{}, because too little memory is available (other programs, huge pages, a cgroup's limit)",
      mib("array_bytes"), mib("last_level_cache_bytes"));
}

std::optional<double> measured_value(const MeasuredStep& step, const std::string& metric) {
  return not_what_it_is_named_for(step).empty() ? metric_value(step.result, metric) : std::nullopt;
}

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
      one.like = text_of(field(part, "like"));
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

bool is_link(const MeasuredStep& step) {
  const std::string check = text_of(field(step.result, "check"));
  return check == "link" || check == "rdma-link";
}

std::string link_group(const MeasuredStep& step) {
  return step.like.empty() ? step.group : step.group + ", " + step.like;
}

std::string path_group(const MeasuredStep& step) { return link_group(step) + ", " + step.kind; }

std::string subject_of(const MeasuredStep& step) {
  const bool by_rail = text_of(field(step.result, "check")).starts_with("rdma-") && !step.like.empty();
  return by_rail ? step.subject + ", " + step.like : step.subject;
}

bool is_sending(const std::string& metric) { return metric == "send_mbps" || metric == "send_gbps"; }
bool is_receiving(const std::string& metric) { return metric == "receive_mbps" || metric == "receive_gbps"; }

std::optional<double> rate_of(const MeasuredStep& step, bool sending) {
  const auto tcp = metric_value(step.result, sending ? "send_mbps" : "receive_mbps");
  return tcp ? tcp : metric_value(step.result, sending ? "send_gbps" : "receive_gbps");
}

std::string end_at_fault(const MeasuredStep& step) {
  const std::string side = text_of(field(field(step.result, "detail"), "at_fault"));
  return side == "here" ? step.node : side == "peer" ? step.subject : "";
}

bool is_inconclusive(const MeasuredStep& step) {
  return text_of(field(step.result, "outcome")) != "measured" &&
         (field(field(step.result, "detail"), "inconclusive") == true || is_unmeasurable(step));
}

bool is_unmeasurable(const MeasuredStep& step) {
  return text_of(field(step.result, "outcome")) != "measured" &&
         !text_of(field(field(step.result, "detail"), "not_looked_at")).empty();
}

bool is_collective(const MeasuredStep& step) {
  return !step.own_affair && (!step.members.empty() || text_of(field(step.result, "check")) == "allreduce");
}

bool ran_alone(const MeasuredStep& step) {
  return step.members.size() == 1 && text_of(field(step.result, "outcome")) != "corrupt";
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string amount(double value, const std::string& unit) {
  const bool plain = std::fabs(value) >= 1000 && std::fabs(value) < 1e15;
  const std::string text = plain ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
  const bool countable = unit == "disks" || unit == "ports" || unit == "processors" || unit == "GPUs";
  if (text == "1" && countable) return text + " " + unit.substr(0, unit.size() - 1);
  return unit.empty() ? text : text + " " + unit;
}

}  // namespace muster
