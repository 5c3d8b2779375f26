// Finds mounts that select a device by a file system label or partition label. Another disk may have the same
// label, and then either may be found. Muster itself writes unique names; this detects labels in older and
// foreign files. Reads /etc/fstab and /proc/cmdline below a root. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "sys/os.h"

namespace muster {

// True for a source such as "LABEL=scratch", "PARTLABEL=muster-esp" or "/dev/disk/by-label/scratch".
bool is_by_label(const std::string& source);
// Returns the fields of a line of fstab; none for a comment or an empty line.
std::vector<std::string> fstab_words(const std::string& line);
// Returns the entries that use a label: "LABEL=scratch /scratch" of fstab, "root=LABEL=x /" of the kernel.
std::vector<std::string> devices_by_label(const Files& files);

}  // namespace muster
