#include "base/release_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace muster {
namespace {

std::string as_lines(const std::vector<AptPocket>& pockets, const std::string& keyring) {
  const std::string deb = keyring.empty() ? "deb " : "deb [signed-by=" + keyring + "] ";
  std::string out;
  for (const AptPocket& one : pockets)
    out += fmt::format("{}{} {} {}\n", deb, one.uri, one.suite, fmt::join(one.components, " "));
  return out;
}

// Pockets of one mirror, with the same components, are one stanza.
std::string as_stanzas(const std::vector<AptPocket>& pockets, const std::string& keyring) {
  std::string out;
  for (size_t i = 0; i < pockets.size();) {
    const AptPocket& first = pockets[i];
    std::string suites;
    for (; i < pockets.size() && pockets[i].uri == first.uri && pockets[i].components == first.components;
         ++i)
      suites += " " + pockets[i].suite;
    out += fmt::format("{}Types: deb\nURIs: {}\nSuites:{}\nComponents: {}\n", out.empty() ? "" : "\n",
                       first.uri, suites, fmt::join(first.components, " "));
    if (!keyring.empty()) out += "Signed-By: " + keyring + "\n";
  }
  return out;
}

}  // namespace

std::string without_slash(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

std::string security_of(const Distribution& distribution, const std::string& mirror) {
  if (distribution.security_folder.empty()) return mirror;
  const std::string& usual = distribution.mirror_folder;
  if (mirror.size() <= usual.size() || !mirror.ends_with(usual)) return "";
  return mirror.substr(0, mirror.size() - usual.size()) + distribution.security_folder;
}

std::vector<AptPocket> pockets_of(const AptMirror& mirror, const std::string& suite,
                                  const std::vector<std::string>& components) {
  std::vector<AptPocket> out = {{mirror.mirror, suite, components}};
  if (mirror.updates) out.push_back({mirror.mirror, suite + "-updates", components});
  if (mirror.security != kNoMirror) out.push_back({mirror.security, suite + "-security", components});
  return out;
}

std::string sources_text(const std::string& file, const std::vector<AptPocket>& pockets,
                         const std::string& keyring) {
  return file.ends_with(".sources") ? as_stanzas(pockets, keyring) : as_lines(pockets, keyring);
}

}  // namespace muster
