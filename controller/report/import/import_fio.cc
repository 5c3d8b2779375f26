// fio --output-format=json.
#include "base/json_dump.h"
#include "controller/report/import/import_lines.h"

namespace muster {
namespace {

double at(const Json& job, const char* direction, const char* key) {
  const Json& side = job.contains(direction) ? job[direction] : Json();
  const auto it = side.is_object() ? side.find(key) : side.end();
  return side.is_object() && it != side.end() && it->is_number() ? it->get<double>() : 0;
}

void add_side(const Json& job, const std::string& name, const char* side, Imported& out) {
  if (at(job, side, "io_bytes") <= 0) return;
  out.values.push_back({fmt::format("{}_mbps", side), name, at(job, side, "bw_bytes") / 1e6, "MB/s",
                        fmt::format("local storage/{}_mbps", side), 1});
  out.values.push_back({fmt::format("{}_iops", side), name, at(job, side, "iops"), "1/s", "", 1});
}

}  // namespace

Result<Imported> import_fio(const std::string& text) {
  const size_t brace = text.find('{');  // fio prints notes before
  if (brace == std::string::npos)
    return fail(Code::invalid, "the fio output contains no JSON: run fio with --output-format=json");
  const auto json = parse_json(std::string_view(text).substr(brace));
  if (!json.ok()) return fail(Code::invalid, "fio output: " + json.error().message);
  if (!json->is_object() || !json->contains("jobs") || !(*json)["jobs"].is_array() || (*json)["jobs"].empty())
    return fail(Code::invalid, "the fio output contains no jobs");
  Imported out;
  out.format = "fio";
  for (const Json& job : (*json)["jobs"]) {
    const auto named = job.is_object() ? job.find("jobname") : job.end();
    if (!job.is_object() || named == job.end() || !named->is_string())
      return fail(Code::invalid, "fio output: a job has no name");
    const std::string name = named->get<std::string>();
    if (const auto error = job.find("error"); error != job.end() && *error != 0)
      out.problems.push_back(fmt::format("job {} ended with error {}", name, dump_json(*error)));
    add_side(job, name, "read", out);
    add_side(job, name, "write", out);
  }
  if (out.values.empty()) return fail(Code::invalid, "fio output: no job read or wrote anything");
  const Json options = json->value("global options", Json::object());
  const auto file = options.is_object() ? options.find("filename") : options.end();
  out.title = file != options.end() && file->is_string() ? file->get<std::string>() : "fio";
  return out;
}

}  // namespace muster
