// Names that choose a device by a label: of a file system, or of a partition. Any other disk may carry the
// same label, and which of them is found is chance. What muster writes names a device by what only it has;
// this finds what was written before, and what others wrote. Reads /etc/fstab and /proc/cmdline below a root.
// Thread: plain functions.
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
