// The limit of open files of this process. Login shells, cron and systemd start programs with a soft limit of
// 1,024, so that those that use select() are safe, and a far higher hard one for all others.
#pragma once

#include <cstdint>

namespace muster {

// Raises the soft limit of open files to the hard one and returns what is then allowed; the old one if that
// failed. Programs started with PipedChild get the limit that this process began with, because they, or what
// they start, may use select() or close every descriptor up to the limit. Thread: before others are started.
uint64_t raise_open_files();

// Puts back the soft limit that raise_open_files() found, if it was called. Only system calls: may run
// between fork and exec.
void restore_open_files();

// How many are open now.
uint64_t open_files_now();

}  // namespace muster
