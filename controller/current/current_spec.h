// CurrentSpec: the newest revision of the spec, parsed once per revision. Thread: the reactor's.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "controller/ports/store.h"
#include "controller/spec/spec.h"

namespace muster {

struct SpecRevision {
  int64_t revision = 0;
  std::string digest;
  Spec spec;
};

class CurrentSpec {
 public:
  using Recipes = std::function<std::vector<KnownRecipe>()>;
  // `recipes`: those that images are made from, read with each revision; without it none is known.
  explicit CurrentSpec(Store& store, Recipes recipes = {}) : store_(store), recipes_(std::move(recipes)) {}
  // not_found: there is none yet. invalid: this version of muster no longer accepts the stored text.
  Result<std::shared_ptr<const SpecRevision>> get();
  // `listener` is called after a new revision was stored.
  void on_change(std::function<void()> listener) { listener_ = std::move(listener); }
  void changed();

 private:
  Store& store_;
  const Recipes recipes_;
  std::shared_ptr<const SpecRevision> cached_;
  std::function<void()> listener_;
};

// Returns the node that declares this MAC (in the form of normal_mac()); "": none, or there is no spec.
std::string node_of_mac(CurrentSpec& spec, const std::string& mac);
// The default without a spec.
DurationMs netboot_limit(CurrentSpec& spec);
// False without a spec.
bool joins_from_any_port(CurrentSpec& spec);
EventLimits event_limits(CurrentSpec& spec);  // likewise
// "10.20.0.0/24" -> 24; 0 if it has none.
int prefix_length(const std::string& cidr);
// The declared one, else the first address of the provisioning network.
std::string controller_address(const Spec& spec);

}  // namespace muster
