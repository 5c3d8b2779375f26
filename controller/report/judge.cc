// The verdict on measurements: the worst of absolute limits, derived values, the fleet and own history.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <set>

#include "controller/report/bounds.h"
#include "controller/report/counted.h"
#include "controller/report/drive_floors.h"
#include "controller/report/expected.h"
#include "controller/report/gpu_checks.h"
#include "controller/report/gpu_results.h"
#include "controller/report/measured.h"
#include "controller/report/network_bounds.h"
#include "controller/report/pcie_links.h"
#include "controller/report/port_rates.h"
#include "controller/report/vanished.h"

namespace muster {
namespace {

constexpr size_t kFleetMinimum = 3;     // values; a median of two cannot show which one is wrong
constexpr size_t kSpreadMinimum = 8;    // values; fewer show nothing about a spread
constexpr double kSpread = 4 * 1.4826;  // 1.4826 x MAD estimates a normal distribution's sigma
constexpr double kMostSpread =
    0.5;  // of the median: half as fast as equal parts is slow, however noisy they are
constexpr size_t kHistoryShown = 5;
constexpr const char* kThisRun = "the values of the fleet";

struct Key {
  std::string group, metric, like, kind;
  auto operator<=>(const Key&) const = default;
};
struct FleetValues {
  std::vector<double> now = {}, before = {};  // before: values of nodes that are not in this run
  std::vector<double> all() const {
    std::vector<double> out = now;
    if (now.size() < kFleetMinimum) out.insert(out.end(), before.begin(), before.end());
    return out;
  }
};
struct Fleet {
  std::map<Key, FleetValues> values = {};
  std::map<std::string, double> healthy_links = {};  // by path_group(): the rate of a healthy pair
  RawReads raw = {};                                 // of drives, in this run
  DrivesFound drives = {};
};

std::optional<double> number(const Json& expectation, const char* key) {
  const Json& value = field(expectation, key);
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

Fleet collect_fleet(const std::vector<MeasuredStep>& steps, const Comparison& with) {
  Fleet fleet;
  fleet.raw = raw_reads(steps);
  fleet.drives = drives_found(steps, with.facts);
  if (with.own_only) return fleet;
  for (const auto& [group, findings] : find_links(steps, {}, path_group))
    if (findings.reference) fleet.healthy_links[group] = *findings.reference;
  auto& out = fleet.values;
  std::map<Key, std::vector<std::string>> seen;
  for (const auto& step : steps) {
    if (!step.expect.is_object() || text_of(field(step.result, "outcome")) != "measured") continue;
    for (const auto& [metric, expectation] : step.expect.items())
      if (const auto value = measured_value(step, metric)) {
        const Key key{step.group, metric, likeness(step), step.kind};
        out[key].now.push_back(*value);
        seen[key].push_back(step.node);
      }
  }
  if (!with.history) return fleet;
  for (auto& [key, values] : out)
    for (const auto& [node, checks] : with.history->nodes) {
      if (std::count(seen[key].begin(), seen[key].end(), node)) continue;
      for (const auto& [check, past] : checks) {
        if (check.first != key.group + "/" + key.metric) continue;
        const auto good = std::find_if(past.begin(), past.end(), [&want = key](const PastValue& p) {
          return p.good && p.like == want.like && p.kind == want.kind;
        });
        if (good != past.end()) values.before.push_back(good->value);
      }
    }
  return fleet;
}

Check begin_check(const MeasuredStep& step, const std::string& what) {
  Check check;
  check.name = step.group + "/" + what;
  check.title = step.title.empty() ? step.group : step.title;
  check.subject = subject_of(step);
  check.like = likeness(step);
  check.kind = step.kind;
  check.mandatory = step.mandatory;
  for (const auto& who : field(step.result, "blame"))
    if (who.is_string()) check.faulty_parts.push_back(who.get<std::string>());
  return check;
}

// True if a failure in this aspect keeps the node from being accepted, even if the step is not mandatory.
// Wrong data and counted errors, unlike speeds, need no limit that must be established first.
bool stops(const MeasuredStep& step, const char* aspect) {
  return step.mandatory || std::find(step.blocks.begin(), step.blocks.end(), aspect) != step.blocks.end();
}

Check judge_data(const MeasuredStep& step) {
  Check check = begin_check(step, "data");
  check.derivation = "every result must be right";
  check.evidence = step.result;
  const std::string outcome = text_of(field(step.result, "outcome"));
  const std::string verified = text_of(field(field(step.result, "detail"), "verified"));
  const std::string error = text_of(field(step.result, "error"));
  check.expected_text = "right";
  const bool bad = outcome == "corrupt" || outcome == "failed" || outcome == "refused";
  const bool ran = bad || outcome == "measured" || step.status == "failed";
  const bool unrun = must_run(step) && !has_run(step);
  check.mandatory = unrun || stops(step, ran ? "data" : "run");
  if (outcome == "measured" && !unrun) {
    check.verdict = Verdict::pass;
    check.measured_text = "right";
    if (!verified.empty()) check.derivation += ": " + verified;
  } else if (bad) {
    check.measured_text = outcome;
    set_failed(check, error.empty() ? step.message : error);
  } else if (check.mandatory && field(field(step.result, "detail"), "missing").is_string()) {
    check.measured_text = "missing";
    set_failed(check, error);
  } else if (step.status == "failed") {
    check.measured_text = "failed";
    set_failed(check, step.message.empty() ? "the step failed without a message" : step.message);
  } else {
    check.verdict = Verdict::skipped;
    const char* why =
        outcome == "measured" ? "the test measured none of the expected values" : "the test did not run";
    check.reason = !error.empty() ? error : !step.message.empty() ? step.message : why;
  }
  if (unrun && !bad) check.reason += "; to fix it: " + remedy(step, step.node);
  return check;
}

// The models of the GPUs that it measured: of one GPU by its part; else all of its nodes'.
std::set<std::string> measured_gpus(const MeasuredStep& step, const Comparison& with) {
  if (!step.like.empty()) return {step.like};
  std::set<std::string> out;
  for (const auto& node : step.members.empty() ? std::vector<std::string>{step.node} : step.members)
    if (const auto facts = with.facts.find(node); facts != with.facts.end() && facts->second)
      for (const auto& gpu : facts->second->gpus) out.insert(gpu.model);
  return out;
}

// The spec's lab section may replace a shipped profile's limits (controller/plan/simulated.h).
std::string owner_of(const Json& expectation) {
  return text_of(field(expectation, "set_by")) == "lab" ? "lab" : "profile";
}
std::string source_of(const Json& expectation) {
  return owner_of(expectation) == "lab" ? "the spec's lab section" : "the acceptance profile";
}

std::string limit_words(const std::string& whose, const char* key, double value, const Bounds& bounds) {
  return fmt::format("the {}'s `{}`, {}", whose, key, amount(value, bounds.unit()));
}

void add_absolute(Bounds& bounds, const Json& expectation, const MeasuredStep& step) {
  const std::string whose = owner_of(expectation), source = source_of(expectation);
  if (is_for_whole_nodes(expectation, step))
    return bounds.cannot(
        "only part of this node was usable",
        fmt::format("the floor of the {} does not apply: it is for whole nodes, but only part of this node "
                    "was usable",
                    whose));
  if (const auto min = number(expectation, "min"))
    bounds.floor(Verdict::fail, *min, limit_words(whose, "min", *min, bounds), source);
  if (const auto low = number(expectation, "degraded_below"))
    bounds.floor(Verdict::degraded, *low, limit_words(whose, "degraded_below", *low, bounds), source);
  if (const auto max = number(expectation, "max"))
    bounds.ceiling(Verdict::fail, *max, limit_words(whose, "max", *max, bounds), source);
  if (const auto high = number(expectation, "degraded_above"))
    bounds.ceiling(Verdict::degraded, *high, limit_words(whose, "degraded_above", *high, bounds), source);
}

void add_derived(Bounds& bounds, const Json& expectation, const MeasuredStep& step, const std::string& metric,
                 const Fleet& fleet, const Comparison& with) {
  const std::string name = text_of(field(expectation, "derive"));
  if (name.empty()) return;
  if (is_underivable(name, step))
    return bounds.cannot(
        "only part of this node was usable",
        "no value derived: only part of the node was usable; compared only with equally large shares of "
        "nodes and with history");
  const bool by_model = name == kDriveModels;
  const auto facts = with.facts.find(step.node);
  Derived derived = by_model ? drive_value(step, metric, with.drives, fleet.drives)
                             : derive(name, step.result, facts == with.facts.end() ? nullptr : facts->second,
                                      measured_gpus(step, with));
  // Drives that share a connection may be slower together; a drive that is slow alone fails its own check.
  if (by_model && derived.value && expectation.contains("of_raw_reads"))
    if (const Derived raw = array_reads(step, metric, fleet.raw); raw.value && *raw.value < *derived.value)
      derived = {raw.value,
                 fmt::format("{}; limited to what its raw drives reach ({})", derived.text, raw.text),
                 derived.source + "; the raw reads of this run"};
  if (!derived.value && by_model)
    return bounds.cannot(
        derived.text, "no floor by model: " + derived.text + "; the profile's other rules apply", derived.of);
  if (!derived.value)
    return bounds.cannot(derived.text,
                         "no value derived: " + derived.text + "; compared only with fleet and history",
                         derived.of);
  if (const auto ratio = number(expectation, "ratio"))
    bounds.floor(Verdict::degraded, *ratio * *derived.value,
                 fmt::format("{:.3g} x derived ({})", *ratio, derived.text), derived.source);
  if (const auto ratio = number(expectation, "fail_ratio"))
    bounds.floor(Verdict::fail, *ratio * *derived.value,
                 fmt::format("{:.3g} x derived ({}), below which it fails", *ratio, derived.text),
                 derived.source);
}

void add_raw(Bounds& bounds, const Json& expectation, const MeasuredStep& step, const std::string& metric,
             const RawReads& raw) {
  const auto ratio = number(expectation, "of_raw_reads");
  if (!ratio) return;
  const std::string whose = owner_of(expectation);
  const Derived sum = array_reads(step, metric, raw);
  if (sum.value)
    return bounds.floor(
        Verdict::fail, *ratio * *sum.value,
        fmt::format("{}{:.3g} x raw drives ({})", whose == "lab" ? "lab: " : "", *ratio, sum.text),
        sum.source);
  if (const auto least = number(expectation, "otherwise_min"))
    return bounds.floor(Verdict::fail, *least,
                        limit_words(whose, "otherwise_min", *least, bounds) + ", since " + sum.text,
                        source_of(expectation));
  bounds.cannot(sum.text, "no floor: " + sum.text);
}

// Returns "" if the proven value is used as a floor, or no proof is required; else what is missing.
std::string add_proven(Bounds& bounds, const Json& expectation, const MeasuredStep& step,
                       const Comparison& with) {
  const Json& proven = field(expectation, "proven");
  if (!proven.is_object()) return "";
  const std::set<std::string> gpus = measured_gpus(step, with);
  const std::string model = fmt::format("{}", fmt::join(gpus, ", "));
  const Json& of_model = field(field(proven, "models"), model.c_str());
  const auto value = number(of_model, "value"), ratio = number(proven, "ratio");
  if (!value || !ratio)
    return fmt::format("`acceptance.gpu` is mandatory, but the signed results {} contain no value for {}",
                       text_of(field(proven, "by")), model.empty() ? "a GPU without a name" : model);
  const std::string whose =
      fmt::format("{}, median of {:.0f} {} in the signed results {}", amount(*value, bounds.unit()),
                  number(of_model, "gpus").value_or(0), model, text_of(field(proven, "by")));
  const std::string source = "the signed results " + text_of(field(proven, "by"));
  bounds.proven_floor(kProvenFail * *value,
                      fmt::format("{:.3g} x {}, below which it fails", kProvenFail, whose), source);
  bounds.floor(Verdict::degraded, *ratio * *value, fmt::format("{:.3g} x {}", *ratio, whose), source);
  return "";
}

void add_fleet(Bounds& bounds, const Json& expectation, const FleetValues& fleet) {
  const auto ratio = number(expectation, "fleet_min_ratio");
  if (!ratio) return;
  const std::vector<double> values = fleet.all();
  if (values.size() < kFleetMinimum) {
    const std::string words = fmt::format("fleet rule not applied: {} value{}, but at least {} are needed",
                                          values.size(), values.size() == 1 ? "" : "s", kFleetMinimum);
    return bounds.cannot_compare(words);
  }
  const double median = median_of(values);
  std::vector<double> distances;
  for (const double v : values) distances.push_back(std::fabs(v - median));
  const double spread =
      values.size() >= kSpreadMinimum ? std::min(kSpread * median_of(distances), kMostSpread * median) : 0;
  const double floor = median - std::max(spread, (1 - *ratio) * median);
  const std::string who = values.size() > fleet.now.size()
                              ? fmt::format("{} values, {} of them from earlier runs", values.size(),
                                            values.size() - fleet.now.size())
                              : fmt::format("{} values", values.size());
  if (spread > (1 - *ratio) * median)
    bounds.floor(
        Verdict::degraded, floor,
        fmt::format("fleet median {} - 4 x 1.4826 x MAD {} of {} = {}", amount(median, bounds.unit()),
                    amount(median_of(distances), ""), who, amount(floor, bounds.unit())),
        kThisRun);
  else
    bounds.floor(Verdict::degraded, floor,
                 fmt::format("{:.3g} x fleet median {} of {} = {}", *ratio, amount(median, bounds.unit()),
                             who, amount(floor, bounds.unit())),
                 kThisRun);
}

// For links the median means little: with one bad link among three nodes, two of three pairs are slow. The
// best value of each end is a better measure of what a healthy pair reaches.
void add_link_fleet(Bounds& bounds, const Json& expectation, double healthy, size_t values) {
  const auto ratio = number(expectation, "fleet_min_ratio");
  if (!ratio) return;
  const double floor = *ratio * healthy;
  bounds.floor(
      Verdict::degraded, floor,
      fmt::format("{:.3g} x {}, which a healthy pair reaches (from the best of {} values at each end) = {}",
                  *ratio, amount(healthy, bounds.unit()), values, amount(floor, bounds.unit())),
      kThisRun);
}

void add_own_history(Bounds& bounds, Check& check, const Json& expectation, const MeasuredStep& step,
                     const Comparison& with) {
  if (!with.history) return;
  std::vector<double> values;
  for (const auto& past : with.history->of(step.node, check.name, check.subject)) {
    if (!past.good || past.like != check.like) continue;
    values.push_back(past.value);
    if (check.history.size() < kHistoryShown) check.history.push_back({past.run, past.value});
  }
  const auto ratio = number(expectation, "history_min_ratio");
  if (!ratio) return;
  if (values.empty()) return bounds.cannot_compare("no history of this part");
  const double median = median_of(values), floor = *ratio * median;
  bounds.floor(Verdict::degraded, floor,
               fmt::format("{:.3g} x median {} of its own {} earlier value{} = {}", *ratio,
                           amount(median, bounds.unit()), values.size(), values.size() == 1 ? "" : "s",
                           amount(floor, bounds.unit())),
               "its own history");
}

// Returns the parts at fault for this metric. Counters report for each part which values changed, so only
// parts with a change of this metric count; other measurements name the one part that they are about.
std::vector<std::string> parts_behind(const MeasuredStep& step, const std::string& metric) {
  const Json& detail = field(step.result, "detail");
  std::vector<std::string> out;
  if (const Json& moved = field(detail, "moved"); moved.is_object()) {
    for (const auto& [part, by] : moved.items())
      if (by.is_object() && by.contains(metric)) out.push_back(part);
  } else if (std::string part = text_of(field(detail, "part")); !part.empty()) {
    out.push_back(std::move(part));
  }
  return out;
}

std::string why_not_measured(const MeasuredStep& step, const std::string& metric) {
  if (std::string why = not_what_it_is_named_for(step); !why.empty()) return why;
  const Json& detail = field(step.result, "detail");
  for (const auto& entry : field(detail, "absent"))
    if (const std::string words = text_of(entry); words.starts_with(metric + ": "))
      return "not measured: " + words.substr(metric.size() + 2);
  const std::string counters = text_of(field(detail, "counters"));
  return counters.empty() ? "not measured" : counters;
}

Check judge_metric(const MeasuredStep& step, const std::string& metric, const Json& expectation,
                   const Fleet& fleet, const Comparison& with) {
  Check check = begin_check(step, metric);
  check.unit = text_of(field(expectation, "unit"));
  if (check.unit.empty())
    check.unit = text_of(field(field(field(step.result, "metrics"), metric.c_str()), "unit"));
  Bounds bounds(check.unit);
  add_absolute(bounds, expectation, step);
  add_derived(bounds, expectation, step, metric, fleet, with);
  add_raw(bounds, expectation, step, metric, fleet.raw);
  const std::string unproven = add_proven(bounds, expectation, step, with);
  if (!with.own_only) {
    const auto found = fleet.values.find({step.group, metric, check.like, check.kind});
    const FleetValues values = found == fleet.values.end() ? FleetValues{} : found->second;
    const auto healthy = fleet.healthy_links.find(path_group(step));
    const bool rate = is_link(step) && (is_sending(metric) || is_receiving(metric));
    if (rate && healthy != fleet.healthy_links.end() && values.now.size() >= kFleetMinimum)
      add_link_fleet(bounds, expectation, healthy->second, values.now.size());
    else
      add_fleet(bounds, expectation, values);
    add_own_history(bounds, check, expectation, step, with);
  }
  const auto value = measured_value(step, metric);
  const bool ran = text_of(field(step.result, "outcome")) == "measured", measured = value && ran;
  // An error counter that was not read is not proven to be 0. The data check decides whether it had to run.
  const bool only_ceiling = number(expectation, "max") && !number(expectation, "min");
  if (ran && only_ceiling) check.mandatory = stops(step, "ceilings");
  if (measured) {
    check.measured = value;
    check.measured_text = amount(*value, check.unit);
    check.verdict = Verdict::pass;
  } else {
    check.reason = why_not_measured(step, metric);
    // Not every driver counts everything; what it does not count is neither good nor bad.
    const Json& absent = field(field(step.result, "detail"), "absent");
    if (ran && absent.is_array() && std::find(absent.begin(), absent.end(), Json(metric)) != absent.end()) {
      check.verdict = Verdict::not_applicable;
      check.mandatory = false;
      check.reason = "this machine does not have what is counted here";
    }
    const Json& hidden = field(field(field(step.result, "detail"), "not_looked_at"), metric.c_str());
    if (ran && hidden.is_string()) {
      check.verdict = Verdict::not_looked_at;
      check.reason = text_of(hidden);
    }
  }
  bounds.apply(check);
  hold_open(check, step, metric);
  // A soft limit of a counter is judged where it was counted; where it was not, it stops no node.
  if (check.verdict == Verdict::degraded && is_of_counts(expectation))
    check.mandatory = stops(step, "ceilings");
  if (!unproven.empty() && check.verdict != Verdict::fail) {
    check.verdict = Verdict::skipped;
    check.reason = unproven;
  }
  const bool bad = check.verdict == Verdict::fail || check.verdict == Verdict::degraded;
  if (bad && check.faulty_parts.empty()) check.faulty_parts = parts_behind(step, metric);
  return check;
}

// Returns why the kernel of this node denied the program access to the part (a device that a container may
// not open); "" if it did not, and for checks of GPUs that must run.
std::string kept_back(const MeasuredStep& step) {
  if (must_run(step) || text_of(field(step.result, "outcome")) != "unavailable") return "";
  return text_of(field(field(step.result, "detail"), "not_looked_at"));
}

Check not_looked_at(const MeasuredStep& step) {
  Check check = begin_check(step, "data");
  check.verdict = Verdict::not_looked_at;
  check.reason = step.message;
  check.derivation = "the check proves nothing and does not count against the node";
  return check;
}

}  // namespace

std::map<std::string, std::vector<Check>> judge_measurements(const std::vector<MeasuredStep>& given,
                                                             const Comparison& with) {
  std::vector<MeasuredStep> steps = given;
  add_vanished(steps, with.facts);
  steps = expand(steps);
  mark_shares(steps, with.facts);
  mark_machines(steps, with.facts);
  mark_paths(steps);
  const Fleet fleet = collect_fleet(steps, with);
  std::map<std::string, std::vector<Check>> out;
  for (const auto& step : steps) {
    auto& checks = out[step.node];
    if (with.own_only && (is_link(step) || is_collective(step))) continue;  // other nodes may be at fault
    if (step.status == kNotLookedAt) {
      checks.push_back(not_looked_at(step));
      continue;
    }
    if (const std::string kept = kept_back(step); !kept.empty()) {
      checks.push_back(not_looked_at(step));
      checks.back().reason = kept;
      continue;
    }
    const std::string cannot = ran_alone(step) ? "no other node was left to measure with" : unsupported(step);
    if ((step.status == "not_applicable" && !must_run(step)) || !cannot.empty()) {
      Check check = begin_check(step, "data");
      check.verdict = Verdict::not_applicable;
      check.mandatory = false;
      const std::string& why = cannot.empty() ? step.message : cannot;
      check.derivation = why.empty() ? "not declared in the spec" : why;
      checks.push_back(std::move(check));
      continue;
    }
    checks.push_back(judge_data(step));
    if (!step.expect.is_object()) continue;
    for (const auto& [metric, expectation] : step.expect.items())
      checks.push_back(judge_metric(step, metric, expectation, fleet, with));
  }
  if (with.own_only) return out;
  judge_port_rates(steps, with.rates, out);
  judge_pcie_links(steps, with.facts, out);
  return out;
}

}  // namespace muster
