// fio --output-format=json, alone or among fio's other output. Several runs may stand one after the other.
#include <fmt/ranges.h>

#include "base/json_at.h"
#include "base/json_dump.h"
#include "controller/report/import/import_lines.h"

namespace muster {
namespace {

const Json& at(const Json& object, const char* key) {
  static const Json kNone;
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() ? *it : kNone;
}

double number_at(const Json& object, const char* key) {
  const Json& value = at(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

// Returns the JSON objects that begin a line, without what stands around them; one that does not end reaches
// to the end of the text.
std::vector<std::string> documents_in(const std::string& text) {
  std::vector<std::string> out;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (depth == 0 && (c != '{' || (i > 0 && text[i - 1] != '\n'))) continue;
    if (depth == 0) begin = i, quoted = false;
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth == 0) out.push_back(text.substr(begin, i + 1 - begin));
  }
  if (depth > 0) out.push_back(text.substr(begin));
  return out;
}

// What a job did, where fio says it: versions before 3 do not repeat the options.
struct Work {
  bool known = false, random = false;
  bool random_reads_4k = false;
};

Work work_of(const Json& job, const Json& global) {
  Work out;
  const Json& own = at(job, "job options");
  const auto option = [&](const char* name, const char* other) {
    for (const Json* options : {&own, &global})
      for (const char* key : {name, other})
        if (const std::string text = text_at(*options, key); !text.empty()) return text;
    return std::string();
  };
  const std::string kind = option("rw", "readwrite"), block = option("bs", "blocksize");
  out.known = own.is_object();
  out.random = kind.starts_with("rand");
  out.random_reads_4k = kind == "randread" && (block.empty() || block == "4k" || block == "4096");
  return out;
}

// Before 3.1, only `bw` in KiB/s.
double bytes_per_second(const Json& side) {
  const double bytes = number_at(side, "bw_bytes");
  return bytes > 0 ? bytes : number_at(side, "bw") * 1024;
}

void add_side(const Json& job, const std::string& name, const char* side, const Work& work, Imported& out) {
  const Json& done = at(job, side);
  if (number_at(done, "io_bytes") <= 0) return;
  const double rate = bytes_per_second(done), iops = number_at(done, "iops");
  const bool sequential = work.known && !work.random;
  if (rate > 0)
    out.values.push_back({fmt::format("{}_mbps", side), name, rate / 1e6, "MB/s",
                          sequential ? fmt::format("local storage/{}_mbps", side) : "", 1});
  else
    out.left_out.push_back({fmt::format("{}_mbps ({})", side, name), "its bandwidth is 0 or missing"});
  if (iops > 0)
    out.values.push_back({fmt::format("{}_iops", side), name, iops, "1/s",
                          work.random_reads_4k ? "local storage/random_read_iops" : "", 1});
  else
    out.left_out.push_back({fmt::format("{}_iops ({})", side, name), "it is 0 or missing"});
}

Status add_job(const Json& job, const Json& global, Imported& out) {
  const std::string name = text_at(job, "jobname");
  if (name.empty()) return fail(Code::invalid, "fio output: a job has no name");
  if (const Json& error = at(job, "error"); !error.is_null() && error != 0)
    out.problems.push_back(fmt::format("job {} ended with error {}", name, dump_json(error)));
  const size_t before = out.values.size() + out.left_out.size();
  const Work work = work_of(job, global);
  add_side(job, name, "read", work, out);
  add_side(job, name, "write", work, out);
  if (number_at(at(job, "trim"), "io_bytes") > 0)
    out.left_out.push_back({fmt::format("trim ({})", name), "nothing compares it"});
  else if (out.values.size() + out.left_out.size() == before)
    out.left_out.push_back({"job " + name, "it read and wrote nothing"});
  return Ok{};
}

Status add_document(const std::string& text, Imported& out) {
  const auto json = parse_json(text);
  if (!json.ok()) return fail(Code::invalid, "fio output: " + json.error().message);
  const Json &jobs = list_at(*json, "jobs"), &global = at(*json, "global options");
  if (jobs.empty()) return fail(Code::invalid, "the fio output contains no jobs");
  for (const Json& job : jobs) TRY_(add_job(job, global, out));
  const std::string file = text_at(global, "filename");
  out.title += (out.title.empty() ? "" : "; ") + (file.empty() ? "fio" : file);
  return Ok{};
}

}  // namespace

Result<Imported> import_fio(const Run& run) {
  const auto documents = documents_in(run.text);
  if (documents.empty())
    return fail(Code::invalid, "the fio output contains no JSON: run fio with --output-format=json");
  Imported out;
  out.format = "fio";
  for (const auto& document : documents) TRY_(add_document(document, out));
  if (out.values.empty())
    return fail(Code::invalid, fmt::format("fio output: no job read or wrote anything{}{}",
                                           out.problems.empty() ? "" : ": ", fmt::join(out.problems, "; ")));
  return out;
}

}  // namespace muster
