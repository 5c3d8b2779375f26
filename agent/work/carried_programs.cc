#include "agent/work/carried_programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "base/record.h"

namespace muster {

MUSTER_RECORD(CarriedProgram, name, sha256, size)

namespace {

constexpr const char* kFolder = "/usr/lib/muster/";

bool is_it(const CarriedProgram& program, const std::string& content) {
  return static_cast<int64_t>(content.size()) == program.size &&
         sha256(content) == "sha256:" + program.sha256;
}

class FetchedPrograms : public CarriedPrograms {
 public:
  FetchedPrograms(const Files& files, MakeSource source, WriteOptions options)
      : files_(files), make_source_(std::move(source)), options_(options) {}

  Result<std::map<std::string, std::string>> ready(const std::vector<CarriedProgram>& programs,
                                                   const std::function<bool()>& cancelled) override {
    std::map<std::string, std::string> out;
    for (const auto& program : programs) {
      if (cancelled && cancelled()) return fail(Code::cancelled, "cancelled");
      const std::string path = kFolder + program.name;
      if (auto there = settle(program, path, cancelled); !there.ok())
        return std::move(there).error().with(program.name);
      out[program.name] = path;
    }
    return out;
  }

 private:
  Status settle(const CarriedProgram& program, const std::string& path,
                const std::function<bool()>& cancelled) {
    if (const auto present = files_.read(path);
        present.ok() && is_it(program, *present) && ::access(files_.real(path).c_str(), X_OK) == 0)
      return Ok{};
    const auto content = retry(cancelled, options_, [&] { return fetch(program); });
    if (!content.ok() && content.error().code == Code::not_found)
      return fail(Code::not_found, fmt::format("the controller does not have a program that this plan names "
                                               "(sha256 {}); if the controller was upgraded, plan again",
                                               program.sha256));
    if (!content.ok()) return content.error();
    return files_.write(path, *content, 0755);
  }

  Result<std::string> fetch(const CarriedProgram& program) {
    if (!source_) TRY_(open());
    TRY(std::string content, source_->whole("/programs/" + program.sha256));
    if (!is_it(program, content))
      return fail(Code::corrupt, fmt::format("the file from the controller is not the program with sha256 {}",
                                             program.sha256));
    return content;
  }

  Status open() {
    TRY(source_, make_source_());
    return Ok{};
  }

  const Files& files_;
  MakeSource make_source_;
  WriteOptions options_;
  std::unique_ptr<BlobSource> source_;
};

constexpr int64_t kLargest = 1 << 30;

bool is_file_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= 64 && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), allowed);
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::unique_ptr<CarriedPrograms> fetched_programs(const Files& files, MakeSource source,
                                                  WriteOptions options) {
  return std::make_unique<FetchedPrograms>(files, std::move(source), options);
}

Result<std::vector<CarriedProgram>> carried_programs_of(const Json& order_params) {
  std::vector<CarriedProgram> out;
  if (!order_params.is_object() || !order_params.contains("programs")) return out;
  const Json& list = order_params["programs"];
  if (!list.is_array()) return fail(Code::invalid, "order.programs: expected a list");
  std::set<std::string> names;
  for (const Json& one : list) {
    TRY(auto program, read_record<CarriedProgram>(one, "order.programs"));
    if (!is_file_name(program.name))
      return fail(Code::invalid,
                  fmt::format("order.programs: '{}' is not a valid program name", program.name));
    if (!names.insert(program.name).second)
      return fail(Code::invalid, fmt::format("order.programs: '{}' is listed twice", program.name));
    if (!is_sha256(program.sha256) || program.size <= 0 || program.size > kLargest)
      return fail(Code::invalid,
                  fmt::format("order.programs: '{}' has an invalid digest or size", program.name));
    out.push_back(std::move(program));
  }
  return out;
}

}  // namespace muster
