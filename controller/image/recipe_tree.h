// The recipe's own tree, in two steps of mmdebstrap: its packages into an archive, and that archive with the
// recipe's files and commands into a directory. The first takes minutes and depends on nothing but the
// packages, so a build within a day in which only files, commands or layers changed reuses the archive; an
// older one is made again, since the mirror may have security updates.
//
// Layout: <folder>/.bootstrap/<key>/{packages.tar, built.json}, for the key of the last build only. As root
// it works directly, else in mmdebstrap's user namespace. Thread: blocking (minutes).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/time.h"
#include "controller/image/package_sources.h"
#include "controller/image/recipe.h"
#include "sys/os.h"

namespace muster {

inline constexpr DurationMs kPackagesReused = kDay;

// Time stamps of what is built: equal input gives equal ones. 2026-01-01.
inline constexpr const char* kBuildEpoch = "1767225600";

// Environment of every installation of packages into a tree of an image.
std::map<std::string, std::string> installation_environment();

struct RecipeTree {
  const ImageRecipe& recipe;
  const ImageSources& sources;
  int builder;               // version of the code that builds images
  std::string folder;        // of the image
  std::string stage;         // of this build, on the same file system; the tree is <stage>/tree
  std::string shared_cache;  // folder (shared_cache.h); empty: none
  bool rebuild;              // the packages are to be those of today
  Process& process;
  std::function<void(const std::string& what, double fraction)> progress;
};

// Where a key that the recipe has (AptMirror::key) is while the image is built.
std::string own_key(const std::string& stage);
// An error contains what apt reported.
Status make_recipe_tree(const RecipeTree& b);

}  // namespace muster
