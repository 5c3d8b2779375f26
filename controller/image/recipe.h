// ImageRecipe: what goes into a node image, read from images/<name>.yaml. Pure: text in, value out; only
// load_recipe() reads files.
//
// Keys: from (another recipe, to which this one adds), suite, kernel {cloud, full}, packages, exclude (dpkg
// path-exclude patterns), mask, disable, enable (systemd units), firmware (packages of the component
// non-free-firmware: adapters' firmware, microcode), files [{path, content, mode}], run [[argv...]] (executed
// in the chroot, without a shell), mirror (optional: "http://host/debian"; default: the host's own), and with
// it security_mirror (URL or "none"; default: beside it) and updates (true, false). An unknown key is an
// error. Thread: plain values, pure functions; load_recipe() blocks.
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
      {};  // of a recipe with a mirror: never empty; kNoMirror where that mirror has no such pocket
  bool updates = true;                             // the mirror has SUITE-updates
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

// `source` is for messages: "images/debian-12.yaml:7: ...". All problems at once, one per line. `base`: of a
// recipe with `from`: lists continue the base's, other keys replace the base's.
Result<ImageRecipe> parse_recipe(const std::string& text, const std::string& source,
                                 const ImageRecipe* base = nullptr);
// FOLDER/NAME.yaml, with the recipe named in its `from`, which has no `from` of its own. Code::not_found if
// one of them is missing.
Result<ImageRecipe> load_recipe(const std::string& folder, const std::string& name);
// Canonical text: equal recipes give equal text. Part of the key under which a built image is cached.
std::string canonical(const ImageRecipe& recipe);

// A repository of the host's apt, from `apt-get indextargets`.
struct AptSource {
  std::string uri;
  std::string suite;
  std::string component;
  std::string signed_by = {};
};
// Output of kIndexTargetsFormat, one repository per line.
inline constexpr const char* kIndexTargetsFormat = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SIGNED_BY)";
std::vector<AptSource> parse_index_targets(const std::string& text);
// The mirror that the cluster's spec declares replaces the recipe's; nothing changes if it declares none.
void use_mirror(ImageRecipe& recipe, const AptMirror& declared);
// The lines of sources.list of a recipe with a mirror: its release, and the release's updates and security
// pockets.
std::string sources_of_mirror(const ImageRecipe& recipe, const std::string& keyring);
// The lines of sources.list with one more component in each, unless it is there already.
std::string with_component(const std::string& sources, const std::string& component);
// The lines of sources.list for `suite`, from the host's own mirrors of `host_suite` and its -updates and
// -security (other repositories of the host are left out). Code::not_found when the host has no Debian
// repository.
Result<std::string> sources_for(const std::vector<AptSource>& host, const std::string& host_suite,
                                const std::string& suite, const std::string& keyring);

}  // namespace muster
