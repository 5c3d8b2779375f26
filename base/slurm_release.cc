#include "base/slurm_release.h"

#include <fmt/format.h>

namespace muster::slurm {
namespace {

// In order: the position is what the protocol version counts, from 36.
constexpr const char* kReleases[] = {"20.11", "21.08", "22.05", "23.02", "23.11", "24.05",
                                     "24.11", "25.05", "25.11", "26.05", "26.11"};
constexpr int kFirst = 36, kEnd = kFirst + static_cast<int>(std::size(kReleases));
// From here on Slurm reads the three releases before its own, until then two.
constexpr int kReadsThree = 42;
constexpr int kReadsUnified = 38;

int oldest_read_by(int release) { return release - (release >= kReadsThree ? 3 : 2); }

}  // namespace

std::optional<int> release_of(std::string_view version) {
  if (const size_t blank = version.find(' '); blank != std::string_view::npos)
    version.remove_prefix(blank + 1);
  for (int i = kFirst; i < kEnd; ++i)
    if (version.starts_with(std::string(kReleases[i - kFirst]) + ".")) return i;
  return {};
}

std::string name_of(int release) {
  return release >= kFirst && release < kEnd ? kReleases[release - kFirst]
                                             : fmt::format("protocol {}", release);
}

bool reads_unified_cgroups(int release) { return release >= kReadsUnified; }

std::string unread(int kept, int own) {
  if (kept >= oldest_read_by(own) && kept <= own) return "";
  return fmt::format("of Slurm {}, and {} reads {} to {}", name_of(kept), name_of(own),
                     name_of(oldest_read_by(own)), name_of(own));
}

std::string unread_note(const std::string& node, std::string_view kept, std::string_view own) {
  const auto before = release_of(kept), after = release_of(own);
  const std::string why = before && after ? unread(*before, *after) : "";
  if (why.empty()) return "";
  return fmt::format(
      "{}: its queue and accounting are {}: its re-image will be refused and rolled back, except where its "
      "operator gave them up (docs/stack.md, \"Another release of Slurm\")",
      node, why);
}

}  // namespace muster::slurm
