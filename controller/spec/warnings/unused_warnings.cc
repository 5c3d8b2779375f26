// What a spec declares without using it: images, roles, playbooks that are only baked, keys without effect;
// and the mirror that an image needs and that is not declared.
#include <fmt/format.h>

#include <algorithm>

#include "base/distribution.h"
#include "controller/spec/warnings/observer.h"

namespace muster::warnings {
namespace {

template <class Condition>
bool any_node(const Observer& o, const Condition& condition) {
  return std::any_of(o.spec.nodes.begin(), o.spec.nodes.end(), condition);
}

// Software that is installed and never set up. A role may have less than its image, which serves others, too.
void baked(Observer& o, const YamlEntry& image) {
  const YamlNode* bake = yaml_child(&image.value, "bake");
  for (size_t i = 0; bake && i < bake->items.size(); ++i) {
    const std::string& playbook = bake->items[i].text;
    if (any_node(o, [&](const NodeSpec& n) { return n.image == image.key && o.spec.plays(n, playbook); }))
      continue;
    o.warn(finding::kBakedNotApplied, bake->items[i], fmt::format("images.{}.bake[{}]", image.key, i),
           fmt::format("no role of this image's nodes has the playbook '{}'", playbook));
  }
}

void images_and_roles(Observer& o) {
  if (const YamlNode* images = o.section("images"))
    for (const YamlEntry& image : images->entries) {
      if (any_node(o, [&](const NodeSpec& n) { return n.image == image.key; }))
        baked(o, image);
      else
        o.warn(finding::kImageUnused, image, "images." + image.key, "no node has this image");
    }
  if (const YamlNode* roles = o.section("roles"))
    for (const YamlEntry& role : roles->entries)
      if (!any_node(o, [&](const NodeSpec& n) { return n.role == role.key; }))
        o.warn(finding::kRoleUnused, role, "roles." + role.key, "no node has this role");
}

void without_effect(Observer& o) {
  const YamlNode* network = o.section("network");
  for (const char* name : {"provisioning", "bmc"})
    if (const YamlNode* mtu = yaml_child(yaml_child(network, name), "mtu"))
      o.warn(finding::kKeyWithoutEffect, *mtu, fmt::format("network.{}.mtu", name),
             "muster sets the MTU of rails and of the storage network only");
  // Adopted hosts have their ports in these networks from elsewhere.
  const bool adopted = any_node(o, [](const NodeSpec& n) { return n.adopt.declared(); });
  const YamlNode* storage = yaml_child(network, "storage");
  const bool of_its_own = o.spec.network.storage.cidr != o.spec.network.provisioning.cidr;
  if (storage && of_its_own && !adopted &&
      !any_node(o, [](const NodeSpec& n) { return n.storage.declared(); }))
    o.warn(finding::kKeyWithoutEffect, *storage, "network.storage",
           "no node has a port in this network: no role has the playbook 'networks', or their `storage_port` "
           "is none");
  const YamlNode* rails = yaml_child(network, "rails");
  if (rails && !adopted && !any_node(o, [](const NodeSpec& n) { return !n.rails.empty(); }))
    o.warn(finding::kKeyWithoutEffect, *rails, "network.rails", "no node has rails");
}

// The controller host has packages of the default distribution.
void mirrors(Observer& o) {
  const YamlNode* images = o.section("images");
  for (const KnownRecipe& recipe : o.names.recipes)
    for (const auto& [name, image] : o.spec.images) {
      const Distribution* distribution = image.distribution;
      if (recipe.name != image.recipe || !distribution || distribution->id == default_distribution().id ||
          recipe.mirror || o.spec.network.apt_of(distribution->id).declared())
        continue;
      o.warn(
          finding::kMirrorUndeclared, *yaml_child(yaml_child(images, name.c_str()), "recipe"),
          fmt::format("images.{}.recipe", name),
          fmt::format("the image is built from a mirror of {}, and none is declared", distribution->title));
    }
}

}  // namespace

void unused_warnings(Observer& o) {
  images_and_roles(o);
  without_effect(o);
  mirrors(o);
}

}  // namespace muster::warnings
