#include "agent/image/trial.h"

#include "base/kernel_line.h"

namespace muster {

std::string trial_seconds(const Files& files) {
  const std::string key = "muster.trial";
  const std::string argument = kernel_argument(files.read_line("/proc/cmdline"), key);
  return argument.size() > key.size() + 1 ? argument.substr(key.size() + 1) : "";
}

bool on_trial(const Files& files) { return !trial_seconds(files).empty() && !files.exists(kTrialEnded); }

bool goes_back_by_itself(const Files& files) {
  return files.exists("/usr/lib/systemd/system-generators/muster-trial");
}

}  // namespace muster
