#include "controller/report/import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace muster {
namespace {

struct Format {
  const char* name;
  Result<Imported> (*read)(const std::string& text);
  std::vector<const char*> signs;  // an output of this format contains all of them
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"nccl-tests", import_nccl_tests, {"out-of-place", "busbw"}},
      {"gpu-burn", import_gpu_burn, {"proc'd:", "Gflop/s"}},
      {"nvbandwidth", import_nvbandwidth, {"nvbandwidth Version"}},
      {"fio", import_fio, {"\"fio version\""}},
      {"ibnetdiscover", import_ibnetdiscover, {"devid=", "sysimgguid="}},
  };
  return all;
}

bool shows(const Format& format, const std::string& text) {
  for (const char* sign : format.signs)
    if (text.find(sign) == std::string::npos) return false;
  return true;
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

Result<Imported> import_output(const std::string& text, const std::string& wanted) {
  for (const auto& format : formats())
    if (wanted.empty() ? shows(format, text) : wanted == format.name) return format.read(text);
  if (wanted.empty())
    return fail(Code::invalid,
                fmt::format("the format of this output was not recognized: specify --format as one of {}",
                            fmt::join(import_formats(), ", ")));
  return fail(Code::invalid, fmt::format("unknown format '{}': must be one of {}", wanted,
                                         fmt::join(import_formats(), ", ")));
}

}  // namespace muster
