// Old builds of an image. Where a window builds images each night, they would fill the disk: those that
// nothing needs lose their content, and keep what reports read, build.json and manifest.json. Thread:
// blocking; for worker threads.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "base/result.h"

namespace muster {

// So many keep their content beside the current one, those that arrived here last: a run may have begun with
// one of them.
constexpr size_t kKeptBuilds = 3;

// Empties the older builds that are not among `used` (digests); returns how many. Code::conflict: the image
// is being built or imported.
Result<size_t> empty_old_builds(const std::string& state_dir, const std::string& image,
                                const std::set<std::string>& used);

// False for a build that was emptied, and where there is none.
bool has_content(const std::string& folder);

}  // namespace muster
