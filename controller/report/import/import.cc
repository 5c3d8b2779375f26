#include "controller/report/import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "controller/report/import/import_lines.h"

namespace muster {
namespace {

struct Format {
  const char* name;
  Result<Imported> (*read)(const Run& run);
  std::vector<const char*> signs;  // an output of this format contains all of them
  Beginning beginning;             // of each run, if a file holds several
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"nccl-tests",
       import_nccl_tests,
       {"algbw", "busbw"},
       {{"nccl-tests version"}, {"Collective test starting"}, {"nThread "}}},
      {"gpu-burn", import_gpu_burn, {"proc'd:", "Gflop/s"}, {{"Burning for"}, {"GPU 0: ", "(UUID: "}}},
      {"nvbandwidth", import_nvbandwidth, {"nvbandwidth Version"}, {{"nvbandwidth Version"}}},
      {"fio", import_fio, {"\"fio version\""}, {}},
      {"ibnetdiscover", import_ibnetdiscover, {"devid=", "sysimgguid="}, {{"Topology file: generated on"}}},
  };
  return all;
}

bool shows(const Format& format, const std::string& text) {
  for (const char* sign : format.signs)
    if (text.find(sign) == std::string::npos) return false;
  return true;
}

void add_shortfalls(Imported& out) {
  for (const auto& value : out.values)
    if (value.expected && value.value < kFarBelow * *value.expected)
      out.problems.push_back(fmt::format("{}, {}: {:.4g} {} is below {:.3g} x {:.4g}, which is expected",
                                         value.name, value.subject, value.value, value.unit, kFarBelow,
                                         *value.expected));
}

// Adds one of several runs, under its number.
void add_run(Imported& all, Imported one, const std::string& name) {
  all.format = one.format;
  all.title += (all.title.empty() ? "" : "; ") + one.title;
  for (auto& value : one.values) value.subject = name + (value.subject.empty() ? "" : ", ") + value.subject;
  for (auto& problem : one.problems) problem = name + ": " + problem;
  for (auto& left : one.left_out) left.what = name + ": " + left.what;
  std::move(one.values.begin(), one.values.end(), std::back_inserter(all.values));
  std::move(one.problems.begin(), one.problems.end(), std::back_inserter(all.problems));
  std::move(one.left_out.begin(), one.left_out.end(), std::back_inserter(all.left_out));
}

Result<Imported> read_runs(const std::string& text, const Format& format) {
  const auto runs = runs_of(text, format.beginning);
  if (runs.size() == 1) return format.read(runs.front());
  Imported all;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string name = fmt::format("run {}", i + 1);
    auto one = format.read(runs[i]);
    if (one.ok()) {
      add_run(all, std::move(one).value(), name);
      continue;
    }
    all.problems.push_back(name + ": " + one.error().message);
    all.left_out.push_back({name, "it could not be read"});
  }
  if (all.values.empty()) return fail(Code::invalid, fmt::format("{}", fmt::join(all.problems, "; ")));
  return all;
}

}  // namespace

const std::vector<std::string>& import_formats() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& format : formats()) out.push_back(format.name);
    return out;
  }();
  return names;
}

Result<Imported> import_output(const std::string& given, const std::string& wanted) {
  const std::string text = plain_text(given);
  for (const auto& format : formats()) {
    if (wanted.empty() ? !shows(format, text) : wanted != format.name) continue;
    TRY(auto out, read_runs(text, format));
    add_shortfalls(out);
    return out;
  }
  if (wanted.empty())
    return fail(Code::invalid,
                fmt::format("the format of this output was not recognized: specify --format as one of {}",
                            fmt::join(import_formats(), ", ")));
  return fail(Code::invalid, fmt::format("unknown format '{}': must be one of {}", wanted,
                                         fmt::join(import_formats(), ", ")));
}

}  // namespace muster
