// Distribution and Release: everything in which the distributions differ that images are made of and nodes
// run. No other C++ source names a distribution or one of its releases (tests/tidy_test.cc). Pure functions
// and constant values.
#pragma once

#include <string>
#include <vector>

namespace muster {

inline constexpr const char* kSourcesList = "/etc/apt/sources.list";

struct Distribution {
  std::string id;     // ID in /etc/os-release, and `distribution` in a recipe: "debian"
  std::string title;  // "Debian"
  // The archive's keys: the same path on a builder and on a node, and the package that has it.
  std::string keyring, keyring_package;
  std::string keyring_note;  // what to add where the builder's own archive may lack that package; else ""
  // How the path of a full mirror ends, and that of its security updates, which lie beside it: "/debian",
  // "/debian-security". security_folder is "" if the pocket SUITE-security is in the mirror itself.
  std::string mirror_folder, security_folder;
  std::string example_mirror;           // for messages: "http://mirror.example/debian"
  std::vector<std::string> components;  // of a recipe that names none, the first is on every mirror: {"main"}
  std::string firmware_component;       // "non-free-firmware"; "": firmware comes with the kernel's packages
  std::vector<std::string> rolling;     // suites without the pockets -updates and -security: "sid"
};

struct Release {
  std::string codename;        // VERSION_CODENAME: "trixie"
  std::string version;         // VERSION_ID: "13"
  std::string distribution;    // Distribution::id
  std::string loader_package;  // the package that has systemd-boot's program
  std::string sources_file;    // the apt source of the release's own packages, as its installer writes it
  bool supported = false;      // there are recipes and playbooks for it
  bool firmware_component = false;  // the release has Distribution::firmware_component
};

// /etc/os-release, without quotes. A key that is not there is "".
struct OsRelease {
  std::string id, codename, pretty_name;
};
OsRelease parse_os_release(const std::string& text);

const std::vector<Distribution>& distributions();
// Null: unknown. The results live as long as the program.
const Distribution* find_distribution(const std::string& id);
const Release* find_release(const std::string& codename);
// Null if it is none of these, or a derivative that has kept a codename.
const Release* find_release(const OsRelease& system);
// Distribution::title of that id; the id itself if it is unknown.
std::string distribution_title(const std::string& id);
// Their ids: "debian, ubuntu", for messages.
std::string known_distributions();
// That of a recipe without the key `distribution`, as all were before there was a second one.
const Distribution& default_distribution();
// The recipe of its newest supported release: "debian-13".
std::string default_recipe();
// "Debian 12 and 13, Ubuntu 22.04 and 24.04": for help and messages.
std::string supported_releases();
// True if the suite has the pockets -updates and -security; rolling suites have neither.
bool has_pockets(const Distribution& distribution, const std::string& suite);
// The other distribution of which this URL is a full mirror, by how its path ends; null: none.
const Distribution* mirror_of_another(const Distribution& distribution, const std::string& url);

}  // namespace muster
