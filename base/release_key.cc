#include "base/release_key.h"

#include <fmt/format.h>

namespace muster {

Result<bool> means_system(const std::string& key, const OsRelease& system) {
  if (!find_release(key) && !find_distribution(key))
    return fail(Code::invalid,
                fmt::format("'{}' is neither a release's codename nor a distribution; known: {}", key,
                            supported_releases()));
  return key == system.codename || key == system.id;
}

}  // namespace muster
