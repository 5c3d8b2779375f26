// network.apt: where images and nodes get their distribution's packages.
#include <fmt/format.h>

#include "controller/spec/reader/reader.h"

namespace muster {

const YamlNode* SpecReader::mirror_section(const YamlNode* network, const Distribution& distribution) {
  const YamlNode* apt = child(network, "apt");
  return distribution.id == default_distribution().id ? apt : child(apt, distribution.id.c_str());
}

void SpecReader::read_apt(const YamlNode* network) {
  for (const Distribution& one : distributions()) read_mirror(mirror_section(network, one), one);
  if (!spec_.network.apt.empty()) must_have_playbook(*child(network, "apt"), "network.apt", "base", "");
  check_mirrors();
}

std::string SpecReader::mirror_url(const YamlNode* at, const std::string& path,
                                   const Distribution& distribution) {
  if (!at || !at->is_text()) return "";
  const std::string url = without_slash(at->text);
  // A password would be readable by every user of a node and every reader of the spec.
  if (at->text.find('@') != std::string::npos)
    error(*at, path, "the URL of a mirror must not contain a user or password");
  else if (mirror_host(at->text).empty())
    error(*at, path, fmt::format("'{}' is not a URL such as {}", at->text, distribution.example_mirror));
  else if (const Distribution* other = mirror_of_another(distribution, url))
    error(*at, path,
          fmt::format("'{}' is a mirror of {}, not of {}: declare it as `{}.mirror`", at->text, other->title,
                      distribution.title, apt_path(*other)));
  else
    return url;
  return "";
}

std::string SpecReader::mirror_key(const YamlNode* at, const std::string& path) {
  if (!at || !at->is_text()) return "";
  std::string text = at->text;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::string block = "PGP PUBLIC KEY BLOCK-----";
  if (text.starts_with("-----BEGIN " + block) && text.ends_with("-----END " + block)) return text + "\n";
  error(*at, path, "expected public keys in one ASCII-armoured block: -----BEGIN " + block);
  return "";
}

// The location of security updates is always derived from the mirror or declared, never omitted by accident.
void SpecReader::read_mirror(const YamlNode* section, const Distribution& distribution) {
  if (!section || !section->is_map()) return;
  const std::string at = apt_path(distribution);
  const YamlNode *mirror = child(section, "mirror"), *security = child(section, "security_mirror"),
                 *updates = child(section, "updates"), *key = child(section, "key");
  AptMirror out;
  out.mirror = mirror_url(mirror, at + ".mirror", distribution);
  out.updates = !updates || !yaml_is_boolean(*updates) || yaml_boolean(*updates);
  out.key = mirror_key(key, at + ".key");
  if (!mirror && (security || updates || key))
    error(*section, at + ".mirror", "is required by the other keys");
  if (security && security->is_text())
    out.security =
        security->text == kNoMirror ? kNoMirror : mirror_url(security, at + ".security_mirror", distribution);
  else if (out.declared() && (out.security = security_of(distribution, out.mirror)).empty())
    error(*mirror, at + ".mirror",
          fmt::format("the location of security updates cannot be derived from {}: give `security_mirror: "
                      "URL`, or `security_mirror: none` if the mirror has none",
                      out.mirror));
  if (out.declared()) spec_.network.apt[distribution.id] = out;
}

// An image can be built from the mirror of its recipe, of the spec, or of a builder of the same distribution.
void SpecReader::check_mirrors() {
  if (names_.builder.empty()) return;
  for (const auto& [name, image] : spec_.images)
    for (const KnownRecipe& recipe : names_.recipes) {
      const Distribution* distribution = find_distribution(recipe.distribution);
      if (recipe.name != image.recipe || !recipe.error.empty() || recipe.mirror || !distribution ||
          recipe.distribution == names_.builder || spec_.network.apt_of(recipe.distribution).declared())
        continue;
      error(*child(child(child(&root_, "images"), name.c_str()), "recipe"),
            fmt::format("images.{}.recipe", name),
            fmt::format(
                "no mirror of {} is declared, and the controller's own is of another distribution: give "
                "`{}.mirror`, such as {}",
                distribution->title, apt_path(*distribution), distribution->example_mirror));
    }
}

}  // namespace muster
