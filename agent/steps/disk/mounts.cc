#include "agent/steps/disk/mounts.h"

#include <algorithm>

#include "agent/steps/step_modules.h"

namespace muster::steps {

std::string lacking_flags(const Files& files, const std::string& target, const std::string& options) {
  const auto entry = find_mount(files, target);
  if (!entry) return target + " is not mounted";
  const auto have = split(entry->options, ',');
  std::string lacking;
  for (const auto& option : split(options, ','))
    if ((option == "nosuid" || option == "nodev" || option == "noexec") &&
        std::find(have.begin(), have.end(), option) == have.end())
      lacking += (lacking.empty() ? "" : ",") + option;
  return lacking.empty() ? "" : target + " is mounted without " + lacking;
}

Status set_flags(StepContext& context, const std::string& target, const std::string& options) {
  if (lacking_flags(context.files, target, options).empty()) return Ok{};
  std::string flags = "remount,bind";  // sets flags of this mount, not of its file system: works for any type
  for (const auto& option : split(options, ','))
    if (option == "nosuid" || option == "nodev" || option == "noexec") flags += "," + option;
  TRY(auto out, run_tool(context, {"mount", "-o", flags, target}, kMinute));
  (void)out;
  const std::string still = lacking_flags(context.files, target, options);
  return still.empty() ? Status(Ok{}) : Status(fail(Code::failed, still));
}

}  // namespace muster::steps
