#include "base/distribution.h"

#include <algorithm>

#include "base/split.h"

namespace muster {
namespace {

const std::vector<Release>& releases() {
  static const std::vector<Release> all = {{.codename = "buster",
                                            .version = "10",
                                            .distribution = "debian",
                                            .loader_package = "systemd",
                                            .sources_file = kSourcesList},
                                           {.codename = "bullseye",
                                            .version = "11",
                                            .distribution = "debian",
                                            .loader_package = "systemd",
                                            .sources_file = kSourcesList},
                                           {.codename = "bookworm",
                                            .version = "12",
                                            .distribution = "debian",
                                            .loader_package = "systemd-boot-efi",
                                            .sources_file = kSourcesList,
                                            .supported = true,
                                            .firmware_component = true},
                                           {.codename = "trixie",
                                            .version = "13",
                                            .distribution = "debian",
                                            .loader_package = "systemd-boot-efi",
                                            .sources_file = kSourcesList,
                                            .supported = true,
                                            .firmware_component = true},
                                           {.codename = "forky",
                                            .version = "14",
                                            .distribution = "debian",
                                            .loader_package = "systemd-boot-efi",
                                            .sources_file = kSourcesList,
                                            .firmware_component = true},
                                           {.codename = "focal",
                                            .version = "20.04",
                                            .distribution = "ubuntu",
                                            .loader_package = "systemd",
                                            .sources_file = kSourcesList},
                                           {.codename = "jammy",
                                            .version = "22.04",
                                            .distribution = "ubuntu",
                                            .loader_package = "systemd",
                                            .sources_file = kSourcesList,
                                            .supported = true},
                                           {.codename = "noble",
                                            .version = "24.04",
                                            .distribution = "ubuntu",
                                            .loader_package = "systemd-boot-efi",
                                            .sources_file = "/etc/apt/sources.list.d/ubuntu.sources",
                                            .supported = true}};
  return all;
}

// In the order of the table, the oldest first.
std::vector<std::string> supported_versions(const std::string& distribution) {
  std::vector<std::string> out;
  for (const Release& one : releases())
    if (one.supported && one.distribution == distribution) out.push_back(one.version);
  return out;
}

// A value may be in single or double quotes; os-release(5).
std::string unquoted(const std::string& value) {
  const bool quoted = value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
  return quoted ? value.substr(1, value.size() - 2) : value;
}

}  // namespace

OsRelease parse_os_release(const std::string& text) {
  OsRelease out;
  for (const std::string& line : split_lines(text)) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = line.substr(0, equals), value = unquoted(line.substr(equals + 1));
    if (key == "ID") out.id = value;
    if (key == "VERSION_CODENAME") out.codename = value;
    if (key == "PRETTY_NAME") out.pretty_name = value;
  }
  return out;
}

const std::vector<Distribution>& distributions() {
  static const std::vector<Distribution> all = {
      {.id = "debian",
       .title = "Debian",
       .keyring = "/usr/share/keyrings/debian-archive-keyring.gpg",
       .keyring_package = "debian-archive-keyring",
       .keyring_note = "",
       .mirror_folder = "/debian",
       .security_folder = "/debian-security",
       .example_mirror = "http://mirror.example/debian",
       .components = {"main"},
       .firmware_component = "non-free-firmware",
       .rolling = {"sid", "unstable", "experimental"}},
      {.id = "ubuntu",
       .title = "Ubuntu",
       .keyring = "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
       .keyring_package = "ubuntu-keyring",
       .keyring_note = "Debian 12 has no such package; that of Debian 13 can be installed there",
       .mirror_folder = "/ubuntu",
       .security_folder = "",
       .example_mirror = "http://mirror.example/ubuntu",
       .components = {"main", "universe"},
       .firmware_component = "",
       .rolling = {}}};
  return all;
}

const Distribution* find_distribution(const std::string& id) {
  const auto& all = distributions();
  const auto it = std::find_if(all.begin(), all.end(), [&](const Distribution& d) { return d.id == id; });
  return it == all.end() ? nullptr : &*it;
}

const Release* find_release(const std::string& codename) {
  const auto& all = releases();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const Release& r) { return r.codename == codename; });
  return it == all.end() ? nullptr : &*it;
}

const Release* find_release(const OsRelease& system) {
  const Release* found = find_release(system.codename);
  return found && found->distribution == system.id ? found : nullptr;
}

std::string distribution_title(const std::string& id) {
  const Distribution* known = find_distribution(id);
  return known ? known->title : id;
}

std::string known_distributions() {
  std::string out;
  for (const Distribution& one : distributions()) out += (out.empty() ? "" : ", ") + one.id;
  return out;
}

const Distribution& default_distribution() { return distributions().front(); }

std::string default_recipe() {
  const std::string& id = default_distribution().id;
  return id + "-" + supported_versions(id).back();
}

std::string supported_releases() {
  std::string out;
  for (const Distribution& one : distributions()) {
    out += (out.empty() ? "" : ", ") + one.title;
    const auto versions = supported_versions(one.id);
    for (const std::string& version : versions)
      out += (&version == &versions.front() ? " " : " and ") + version;
  }
  return out;
}

bool has_pockets(const Distribution& distribution, const std::string& suite) {
  const auto& rolling = distribution.rolling;
  return std::find(rolling.begin(), rolling.end(), suite) == rolling.end();
}

const Distribution* mirror_of_another(const Distribution& distribution, const std::string& url) {
  for (const Distribution& other : distributions())
    if (other.id != distribution.id && url.ends_with(other.mirror_folder)) return &other;
  return nullptr;
}

}  // namespace muster
