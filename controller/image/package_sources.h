// Where an image's packages come from: the mirror of its recipe or spec, else the sources of this machine if
// it has the same distribution; and which key signs them. Thread safety: stateless; find_sources() blocks.
#pragma once

#include <string>
#include <vector>

#include "base/release_sources.h"
#include "base/result.h"
#include "controller/image/recipe.h"
#include "sys/os.h"

namespace muster {

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

// Replaces the recipe's mirror by the one that the cluster's spec declares for its distribution, if it
// declares one.
void use_mirror(ImageRecipe& recipe, const AptMirror& declared);

struct ImageSources {
  std::string file;   // in the image, where the agent's step apt_mirror has it, too
  std::string text;   // of that file
  std::string lines;  // the same in the format of sources.list, in which the builder takes it
};
// `own_key`: where a key that the recipe has (AptMirror::key) is while the image is built. not_found: `host`
// lacks the archive's key, or has no repository of its release; invalid: no mirror is declared and `host` has
// another distribution. Writes nothing.
Result<ImageSources> find_sources(const ImageRecipe& recipe, const std::string& own_key, const Files& host,
                                  Process& process);

// What apt and mmdebstrap report as wrong, a line each and each once: "E: Unable to locate package x".
std::string apt_complaints(const std::string& output);
// True if the recipe or the spec names what the sources must have. The components of this machine's own
// sources are no order: its release may have some that the recipe's has not.
bool orders_components(const ImageRecipe& recipe);
// The first line that says that a repository lacks a component, which apt takes for a warning; else "".
std::string missing_component(const std::string& output);

}  // namespace muster
