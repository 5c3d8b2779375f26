// ImageRecipe: the content of a node image, read from images/<name>.yaml. Pure functions, except
// load_recipe(), which reads files.
//
// Keys: from (another recipe, to which this one adds), suite, kernel {cloud, full}, packages, exclude (dpkg
// path-exclude patterns), mask, disable, enable (systemd units), firmware (packages of the component
// non-free-firmware: adapters' firmware, microcode), files [{path, content, mode}], run [[argv...]] (executed
// in the chroot, without a shell), mirror (optional: "http://host/debian"; default: the host's own), and with
// it security_mirror (URL or "none"; default: derived from mirror) and updates (true, false). An unknown key
// is an error. Thread safety: plain value types, stateless functions; load_recipe() blocks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "controller/spec/apt_origin.h"

namespace muster {

struct RecipeFile {
  std::string path;  // absolute
  std::string content;
  unsigned mode = 0644;
};

struct ImageRecipe {
  std::string suite;
  std::string mirror = {};
  std::string security_mirror =
      {};               // with a mirror: never empty; kNoMirror if that mirror has no security pocket
  bool updates = true;  // the mirror has SUITE-updates
  std::map<std::string, std::string> kernel = {};  // variant -> package
  std::vector<std::string> packages = {};
  std::vector<std::string> firmware = {};  // packages that need the component non-free-firmware
  std::vector<std::string> exclude = {};
  std::vector<std::string> mask = {};
  std::vector<std::string> disable = {};
  std::vector<std::string> enable = {};
  std::vector<RecipeFile> files = {};
  std::vector<std::vector<std::string>> run = {};
};

// Parses a recipe; reports all errors, one per line. `source`: for messages ("images/debian-12.yaml:7: ...").
// `base`: the recipe that `from` names; lists are appended to its lists, other keys replace its keys.
Result<ImageRecipe> parse_recipe(const std::string& text, const std::string& source,
                                 const ImageRecipe* base = nullptr);
// Reads FOLDER/NAME.yaml and the recipe that its `from` names, which must not have a `from` itself.
// Code::not_found if either is missing.
Result<ImageRecipe> load_recipe(const std::string& folder, const std::string& name);
// Returns canonical text: equal recipes give equal text. Part of the key under which a built image is cached.
std::string canonical(const ImageRecipe& recipe);

// A repository that apt on the host uses, from `apt-get indextargets`.
struct AptSource {
  std::string uri;
  std::string suite;
  std::string component;
  std::string signed_by = {};
};
// Format of one line of output, for one repository.
inline constexpr const char* kIndexTargetsFormat = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SIGNED_BY)";
std::vector<AptSource> parse_index_targets(const std::string& text);
// Replaces the recipe's mirror by the one that the cluster's spec declares, if it declares one.
void use_mirror(ImageRecipe& recipe, const AptMirror& declared);
// sources.list for a recipe with a mirror: its release, and that release's updates and security pockets.
std::string sources_of_mirror(const ImageRecipe& recipe, const std::string& keyring);
// Returns the lines of sources.list with `component` added to each line that does not have it.
std::string with_component(const std::string& sources, const std::string& component);
// sources.list for `suite` from the host's own mirrors of `host_suite`, its -updates and -security; others
// are left out. Code::not_found if the host has no Debian repository.
Result<std::string> sources_for(const std::vector<AptSource>& host, const std::string& host_suite,
                                const std::string& suite, const std::string& keyring);

}  // namespace muster
