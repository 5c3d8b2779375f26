// Layers of an image: trees stacked with overlayfs. The lowest is the recipe's Debian; each further one has
// the changes of one playbook's image-phase steps, carried out by the agent in a chroot of all below it.
//
// Layout: <folder>/.layers/<key>/{tree, log}; the key is a digest of the layer and of all below it, so an
// existing layer is the one that would be made now. Unfinished ones are in the build's own stage and removed
// with it. Mounts live in a namespace of the building thread: they are gone with it, however it ends. Needs
// root. Thread: blocking; for the thread of in_private_mounts().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/os.h"
#include "base/result.h"

namespace muster {

// Of one playbook: `steps` as in a work order (wire::Step); `units`: systemctl's argument vectors, run when
// all layers are there.
struct ImageLayer {
  std::string name;
  Json steps = Json::array();
  std::vector<std::vector<std::string>> units = {};
};
Json to_json(const ImageLayer& layer);

// One key per layer, the recipe's own first.
std::vector<std::string> layer_keys(const Json& recipe_inputs, const std::vector<ImageLayer>& layers);

// Runs `work` in a thread with private mounts. Code::denied without the permission.
Status in_private_mounts(const std::function<Status()>& work);

class Layers {
 public:
  // `folder` is the image's, `stage` the build's, on the same file system.
  Layers(std::string folder, std::string stage, Process& process)
      : folder_(std::move(folder)), stage_(std::move(stage)), process_(process) {}

  bool kept(const std::string& key) const;
  // The kept tree of a layer.
  std::string tree(const std::string& key) const { return folder_ + "/.layers/" + key + "/tree"; }
  // Moves a finished tree (and its log, may be "") to that key.
  Status keep(const std::string& key, const std::string& tree, const std::string& log) const;
  // Removes kept layers that are not among `keys`, and kept downloads.
  void prune(const std::vector<std::string>& keys) const;

  // Mounts the kept layers `below` at `at`; what is written there goes to <stage>/upper.
  Status mount(const std::vector<std::string>& below, const std::string& at) const;
  Status unmount(const std::string& at) const;
  // Ends a layer: its upper tree is kept under `key`.
  Status keep_upper(const std::string& key, const std::string& log) const {
    return keep(key, stage_ + "/upper", log);
  }

  // Carries out the steps in the tree mounted at `root`, with daemons prevented from starting, and with the
  // network. `said` gets a line per step. The log of all commands is <stage>/log; after a failure it is at
  // <folder>/failed-<layer>.log, and the error names it.
  Status run(const ImageLayer& layer, const std::string& agent, const std::string& root,
             const std::function<void(const std::string&)>& said) const;

 private:
  std::string folder_, stage_;
  Process& process_;
};

}  // namespace muster
