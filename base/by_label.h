// Names that choose a device by a label: of a file system, or of a partition. Another disk may have the same
// label, and which one is found is a matter of chance. Muster itself writes unique names; this finds labels
// in older and foreign files. Reads /etc/fstab and /proc/cmdline below a root. Thread: plain functions.
#pragma once

#include <string>
#include <vector>

#include "base/os.h"

namespace muster {

// "LABEL=scratch", "PARTLABEL=muster-esp", "/dev/disk/by-label/scratch".
bool is_by_label(const std::string& source);
// The words of a line of fstab; none for a comment and for an empty line.
std::vector<std::string> fstab_words(const std::string& line);
// "LABEL=scratch /scratch" of each line of fstab, and "root=LABEL=x /" of the running kernel.
std::vector<std::string> devices_by_label(const Files& files);

}  // namespace muster
