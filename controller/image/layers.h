// Layers of an image: trees stacked with overlayfs. The lowest is the recipe's own; each further one has
// the changes made by one playbook's image-phase steps, carried out by the agent in a chroot.
//
// Layout: <folder>/.layers/<key>/{tree, log}; the key is a digest of the layer and of all layers below it, so
// an existing layer with that key can be reused. Unfinished layers are in the build's staging folder and
// removed with it. Mounts are in a namespace of the building thread and vanish when that thread ends. Needs
// root. Calls block; make them only on the thread of in_private_mounts().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "sys/os.h"

namespace muster {

// A playbook's layer. `steps`: as in wire::Step; `units`: systemctl's arguments, run after all layers.
struct ImageLayer {
  std::string name;
  Json steps = Json::array();
  std::vector<std::vector<std::string>> units = {};
};
Json to_json(const ImageLayer& layer);

// Returns one key per layer, that of the recipe's tree first.
std::vector<std::string> layer_keys(const Json& recipe_inputs, const std::vector<ImageLayer>& layers);

// Runs `work` in a thread with a private mount namespace. Code::denied without the permission to do so.
Status in_private_mounts(const std::function<Status()>& work);

class Layers {
 public:
  // `folder`: the image's; `stage`: the build's staging folder, on the same file system.
  Layers(std::string folder, std::string stage, Process& process)
      : folder_(std::move(folder)), stage_(std::move(stage)), process_(process) {}

  bool kept(const std::string& key) const;
  std::string tree(const std::string& key) const { return folder_ + "/.layers/" + key + "/tree"; }
  // Stores a finished tree and its log (may be "") under that key.
  Status keep(const std::string& key, const std::string& tree, const std::string& log) const;
  // Removes kept layers that are not among `keys`, and kept downloads.
  void prune(const std::vector<std::string>& keys) const;

  // Mounts the kept layers `below` at `at`; what is written there goes to <stage>/upper.
  Status mount(const std::vector<std::string>& below, const std::string& at) const;
  Status unmount(const std::string& at) const;
  // Stores the finished upper tree of a layer under `key`.
  Status keep_upper(const std::string& key, const std::string& log) const {
    return keep(key, stage_ + "/upper", log);
  }

  // Carries out the steps in the tree mounted at `root`, with network access; daemons are prevented from
  // starting. Calls `said` with a line per step. The log of all commands is <stage>/log; after a failure it
  // is at <folder>/failed-<layer>.log, and the error names it.
  Status run(const ImageLayer& layer, const std::string& agent, const std::string& root,
             const std::function<void(const std::string&)>& said) const;

 private:
  std::string folder_, stage_;
  Process& process_;
};

}  // namespace muster
