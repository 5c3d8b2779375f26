#include "agent/work/carried_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/record.h"

namespace muster {

MUSTER_RECORD(CarriedProgram, name, sha256, size)

namespace {

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
