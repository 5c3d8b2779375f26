// Builds node images: recipe -> tree of its distribution (mmdebstrap) -> ext4 file system -> frame manifest,
// and the tree of the RAM system with the same kernel and modules.
//
// Layout: <state>/images/<name>/<digest hex>/{manifest.json, frames.zst, vmlinuz, [initrd], BOOTX64.EFI,
// build.json, ram/ (tree of the RAM system without the agent), ram.json, ram-vmlinuz, ram-initrd} and the
// link <name>/current. A finished folder is never changed (except ram.*, which build_ram_system() rewrites);
// a half-built one has a name starting with ".build-" and is removed by the next build. build.json records
// when and what it was built from (inputs.h), and its packages (package_list.h). <name>/ also has .bootstrap/
// (recipe_tree.h), and with layers .layers/ (layers.h) and .packages/ (downloads of a build that has not
// succeeded yet). No loop devices; mounts only for layers, in a namespace of their own. As root it works
// directly, else through mmdebstrap's user namespace (an image with layers is rejected then). Thread:
// blocking (minutes); for worker threads. Two builds of one name at once are rejected (Code::conflict).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/manifest.h"
#include "base/result.h"
#include "controller/image/layers.h"
#include "controller/image/recipe.h"
#include "sys/os.h"

namespace muster {

struct ImageRequest {
  std::string name;                                // of the image: "debian-12"
  ImageRecipe recipe = {};                         // as it was read
  std::string variant = "full";                    // key of the recipe's `kernel`: cloud | full
  std::vector<std::string> packages = {};          // required by roles in addition to the recipe
  std::vector<RecipeFile> files = {};              // baked steps of phase image
  std::vector<std::vector<std::string>> run = {};  // likewise; run in the chroot after the recipe's own
  std::vector<ImageLayer> layers = {};             // playbooks with other steps, one layer each, lowest first
  std::string agent = {};                          // muster-agent, which carries out the steps of layers
  std::string state_dir = "/var/lib/muster";
  std::string host_root = "/";    // of the machine that builds: its release and keys; another one in tests
  std::string shared_cache = {};  // folder (shared_cache.h); empty: none
  bool rebuild = false;           // even if nothing changed (new package versions)
  int level = 9;                  // zstd
};

struct ImageInfo {
  std::string name;
  std::string digest;  // of the manifest
  std::string folder;  // real path of the folder above
  ImageManifest manifest;
  bool reused = false;  // nothing was built
};

// `progress("packages", 0.4)`: the current phase and the overall progress, 0 to 1. The first call has
// fraction 0 and the reason for the build: "not built yet", "packages: +htop".
using ImageProgress = std::function<void(const std::string& what, double fraction)>;

// Returns why nodes with this image, or some of them, could not be re-imaged: its kernel and initrd do not
// fit twice on the EFI system partition. "": they do.
std::string too_large_to_replace(const ImageManifest& manifest);

// Returns the recipe with the kernel of this variant and all that is baked into its own tree. invalid: it has
// no such variant.
Result<ImageRecipe> effective_recipe(const ImageRequest& request);
// Builds an image, or returns the current one, without calling `progress`, if its inputs are the same.
Result<ImageInfo> build_image(const ImageRequest& request, Process& process, const ImageProgress& progress);
// Returns why that would build; "" if it would return the current image. Builds nothing.
Result<std::string> why_build(const ImageRequest& request);
// Returns the current image of that name; not_found if none was built. Checks the manifest, not the frames.
Result<ImageInfo> load_image(const std::string& state_dir, const std::string& name);
// Returns the names of all images that have a current version, sorted.
std::vector<std::string> list_images(const std::string& state_dir);

// Compresses a raw file into `frames_path`; returns frames and raw_size. Uses one thread per core.
Result<ImageManifest> write_frames(const std::string& raw_path, const std::string& frames_path, int level);

}  // namespace muster
