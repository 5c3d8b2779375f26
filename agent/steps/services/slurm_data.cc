#include "agent/steps/services/slurm_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

// In order: the position is what the protocol version in Slurm's files counts, from 36.
constexpr const char* kReleases[] = {"20.11", "21.08", "22.05", "23.02", "23.11", "24.05",
                                     "24.11", "25.05", "25.11", "26.05", "26.11"};
constexpr int kFirst = 36, kEnd = kFirst + static_cast<int>(std::size(kReleases));
// From here on Slurm reads the three releases before its own, until then two.
constexpr int kReadsThree = 42;

// "slurm-wlm 24.11.5" -> 42; nothing for a release that is not known here: then Slurm decides itself.
std::optional<int> number_of(const std::string& version) {
  for (int i = kFirst; i < kEnd; ++i)
    if (has(version + ".", fmt::format(" {}.", kReleases[i - kFirst]))) return i;
  return {};
}
std::string name_of(int number) {
  return number >= kFirst && number < kEnd ? kReleases[number - kFirst] : fmt::format("protocol {}", number);
}

std::optional<int> kept_number(const Files& files, const std::string& directory) {
  if (const auto config = files.read(directory + "/last_config_lite"); config.ok() && !config->empty())
    return static_cast<unsigned char>(config->front());
  return number_of(" " + files.read_line(directory + "/" + kSlurmdbdMark));
}

// "10.11.19-MariaDB" -> {10, 11}; both 0 without a version.
std::pair<int, int> series_of(const std::string& version) {
  std::pair<int, int> out = {0, 0};
  if (std::sscanf(version.c_str(), "%d.%d", &out.first, &out.second) != 2) return {0, 0};
  return out;
}

Result<std::string> older_mariadb(StepContext& context, const std::string& directory) {
  std::pair<int, int> kept = {0, 0};
  for (const char* file : {"/mysql_upgrade_info", "/mariadb_upgrade_info"})
    kept = std::max(kept, series_of(context.files.read_line(directory + file)));
  if (kept.first == 0) return std::string();
  TRY(const std::string out, run_tool(context, {"mariadbd", "--version"}));
  const size_t at = out.find("Ver ");
  const auto own = at == std::string::npos ? kept : series_of(out.substr(at + 4));
  if (own >= kept) return std::string();
  return fmt::format("is of MariaDB {0}.{1}, which {2}.{3} does not read: keep the image with {0}.{1}",
                     kept.first, kept.second, own.first, own.second);
}

Result<std::string> other_release(StepContext& context, const std::string& program,
                                  const std::string& directory) {
  const auto kept = kept_number(context.files, directory);
  if (!kept) return std::string();
  TRY(const std::string version, run_tool(context, {program, "-V"}));
  const auto own = number_of(version);
  if (!own) return std::string();
  const int oldest = *own - (*own >= kReadsThree ? 3 : 2);
  if (*kept >= oldest && *kept <= *own) return std::string();
  return fmt::format("is of Slurm {}, and {} {} reads {} to {}: keep the image with {}, or go {}",
                     name_of(*kept), program, name_of(*own), name_of(oldest), name_of(*own), name_of(*kept),
                     *kept < oldest ? "through a release in between" : "back to a copy from before");
}

}  // namespace

Result<std::string> slurm_refusal(StepContext& context, const std::string& program,
                                  const std::string& directory, const std::string& cluster) {
  const std::string line = context.files.read_line(directory + "/clustername");
  const std::string kept_cluster = line.substr(0, line.find('|'));
  if (!kept_cluster.empty() && kept_cluster != cluster)
    return fmt::format("is of cluster {}, not of {}: keep the cluster's name", kept_cluster, cluster);
  TRY(std::string why, other_release(context, program, directory));
  if (!why.empty()) return why;
  return older_mariadb(context, directory);
}

}  // namespace muster::steps
