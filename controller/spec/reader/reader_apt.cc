// network.apt: where images and nodes get their Debian packages.
#include <fmt/format.h>

#include "controller/spec/reader/reader.h"

namespace muster {

// The location of security updates is always derived from the mirror or declared, never omitted by accident.
void SpecReader::read_apt(const YamlNode* network) {
  const YamlNode* apt = child(network, "apt");
  if (!apt || !apt->is_map()) return;
  AptMirror& out = spec_.network.apt;
  const YamlNode *mirror = child(apt, "mirror"), *security = child(apt, "security_mirror");
  const auto url = [this](const YamlNode* at, const std::string& path) -> std::string {
    if (!at || !at->is_text()) return "";
    // A password would be readable by every user of a node and every reader of the spec.
    if (at->text.find('@') != std::string::npos)
      error(*at, path, "the URL of a mirror must not contain a user or password");
    else if (mirror_host(at->text).empty())
      error(*at, path, fmt::format("'{}' is not a URL such as http://mirror.example/debian", at->text));
    else
      return without_slash(at->text);
    return "";
  };
  out.mirror = url(mirror, "network.apt.mirror");
  const YamlNode* updates = child(apt, "updates");
  out.updates = !updates || !yaml_is_boolean(*updates) || yaml_boolean(*updates);
  if (security && security->is_text())
    out.security = security->text == kNoMirror ? kNoMirror : url(security, "network.apt.security_mirror");
  else if (out.declared() && (out.security = security_beside(out.mirror)).empty())
    error(*mirror, "network.apt.mirror",
          fmt::format("the location of security updates cannot be derived from {}: give `security_mirror: "
                      "URL`, or `security_mirror: none` if the mirror has none",
                      out.mirror));
  if (out.declared()) must_have_playbook(*mirror, "network.apt", "base", "");
}

}  // namespace muster
