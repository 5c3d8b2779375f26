// Core files: they have all of a process's memory, with its keys and secrets.
#pragma once

namespace muster {

// From now on neither this process nor a program that it starts leaves a core file. The kernel passes none of
// this process to a crash handler (systemd-coredump, apport) either; of its programs it does, but handlers
// keep none where the limit is 0. Other processes of its user can no longer trace it, or read its
// /proc/PID/fd and /proc/PID/exe. Thread: before others are started.
void forbid_core_files();

}  // namespace muster
