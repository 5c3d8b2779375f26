// The operating system behind two narrow interfaces, injected by constructor: Files and Process.
//
// Files is rooted: `Files("/")` in production, `Files("/tmp/x")` over a recorded host or a test folder; every
// path given to it is absolute within that root. Writes are atomic (temporary file, fsync, rename, fsync of
// the folder). All that changes something, look() and open_text() open the path part by part: root follows no
// link of another user, and nothing leaves the root (sys/open_way.h); the refusal is Code::denied. The other
// reads follow every link. Process runs programs by argument vector, never through a shell, and always under
// a deadline.
// Thread: both are stateless and may be shared.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sys/file_state.h"

namespace muster {

class Files {
 public:
  explicit Files(std::string root = "/");

  // The real path of `path` (absolute within the root) on this machine.
  std::string real(const std::string& path) const;
  const std::string& root() const { return root_; }

  bool exists(const std::string& path) const;
  bool is_directory(const std::string& path) const;
  // Whole content. not_found, denied or failed. /proc and /sys files work.
  Result<std::string> read(const std::string& path) const;
  // Content with trailing white space removed, or `fallback` when it cannot be read.
  std::string read_line(const std::string& path, std::string fallback = "") const;
  // Sorted; empty when the folder does not exist.
  std::vector<std::string> list(const std::string& path) const;
  // Target of a symbolic link, as stored.
  Result<std::string> read_link(const std::string& path) const;
  // Of what is at the path, without following it; `exists` is false if nothing is.
  Result<FileState> look(const std::string& path) const;
  // A regular file and its state, from one open. not_found; conflict: not a regular file.
  Result<FileText> open_text(const std::string& path) const;
  // Atomic. Creates parent folders. `mode` as in chmod.
  Status write(const std::string& path, const std::string& content, unsigned mode = 0644,
               FileOwner owner = {}) const;
  // Not atomic: for /proc, /sys and append-only logs.
  Status write_raw(const std::string& path, const std::string& content) const;
  // Mode and owner are those of a new folder; an existing one stays as it is.
  Status make_directories(const std::string& path, unsigned mode = 0755, FileOwner owner = {}) const;
  // Where they differ. Of a link only the owner.
  Status set_permissions(const std::string& path, unsigned mode, FileOwner owner = {}) const;
  Status date_now(const std::string& path) const;
  // Replaces a file, a link or an empty folder of that name.
  Status move(const std::string& from, const std::string& to) const;
  // No error when it is already gone.
  Status remove(const std::string& path) const;
  Status remove_tree(const std::string& path) const;
  Status symlink(const std::string& target, const std::string& link) const;

 private:
  std::string root_;
};

struct Command {
  std::vector<std::string> argv;
  std::string input = {};                       // written to stdin; empty: /dev/null
  std::map<std::string, std::string> env = {};  // added to the environment
  DurationMs deadline = 60 * kSecond;
  std::string cwd = {};
  // Called with each chunk of output as it comes (stdout and stderr together), from the calling thread.
  std::function<void(std::string_view)> on_output = {};
  bool clean_env = false;  // `env` is the whole environment
  // Bytes of stdout and stderr together; a program that writes more is killed (Code::failed). 0: no limit.
  size_t max_output = 0;
  // An open folder to run in, instead of `cwd`. -1: none.
  int folder = -1;
  // An open file to be stdin, instead of `input`. -1: none.
  int input_file = -1;
};

struct Output {
  int exit_code = -1;  // 128 + signal when killed by one
  std::string out;
  std::string err;
  bool ok() const { return exit_code == 0; }
};

class Process {
 public:
  virtual ~Process() = default;
  // Runs the program to its end. Returns an Error only if it could not be started (cannot_start()) or overran
  // its deadline (timeout; the whole process group is killed first). A non-zero exit is an Output, no Error.
  virtual Result<Output> run(const Command& command) = 0;
};
std::unique_ptr<Process> make_process();

// Why a program was not started, from errno: unavailable if processes or memory are used up, else not_found.
Error cannot_start(const std::string& program, int number);
// What EAGAIN means there, and what to do.
inline constexpr const char* kNoMoreProcesses =
    "the user or the unit that runs muster may start no more processes: raise nproc in "
    "/etc/security/limits.conf (`ulimit -u`), or TasksMax= of the unit or user slice";

// The end of what a program that failed printed, stderr before stdout: ": TEXT", or "" if it printed nothing.
std::string failure_text(const Output& output);
// A non-zero exit becomes Code::failed with the tail of stderr. Returns stdout.
Result<std::string> run_ok(Process& process, const Command& command);

}  // namespace muster
