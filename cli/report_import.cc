// muster report import: shows another tool's output next to muster's own results.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "cli/cli_context.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "controller/report/import/import.h"
#include "controller/report/report.h"
#include "sys/os.h"

namespace muster::cli {
namespace {

struct ImportFlags {
  std::string file, format, report;
};

// Reads muster's report to compare with: a file, else the controller's newest; not an error if there is none.
Result<std::optional<Report>> own_report(const Context& context, const std::string& file) {
  std::string text;
  if (!file.empty()) {
    TRY(text, Files().read(std::filesystem::absolute(file).string()));
  } else {
    auto newest = Api(context).text("/v1/report?run=0&format=json");
    if (!newest.ok()) return std::optional<Report>();
    text = std::move(newest).value();
  }
  TRY(const auto json, parse_json(text));
  TRY(auto report, report_from_json(json));
  return std::optional<Report>(std::move(report));
}

// Over all nodes and parts.
std::optional<double> our_value(const std::optional<Report>& report, const std::string& check) {
  std::vector<double> values;
  if (report && !check.empty())
    for (const auto& node : report->nodes)
      for (const auto& c : node.checks)
        if (c.name == check && c.measured) values.push_back(*c.measured);
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
std::string optional_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "-";
}

void import_file(Context& context, const ImportFlags& flags) {
  const auto text = Files().read(std::filesystem::absolute(flags.file).string());
  if (!text.ok()) return complain(context, fail(Code::invalid, text.error().message));
  const auto read = import_output(*text, flags.format);
  if (!read.ok()) return complain(context, fail(Code::invalid, flags.file + ": " + read.error().message));
  const auto own = own_report(context, flags.report);
  if (!own.ok()) return complain(context, fail(Code::invalid, own.error().message));
  Json out = {{"format", read->format},
              {"title", read->title},
              {"problems", read->problems},
              {"values", Json::array()},
              {"left_out", Json::array()}};
  for (const auto& left : read->left_out) out["left_out"].push_back({{"what", left.what}, {"why", left.why}});
  for (const auto& v : read->values) {
    const auto ours = our_value(*own, v.like);
    out["values"].push_back({{"name", v.name},
                             {"subject", v.subject},
                             {"value", v.value},
                             {"unit", v.unit},
                             {"expected", optional_json(v.expected)},
                             {"derivation", v.expected_text},
                             {"ours", ours ? Json(*ours / v.to_ours) : Json()},
                             {"our_check", v.like}});
  }
  show(context, out, [&] {
    fmt::print("{}: {}\nimported for comparison only; these values do not affect any verdict\n\n",
               read->format, clean(read->title));
    fmt::print("{:<42} {:>12} {:<8} {:>10} {:>10}\n", "", "imported", "", "expected", "ours");
    for (size_t i = 0; i < read->values.size(); ++i) {
      const auto& v = read->values[i];
      const auto ours = our_value(*own, v.like);
      fmt::print("{:<42} {:>12.6g} {:<8} {:>10} {:>10}\n",
                 clean(v.subject.empty() ? v.name : v.name + " (" + v.subject + ")"), v.value, v.unit,
                 optional_text(v.expected), ours ? fmt::format("{:.4g}", *ours / v.to_ours) : "-");
    }
    for (const auto& v : read->values)
      if (!v.expected_text.empty())
        fmt::print("{} {}: {}\n", v.expected ? "expected" : "not compared with a figure:", clean(v.name),
                   clean(v.expected_text));
    for (const auto& left : read->left_out)
      fmt::print("left out: {}: {}\n", clean(left.what), clean(left.why));
    for (const auto& problem : read->problems) fmt::print("! {}\n", clean(problem));
  });
}

}  // namespace

void add_report_import(Verb& report, Context& context) {
  auto flags = std::make_shared<ImportFlags>();
  Verb& verb = report.add_verb("import", "show another tool's output next to muster's own numbers");
  verb.add_option("FILE", &flags->file, "file with the tool's output").required();
  verb.add_option("--format", &flags->format,
                  fmt::format("{}; default: detected from the content", fmt::join(import_formats(), ", ")))
      .one_of(import_formats());
  verb.add_option("--report", &flags->report,
                  "report.json to compare with; default: the controller's newest report, if any");
  verb.example("muster report import nccl-tests.log");
  verb.runs([flags, &context] { import_file(context, *flags); });
}

}  // namespace muster::cli
