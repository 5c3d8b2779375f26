// The test of all shared file systems: one node writes a file and a second one reads it, after a check of the
// mount itself. Without that check the test would pass on a file system that is not mounted, because it would
// write into the empty folder below.
#include <fnmatch.h>

#include <fmt/format.h>

#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"
#include "base/disk_source.h"
#include "host/disks_under.h"

namespace muster::steps {
namespace {

bool fits(const std::string& glob, const std::string& text) {
  return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

// Returns "" if the target is a mount of the declared type and source.
std::string mount_problem(const Files& files, const Json& params) {
  const std::string target = text_of(params, "target"), fstype = text_of(params, "fstype"),
                    source = text_of(params, "source");
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

Result<std::string> file_path(const Json& params) {
  const std::string name = text_of(params, "file");
  if (name.find('/') != std::string::npos || name[0] == '.')
    return fail(Code::invalid, "'" + name + "' is not a valid file name");
  return text_of(params, "target") + "/.muster/" + name;
}

Result<CheckResult> check_shared(StepContext& context, const Json& params) {
  TRY(const std::string path, file_path(params));
  if (const auto problem = mount_problem(context.files, params); !problem.empty())
    return fail(Code::conflict, problem);
  const auto have = context.files.read(path);
  if (!have.ok()) return differs(path + " does not exist");
  return *have == text_of(params, "content") ? holds() : differs(path + " has different content");
}

Status write(StepContext& context, const Json& params) {
  TRY(const std::string path, file_path(params));
  if (const auto problem = mount_problem(context.files, params); !problem.empty())
    return fail(Code::conflict, problem);
  return context.files.write(path, text_of(params, "content"));
}

Json parameters() {
  return Json::array(
      {parameter("target", "string", true, "mount point"),
       parameter("fstype", "string", true, "glob that the mounted file system's type must match"),
       parameter("source", "string", true,
                 "glob that the mounted source must match, a link below /dev/disk/by-id, or the disks that "
                 "the source must be on (disks:...)"),
       parameter("file", "string", true, "file name"), parameter("content", "string", true, "content")});
}

}  // namespace

StepModule shared_write_module() {
  StepModule m;
  m.name = "shared_write";
  m.help =
      "Writes a small file to the shared file system, only if the correct file system is mounted. A second "
      "node reads it with shared_read.";
  m.parameters = parameters();
  m.check = check_shared;
  m.apply = write;
  return m;
}

StepModule shared_read_module() {
  StepModule m;
  m.name = "shared_read";
  m.help =
      "Tests that a small file written by a different node can be read with the same content. Changes "
      "nothing.";
  m.parameters = parameters();
  m.check = check_shared;
  return m;
}

}  // namespace muster::steps
