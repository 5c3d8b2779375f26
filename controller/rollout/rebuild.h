// The images that a night builds again before its first batch (`rollout.rebuild`): which are due, and what
// came of each. A night does not fail with a build: it goes on with the image that is there. Pure functions,
// no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/record.h"
#include "base/result.h"
#include "base/time.h"
#include "controller/spec/spec.h"

namespace muster::rollout {

struct Build {
  int64_t tries = 0;            // begun; the controller may have been stopped in the last one
  TimeMs began = 0, ended = 0;  // the first try, the last one; ended 0: not yet
  std::string error = {};       // of the last try; where `ended` is set: why there is no newer image
};
using Builds = std::map<std::string, Build>;  // by name of the image

constexpr int64_t kBuildTries = 3;
constexpr DurationMs kBuildAgain = 10 * kMinute;  // from a try that failed to the next one

// The age from which an image is built again: half a day less than the interval, because a build ends later
// than the window opens. Not of `never`.
DurationMs least_age(Rebuild rebuild);
// `built_at`: when the image was built; 0: unknown, which is due. So is a time that is yet to come.
bool is_due(Rebuild rebuild, TimeMs built_at, TimeMs now);
// Names of the images that are due, of all in `built_at`.
std::vector<std::string> due_images(Rebuild rebuild, const std::map<std::string, TimeMs>& built_at,
                                    TimeMs now);
// The first image whose build has not ended.
std::optional<std::string> next_build(const Builds& builds);
// True if another try may succeed where one failed with this: a mirror that does not answer, not a recipe.
bool may_pass(const Error& error);

MUSTER_RECORD(Build, tries, began, ended, error)

}  // namespace muster::rollout
