// Slurm's releases: which of them read what others kept (slurmctld's queue and slurmdbd's database), and what
// the system must have for them. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::slurm {

// The number that Slurm's own files have for a release, its protocol version: 42 for "24.11.5-4" (a package)
// and "slurm-wlm 24.11.5" (`slurmctld -V`). Nothing for one that is not known here.
std::optional<int> release_of(std::string_view version);
std::string name_of(int release);  // "24.11"
// True if it reads cgroups of version 2, the unified hierarchy; earlier releases need version 1.
bool reads_unified_cgroups(int release);
// "of Slurm 22.05, and 24.11 reads 23.02 to 24.11"; "" if it is read.
std::string unread(int kept, int own);
// For the operator, before this node is re-imaged: versions of the packages that kept its data, and of those
// in the new image. "" if the data is read, or one of them is not known.
std::string unread_note(const std::string& node, std::string_view kept, std::string_view own);

}  // namespace muster::slurm
