#include "host/processors.h"

#include <fmt/format.h>

namespace muster {
namespace {

constexpr const char* kProcessors = "/sys/devices/system/cpu";

std::string topology(const Files& files, const std::string& cpu, const char* file) {
  return files.read_line(fmt::format("{}/{}/topology/{}", kProcessors, cpu, file));
}

}  // namespace

std::string package_of(const Files& files, const std::string& cpu) {
  return topology(files, cpu, "physical_package_id");
}

std::string core_of(const Files& files, const std::string& cpu) {
  const std::string core = topology(files, cpu, "core_id");
  if (core.empty()) return "";
  return fmt::format("{}/{}/{}", package_of(files, cpu), topology(files, cpu, "die_id"), core);
}

std::set<std::string> processor_packages(const Files& files) {
  std::set<std::string> out;
  for (const auto& cpu : files.list(kProcessors))
    if (std::string package = package_of(files, cpu); !package.empty()) out.insert(std::move(package));
  return out;
}

}  // namespace muster
