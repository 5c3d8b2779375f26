// What an image of the spec is built from, and which images have to be built. Reads recipes and what is
// built; changes nothing. Thread safety: stateless functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/image/image.h"
#include "controller/options/options.h"
#include "controller/spec/playbook.h"
#include "controller/spec/spec.h"

namespace muster {

struct BuildOrder {
  std::string name;                    // an image of the spec, or any other name
  bool rebuild = false;                // even if nothing changed
  std::vector<std::string> bake = {};  // playbooks, for an image that is not in the spec
  // Likewise; default: the recipe named `name`, or default_recipe() if something is baked.
  std::string recipe = {};
  // Digests that nodes run or are being given: the other old builds lose their content (old_builds.h).
  // None: they keep it.
  std::optional<std::set<std::string>> used = {};
};
// `playbooks`: all that exist. `spec` may be null. Code::conflict: the order contradicts the spec.
Result<ImageRequest> image_request(const DaemonOptions& options, const Spec* spec,
                                   const std::map<std::string, Playbook>& playbooks, const BuildOrder& order);

struct DueImage {
  std::string name;
  std::string why;         // "not built yet", "packages: +htop"
  std::string error = {};  // why it cannot be built; then there is no `why` and no request
  std::optional<ImageRequest> request = {};
};
// Those of these images that `muster up` would build. Blocking: for worker threads.
std::vector<DueImage> due_images(const DaemonOptions& options, const Spec& spec,
                                 const std::map<std::string, Playbook>& playbooks,
                                 const std::set<std::string>& images);

}  // namespace muster
