#include "controller/report/drive_floors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <set>

#include "controller/report/measured.h"
#include "controller/spec/drive_models.h"

namespace muster {
namespace {

// A flash drive answers one read of 4 KiB in 80 to 100 us, however many it can process at a time: 79 us on a
// PM1733a (Longhorn 1.12's benchmark), 75 us on a CD7 (KIOXIA), 92 to 150 us on a Micron 9200 (its data
// sheet).
constexpr double kReadsEach = 10000;  // per second
// Usable share of a link's rate: 128b/130b encoding, less a tenth for headers and flow control.
constexpr double kLinkPayload = 128.0 / 130 * 0.9;

double figure_of(const DriveModel& model, const std::string& metric) {
  if (metric == "write_mbps") return model.write_mbps;
  if (metric == "random_read_iops") return model.random_read_iops;
  return model.read_mbps;
}

// Returns the MB/s of "16.0 GT/s x4"; 0 if unknown.
double link_payload(const std::string& link) {
  double rate = 0;
  int lanes = 0;
  if (std::sscanf(link.c_str(), "%lf GT/s x%d", &rate, &lanes) != 2 || rate <= 0 || lanes <= 0) return 0;
  return rate * 1000 / 8 * lanes * kLinkPayload;
}

// "KIOXIA X 3840755982336" -> "KIOXIA X": removes the size from the key that drives are compared by.
std::string model_of(const std::string& like) {
  const size_t space = like.rfind(' ');
  std::string out = space == std::string::npos ? "" : like.substr(0, space);
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

struct Kind {
  int count = 0;
  double each = 0;
  std::string model = {}, words = {}, source = {};
};

// Returns one drive's part of the floor; without a value, the text states why.
Derived one_drive(const std::string& metric, const DriveFound& drive, const std::vector<DriveModel>& table) {
  if (drive.model.empty()) return without("its model is unknown");
  const DriveModel* known = find_drive_model(table, drive.model);
  const double figure = known ? figure_of(*known, metric) : 0;
  if (figure <= 0)
    return without(fmt::format("the drive table has no {} for {} (set `acceptance.drives` in the spec)",
                               metric == "parallel_mbps" ? "read_mbps" : metric, drive.model),
                   drive.model);
  const double link = metric == "random_read_iops" ? 0 : link_payload(drive.link);
  if (link > 0 && link < figure)
    return {link,
            fmt::format("{:.0f}, limited by its link {} (the drive alone, according to {}: {:.0f})", link,
                        drive.link, known->source, figure),
            known->source};
  return {figure, fmt::format("{:.0f} according to {}", figure, known->source), known->source};
}

}  // namespace

double data_drives(const std::string& level, double n) {
  if (level.empty() || level == "raid0" || level == "linear") return n;
  if (level == "raid1") return 1;
  if (level == "raid5") return n - 1;
  if (level == "raid6") return n - 2;
  if (level == "raid10") return n / 2;
  return 0;
}

RawReads raw_reads(const std::vector<MeasuredStep>& steps) {
  RawReads out;
  for (const auto& step : steps) {
    const bool measured = text_of(field(step.result, "outcome")) == "measured";
    if (!measured || text_of(field(step.result, "check")) != "drives") continue;
    const auto together = metric_value(step.result, "parallel_mbps");
    const auto mbps = together ? together : metric_value(step.result, "read_mbps");
    if (mbps) out[step.node][step.subject] = *mbps;
  }
  return out;
}

Derived array_reads(const MeasuredStep& step, const std::string& metric, const RawReads& raw) {
  const Json& detail = field(step.result, "detail");
  const Json& drives = field(detail, "drives");
  const std::string level = text_of(field(detail, "level"));
  if (!drives.is_array() || drives.empty()) return without("the measurement does not name its drives");
  const auto of_node = raw.find(step.node);
  double sum = 0;
  for (const Json& serial : drives) {
    const bool known = of_node != raw.end() && of_node->second.count(text_of(serial));
    if (!known) return without(fmt::format("drive {} was not read in this run", text_of(serial)));
    sum += of_node->second.at(text_of(serial));
  }
  if (metric.starts_with("write") && (level == "raid5" || level == "raid6"))
    return without(fmt::format("the cost of writing to {} depends on the processor", level));
  const double n = static_cast<double>(drives.size()), used = data_drives(level, n);
  if (used <= 0) return without(fmt::format("nothing is known about arrays of level '{}'", level));
  const std::string array = level.empty() ? "" : fmt::format(", {}", level);
  return {sum * used / n,
          fmt::format("{:.0f} drive{} read {:.0f} MB/s{}{}", n, n == 1 ? "" : "s", sum, array,
                      used < n ? fmt::format(", {:g} of them holding data", used) : ""),
          "their raw reads in this run"};
}

bool is_known_of_drives(const std::string& metric) {
  return metric == "read_mbps" || metric == "parallel_mbps" || metric == "write_mbps" ||
         metric == "random_read_iops";
}

DrivesFound drives_found(const std::vector<MeasuredStep>& steps,
                         const std::map<std::string, const HardwareFacts*>& facts) {
  DrivesFound out;
  for (const auto& step : steps)
    if (text_of(field(step.result, "check")) == "drives" && !step.subject.empty())
      out[step.node][step.subject].model = model_of(step.like);
  for (const auto& [node, known] : facts) {
    if (!known) continue;
    for (const auto& disk : known->disks)
      if (!disk.serial.empty() && !disk.model.empty())
        out[node][disk.serial] = {disk.model, disk.transport == "nvme" ? disk.bus_speed : ""};
  }
  return out;
}

Derived drive_value(const MeasuredStep& step, const std::string& metric, const std::vector<DriveModel>& table,
                    const DrivesFound& found) {
  const Json& detail = field(step.result, "detail");
  const bool raw = text_of(field(step.result, "check")) == "drives";
  std::vector<std::string> serials;
  if (raw) serials.push_back(step.subject);
  for (const Json& serial : raw ? Json::array() : field(detail, "drives")) serials.push_back(text_of(serial));
  if (serials.empty()) return without("the measurement does not name its drives");
  const std::string level = text_of(field(detail, "level"));
  if (metric == "write_mbps" && (level == "raid5" || level == "raid6"))
    return without(fmt::format("the cost of writing to {} depends on the processor", level));
  const auto of_node = found.find(step.node);
  std::map<std::string, Kind> kinds;
  for (const auto& serial : serials) {
    DriveFound drive;
    if (of_node != found.end())
      if (const auto at = of_node->second.find(serial); at != of_node->second.end()) drive = at->second;
    const Derived part = one_drive(metric, drive, table);
    if (!part.value) return without(fmt::format("drive {}: {}", serial, part.text), part.of);
    Kind& kind = kinds[drive.model + part.text];
    kind = {kind.count + 1, *part.value, drive.model, part.text, part.source};
  }
  double sum = 0;
  std::string words;
  std::set<std::string> sources;
  for (const auto& [key, kind] : kinds) {
    sources.insert(kind.source);
    sum += kind.count * kind.each;
    words += fmt::format("{}{} x {}, {}", words.empty() ? "" : "; ", kind.count, kind.model, kind.words);
  }
  const double n = static_cast<double>(serials.size()), used = data_drives(level, n);
  if (used <= 0) return without(fmt::format("nothing is known about arrays of level '{}'", level));
  if (!level.empty()) words += fmt::format("; {}", level);
  if (used < n) words += fmt::format(", with data on {:g} of {:g} drives", used, n);
  double value = sum * used / n;
  if (metric == "random_read_iops") {
    const Json& jobs = field(detail, "random_jobs");
    const double in_flight = jobs.is_number() && jobs.get<double>() >= 1 ? jobs.get<double>() : 1;
    if (in_flight * kReadsEach < value) {
      value = in_flight * kReadsEach;
      words += fmt::format("; {:g} reads at a time, {:g} per second each", in_flight, kReadsEach);
    }
  }
  return {value, fmt::format("{} = {:.0f}", words, value), fmt::format("{}", fmt::join(sources, "; "))};
}

}  // namespace muster
