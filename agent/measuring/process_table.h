// ProcessTable: the processes that /proc shows, read once. Two tables, taken some time apart, say what each
// process used meanwhile.
//
// Reads text below `files`; what cannot be read is empty. Command lines, program names and titles are chosen
// by the user of the process, user ids and times are the kernel's. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sys/os.h"

namespace muster {

struct RunningProcess {
  int64_t parent = 0;
  std::string comm = {};               // of the program, 15 bytes at most
  std::vector<std::string> argv = {};  // empty: a kernel thread, or it has ended
  bool kernel = false;
  bool ended = false;    // and its parent has not been notified yet (zombie)
  uint64_t started = 0;  // since the boot, in kTicks
  uint64_t used = 0;     // of processors, by all its threads, in kTicks
  uint64_t reaped = 0;   // by its children that have ended
};

inline constexpr double kTicks = 100;  // a second; fixed on x86-64 and arm64

struct ProcessTable {
  std::map<int64_t, RunningProcess> all = {};  // by pid
  double uptime = 0;                           // seconds; 0: unknown
  uint64_t used = 0;                           // by all processes of the machine, in kTicks

  const RunningProcess* find(int64_t pid) const;  // null: not shown
};

// Without `argv`: to read a command line can block for as long as its process is in an uninterruptible call.
ProcessTable process_tree(const Files& files);
ProcessTable process_table(const Files& files);

// The parent of `pid`, that one's parent and so on.
std::vector<int64_t> ancestors(const ProcessTable& table, int64_t pid);
// `roots`, and all that they started, as far as it still has its parents.
std::set<int64_t> with_descendants(const ProcessTable& table, std::set<int64_t> roots);

// The value of a key of /proc/PID/status, as "Uid"; `process`: a pid, or "self". "": none, or hidden.
std::string process_status(const Files& files, const std::string& process, std::string_view key);

std::optional<uint32_t> user_of(const Files& files, int64_t pid);
// "alice", or "uid 1234" for a user that /etc/passwd does not list.
std::string user_name(const Files& files, uint32_t uid);
// The user who logged in, whatever user the process runs as now: "" if the kernel does not record it.
std::string login_name(const Files& files, int64_t pid);
// "2026-11-29T22:10:01Z"; "" if the kernel does not show it.
std::string started_at(const Files& files, const RunningProcess& process);

// Positive decimal numbers only.
std::optional<int64_t> pid_of(const std::string& text);

}  // namespace muster
