#include "controller/spec/spec.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

std::string to_string(const SpecError& e, const std::string& file) {
  std::string out = e.file.empty() ? file : e.file;
  if (e.line > 0) out += fmt::format(":{}:{}", e.line, e.column);
  if (!e.path.empty()) out += ": " + e.path;
  return out + ": " + e.message;
}

std::string to_string(const std::vector<SpecError>& errors, const std::string& file) {
  std::string out;
  for (const SpecError& e : errors) out += (out.empty() ? "" : "\n") + to_string(e, file);
  return out;
}

int fewest_drives(const std::string& level) {
  // md also creates a raid5 of two drives or a raid10 of two or three, but as mirrors: declare raid1.
  if (level == "raid1") return 2;
  if (level == "raid5") return 3;
  return level == "raid6" || level == "raid10" ? 4 : 1;
}

bool is_redundant(const std::string& level) { return fewest_drives(level) > 1; }

bool takes_part(const StorageSpec& storage, const NodeSpec& node) {
  return storage.roles.empty() || storage.roles.count(node.role) > 0;
}

bool Spec::plays(const NodeSpec& node, const std::string& playbook) const {
  const auto found = roles.find(node.role);
  return found != roles.end() &&
         std::find(found->second.begin(), found->second.end(), playbook) != found->second.end();
}

AptMirror Network::apt_of(const std::string& distribution) const {
  const auto declared = apt.find(distribution);
  return declared == apt.end() ? AptMirror() : declared->second;
}

const Distribution* Spec::distribution_of(const NodeSpec& node) const {
  const auto image = images.find(node.image);
  return image == images.end() ? nullptr : image->second.distribution;
}

const Distribution& Spec::mirrored_distribution(const NodeSpec& node) const {
  const Distribution* known = distribution_of(node);
  return known ? *known : default_distribution();
}

AptMirror Spec::apt_of(const NodeSpec& node) const { return network.apt_of(mirrored_distribution(node).id); }

void use_recipes(Spec& spec, const std::vector<KnownRecipe>& recipes) {
  for (auto& [name, image] : spec.images)
    for (const KnownRecipe& recipe : recipes)
      if (recipe.name == image.recipe && recipe.error.empty())
        image.distribution = find_distribution(recipe.distribution);
}

const NodeSpec* Spec::leader_of(const std::string& playbook) const {
  if (playbook == "accounting")
    if (const NodeSpec* slurm = leader_of("scheduler")) return slurm;
  const auto declared = leads.find(playbook);
  const NodeSpec* first = nullptr;
  for (const NodeSpec& node : nodes) {
    const bool chosen = declared == leads.end() ? plays(node, playbook) : node.role == declared->second;
    if (chosen && (!first || node.name < first->name)) first = &node;
  }
  return first;
}

std::string no_host_key() { return "SHA256:" + std::string(43, 'A'); }

bool is_generated(const NodeSpec& node) { return node.adopt.host_key == no_host_key(); }

bool is_switched(const NodeSpec& node) { return !node.power.driver.empty() && is_remote(switched_by(node)); }

Switch switched_by(const NodeSpec& node) { return description_of(node.power.driver).by; }

std::string declared_variable(const Spec& spec, const NodeSpec* node, const std::string& name,
                              const std::string& otherwise) {
  if (node)
    if (const auto own = node->vars.find(name); own != node->vars.end()) return own->second;
  const auto of_all = spec.vars.find(name);
  return of_all == spec.vars.end() ? otherwise : of_all->second;
}

const NodeSpec* Spec::node(const std::string& name) const {
  // The nodes of a parsed spec are sorted by name; those of any other spec are searched linearly.
  const auto ordered =
      std::lower_bound(nodes.begin(), nodes.end(), name,
                       [](const NodeSpec& n, const std::string& to) { return n.name.str() < to; });
  if (ordered != nodes.end() && ordered->name == name) return &*ordered;
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const NodeSpec& n) { return n.name == name; });
  return found == nodes.end() ? nullptr : &*found;
}

}  // namespace muster
