#include "agent/storage/mfscli.h"

namespace muster::steps {
namespace {

// mfscli is a Python program. On a host with heavily overcommitted cores it needed 45 s, and was once killed
// after 60 s.
constexpr DurationMs kDeadline = 5 * kMinute;

}  // namespace

Result<std::string> mfscli(StepContext& context, const std::string& master, std::vector<std::string> what) {
  std::vector<std::string> argv = {"mfscli", "-H", master, "-n", "-s", "|"};
  argv.insert(argv.end(), what.begin(), what.end());
  return run_tool(context, std::move(argv), kDeadline);
}

}  // namespace muster::steps
