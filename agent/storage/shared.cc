// The test of all shared file systems: one node writes a file and a second one reads it, after a check of the
// mount itself. Without that check the test would pass on a file system that is not mounted, because it would
// write into the empty folder below.
#include <fnmatch.h>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"
#include "base/disk_source.h"
#include "host/disks_under.h"

namespace muster::steps {
namespace {

struct SharedFile {
  std::string target, fstype, source, file, content;
  std::string path;
};
MUSTER_PARAMETERS(
    SharedFile, required(target, "mount point"),
    required(fstype, "glob that the mounted file system's type must match"),
    required(source,
             "glob that the mounted source must match, a link below /dev/disk/by-id, or the disks that "
             "the source must be on (disks:...)"),
    required(file, "file name"), required(content, "content"))

bool fits(const std::string& glob, const std::string& text) {
  return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

// Returns "" if the target is a mount of the declared type and source.
std::string mount_problem(const Files& files, const SharedFile& want) {
  const std::string &target = want.target, &fstype = want.fstype, &source = want.source;
  const auto entry = find_mount(files, target);
  if (!entry) return target + " is not mounted";
  if (!fits(fstype, entry->fs)) return fmt::format("{} is {}, not {}", target, entry->fs, fstype);
  if (is_disk_source(source)) {
    const Status on = lies_on(files, entry->source, source);
    return on.ok() ? "" : target + ": " + on.error().message;
  }
  const bool device = source.starts_with("/dev/");
  const bool right =
      device ? kernel_name(files, source) == kernel_name(files, entry->source) : fits(source, entry->source);
  return right ? "" : fmt::format("{} is {}, not {}", target, entry->source, source);
}

Status complete_shared(const StepContext&, SharedFile& want) {
  if (want.file.find('/') != std::string::npos || want.file[0] == '.')
    return fail(Code::invalid, "'" + want.file + "' is not a valid file name");
  want.path = want.target + "/.muster/" + want.file;
  return Ok{};
}

Result<CheckResult> check_shared(StepContext& context, const SharedFile& want) {
  if (const auto problem = mount_problem(context.files, want); !problem.empty())
    return fail(Code::conflict, problem);
  const auto have = context.files.read(want.path);
  if (!have.ok()) return differs(want.path + " does not exist");
  return *have == want.content ? holds() : differs(want.path + " has different content");
}

Status write_shared(StepContext& context, const SharedFile& want) {
  if (const auto problem = mount_problem(context.files, want); !problem.empty())
    return fail(Code::conflict, problem);
  return context.files.write(want.path, want.content);
}

}  // namespace

StepModule shared_write_module() {
  return step_module<SharedFile>({
      .name = "shared_write",
      .help = "Writes a small file to the shared file system, only if the correct file system is mounted. A "
              "second node reads it with shared_read.",
      .check = check_shared,
      .apply = write_shared,
      .complete = complete_shared,
  });
}

StepModule shared_read_module() {
  return step_module<SharedFile>({
      .name = "shared_read",
      .help =
          "Tests that a small file written by a different node can be read with the same content. Changes "
          "nothing.",
      .check = check_shared,
      .complete = complete_shared,
  });
}

}  // namespace muster::steps
