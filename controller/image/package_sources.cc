#include "controller/image/package_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/split.h"
#include "base/utf8.h"
#include "controller/spec/apt_origin.h"
#include "sys/os_release.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

Result<std::string> archive_key(const Distribution& distribution, const Files& host) {
  if (host.exists(distribution.keyring)) return distribution.keyring;
  const std::string& note = distribution.keyring_note;
  return fail(Code::not_found,
              fmt::format("this machine has no {}, with which packages of {} are verified: install {}{}",
                          distribution.keyring, distribution.title, distribution.keyring_package,
                          note.empty() ? "" : " (" + note + ")"));
}

std::string keys_to_give(const Distribution& distribution) {
  return fmt::format("give `{}.mirror` in the spec or `mirror` in the recipe, such as {}",
                     apt_path(distribution), distribution.example_mirror);
}

// The pockets of the release of `host` with another suite's name; others are left out.
Result<std::vector<AptPocket>> host_pockets(const ImageRecipe& recipe, const Distribution& distribution,
                                            const OsRelease& host, Process& process) {
  TRY(const std::string text, run_ok(process, {.argv = {"apt-get", "indextargets", "--format",
                                                        kIndexTargetsFormat, "Created-By: Packages"}}));
  // (suffix, uri) -> components, so that the text does not depend on apt's order.
  std::map<std::pair<std::string, std::string>, std::set<std::string>> found;
  for (const auto& source : parse_index_targets(text)) {
    if (!source.suite.starts_with(host.codename)) continue;
    const std::string suffix = source.suite.substr(host.codename.size());
    if (suffix.empty() || suffix == "-updates" || suffix == "-security")
      found[{suffix, source.uri}].insert(source.component);
  }
  if (host.codename.empty() || found.empty() || !found.begin()->first.first.empty())
    return fail(Code::not_found, fmt::format("this machine's apt sources contain no repository for {} {}: {}",
                                             distribution.title, host.codename, keys_to_give(distribution)));
  std::vector<AptPocket> out;
  for (const auto& [key, components] : found)
    out.push_back(
        {key.second, recipe.suite + key.first,
         recipe.components.empty() ? Names(components.begin(), components.end()) : recipe.components});
  return out;
}

std::vector<AptPocket> mirror_pockets(const ImageRecipe& recipe, const Distribution& distribution) {
  return pockets_of(
      {recipe.mirror, recipe.security_mirror, recipe.updates && has_pockets(distribution, recipe.suite)},
      recipe.suite, recipe.components.empty() ? distribution.components : recipe.components);
}

}  // namespace

std::vector<AptSource> parse_index_targets(const std::string& text) {
  std::vector<AptSource> out;
  for (const std::string& line : split_lines(text)) {
    std::vector<std::string> fields;
    std::istringstream split(line);
    for (std::string field; std::getline(split, field, '|');) fields.push_back(field);
    if (fields.size() < 3) continue;
    AptSource s{without_slash(fields[0]), fields[1], fields[2]};
    // apt prints the placeholder unchanged if the repository has no key.
    if (fields.size() > 3 && !fields[3].starts_with("$(")) s.signed_by = fields[3];
    out.push_back(std::move(s));
  }
  return out;
}

void use_mirror(ImageRecipe& recipe, const AptMirror& declared) {
  if (!declared.declared()) return;
  const Distribution* distribution = find_distribution(recipe.distribution);
  const bool pockets = distribution && has_pockets(*distribution, recipe.suite);
  recipe.mirror = declared.mirror;
  recipe.security_mirror = pockets ? declared.security : kNoMirror;
  recipe.updates = declared.updates;
  recipe.key = declared.key;
}

Result<ImageSources> find_sources(const ImageRecipe& recipe, const std::string& own_key, const Files& host,
                                  Process& process) {
  const Distribution* distribution = find_distribution(recipe.distribution);
  if (!distribution) return fail(Code::invalid, "unknown distribution " + recipe.distribution);
  std::vector<AptPocket> pockets;
  if (recipe.mirror.empty()) {
    const OsRelease own = os_release(host);
    if (own.id != distribution->id)
      return fail(Code::invalid,
                  fmt::format("no mirror of {} is declared, and this machine, which runs {}, has none: {}",
                              distribution->title, own.pretty_name.empty() ? own.id : own.pretty_name,
                              keys_to_give(*distribution)));
    TRY(pockets, host_pockets(recipe, *distribution, own, process));
  } else {
    pockets = mirror_pockets(recipe, *distribution);
  }
  std::string key = kMirrorKey, builders_key = own_key;
  if (recipe.key.empty()) {
    TRY(key, archive_key(*distribution, host));
    builders_key = key;
  }
  const std::string& firmware = distribution->firmware_component;
  for (AptPocket& pocket : pockets)
    if (Names& have = pocket.components; !recipe.firmware.empty() && !firmware.empty() &&
                                         std::find(have.begin(), have.end(), firmware) == have.end())
      have.push_back(firmware);
  const Release* release = find_release(recipe.suite);
  const std::string file = release ? release->sources_file : kSourcesList;
  return ImageSources{file, sources_text(file, pockets, key),
                      sources_text(kSourcesList, pockets, builders_key)};
}

std::string apt_complaints(const std::string& output) {
  constexpr size_t kMost = 3000;
  std::string out;
  std::set<std::string> seen;
  for (const std::string& line : split_lines(output))
    if ((line.starts_with("E: ") || line.starts_with("W: ")) && seen.insert(line).second)
      out += (out.empty() ? "" : "\n") + line;
  return end_of_output(out, kMost);
}

bool orders_components(const ImageRecipe& recipe) {
  return !recipe.mirror.empty() || !recipe.components.empty();
}

std::string missing_component(const std::string& output) {
  for (const std::string& line : split_lines(output))
    if (line.find("have the component '") != std::string::npos) return line;
  return "";
}

}  // namespace muster
