// network.apt: the mirror of images and nodes.
#include "controller/spec/apt_origin.h"

#include <algorithm>

#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/catch.h"

using namespace muster;

namespace {

ParsedSpec with_network(const std::string& more, const std::string& playbooks = "base") {
  return parse_spec(
      "cluster: x\nnetwork: { provisioning: { cidr: 10.20.0.0/24 }, bmc: { cidr: 10.20.1.0/24 }, " + more +
      " }\nimages: { cpu: { recipe: debian-13 } }\n"
      "nodes:\n  - { name: a, role: r, image: cpu, mac: \"52:54:00:00:00:01\", power: { driver: redfish, "
      "address: 10.20.1.11, secret: bmc }, disks: { os: { match: { serial: S1 } } } }\n"
      "roles: { r: { playbooks: [ " +
      playbooks + " ] } }\n");
}

std::vector<std::string> paths_of(const ParsedSpec& parsed) {
  std::vector<std::string> out;
  for (const auto& e : parsed.errors) out.push_back(e.path);
  return out;
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("a mirror is a URL of the web with a host, and nothing that is secret", "[spec][apt]") {
  CHECK(mirror_host("http://10.20.0.1:3142/debian") == "10.20.0.1");
  CHECK(mirror_host("https://mirror.example/pool/debian") == "mirror.example");
  CHECK(mirror_host("http://mirror.example") == "mirror.example");
  for (const std::string bad :
       {"", "mirror.example/debian", "ftp://mirror.example/debian", "file:/srv/apt", "http:///debian",
        "http://user:secret@mirror.example/debian", "http://mirror.example/a b", "http://mirror.example/a\nb",
        "http://mirror.example/debian?x=1", "http://mirror.example/debian#x", "http://mirror.example/../x",
        "http://mirror.example:0/debian", "http://mirror.example:99999/debian",
        "http://mirror.example/[trusted=yes]", "http://mirror.example\\debian"}) {
    CAPTURE(bad);
    CHECK(mirror_host(bad).empty());
    CHECK(url_host(bad).empty());
  }
}

TEST_CASE("the security pocket follows from the mirror, or is said", "[spec][apt]") {
  const ParsedSpec beside = with_network("apt: { mirror: \"http://10.20.0.9/debian/\" }");
  CHECK(paths_of(beside).empty());
  CHECK(beside.spec.network.apt_of("debian").mirror == "http://10.20.0.9/debian");
  CHECK(beside.spec.network.apt_of("debian").security == "http://10.20.0.9/debian-security");
  CHECK(beside.spec.network.apt_of("debian").updates);
  const ParsedSpec none =
      with_network("apt: { mirror: \"http://10.20.0.9/pool\", security_mirror: none, updates: false }");
  CHECK(paths_of(none).empty());
  CHECK(none.spec.network.apt_of("debian").security == kNoMirror);
  CHECK_FALSE(none.spec.network.apt_of("debian").updates);
  const ParsedSpec other = with_network(
      "apt: { mirror: \"http://10.20.0.9/debian\", security_mirror: \"http://10.20.0.8/sec/\" }");
  CHECK(other.spec.network.apt_of("debian").security == "http://10.20.0.8/sec");
  CHECK(paths_of(with_network("apt: { mirror: \"http://10.20.0.9/pool\" }")) == Paths{"network.apt.mirror"});
  CHECK(with_network("dhcp: managed").spec.network.apt.empty());
}

TEST_CASE("what is no mirror is an error with its place", "[spec][apt]") {
  for (const std::string bad : {"http://u:p@10.20.0.9/debian", "10.20.0.9/debian", "none"}) {
    CAPTURE(bad);
    CHECK(paths_of(with_network("apt: { mirror: \"" + bad + "\" }")) == Paths{"network.apt.mirror"});
    if (bad == "none") continue;
    CHECK(paths_of(with_network("apt: { mirror: \"http://10.20.0.9/debian\", security_mirror: \"" + bad +
                                "\" }")) == Paths{"network.apt.security_mirror"});
  }
  CHECK_FALSE(paths_of(with_network("apt: { security_mirror: none }")).empty());
  CHECK_FALSE(paths_of(with_network("apt: { mirror: \"http://10.20.0.9/debian\", suite: sid }")).empty());
  CHECK_FALSE(paths_of(with_network("apt: { mirror: \"http://10.20.0.9/debian\", updates: 2 }")).empty());
  CHECK(paths_of(with_network("apt: { mirror: \"http://10.20.0.9/debian\" }", "ssh")) ==
        Paths{"network.apt"});
}

TEST_CASE("a mirror with a name needs a name server", "[spec][apt]") {
  const std::string named = "apt: { mirror: \"http://mirror.example/debian\" }";
  CHECK(paths_of(with_network(named)) == Paths{"network.apt.mirror"});
  CHECK(paths_of(with_network(named + ", dns: [ 10.20.0.53 ]")).empty());
  CHECK(paths_of(with_network(named + ", proxy: \"http://10.20.0.1:3128\"")).empty());  // asks for them
  CHECK(paths_of(with_network("apt: { mirror: \"http://10.20.0.9/debian\", security_mirror: "
                              "\"http://sec.example/debian-security\" }")) ==
        Paths{"network.apt.security_mirror"});
}

TEST_CASE("each distribution has a mirror of its own", "[spec][apt]") {
  const ParsedSpec both = with_network(
      "apt: { mirror: \"http://10.20.0.9/debian\", ubuntu: { mirror: \"http://10.20.0.9/pool\", updates: "
      "false } }");
  CHECK(paths_of(both).empty());
  CHECK(both.spec.network.apt_of("debian").mirror == "http://10.20.0.9/debian");
  const AptMirror ubuntu = both.spec.network.apt_of("ubuntu");
  CHECK(ubuntu.mirror == "http://10.20.0.9/pool");
  CHECK(ubuntu.security == "http://10.20.0.9/pool");
  CHECK_FALSE(ubuntu.updates);
  const ParsedSpec alone = with_network(
      "apt: { ubuntu: { mirror: \"http://10.20.0.9/ubuntu\", security_mirror: \"http://10.20.0.8/s\" } }");
  CHECK(paths_of(alone).empty());
  CHECK_FALSE(alone.spec.network.apt_of("debian").declared());
  CHECK(alone.spec.network.apt_of("ubuntu").security == "http://10.20.0.8/s");
  CHECK(paths_of(with_network("apt: { ubuntu: { mirror: \"http://10.20.0.9/ubuntu\" } }", "ssh")) ==
        Paths{"network.apt"});
}

TEST_CASE("a mirror that is signed again has its public key in the spec, and no other text", "[spec][apt]") {
  const std::string begin = "-----BEGIN PGP PUBLIC KEY BLOCK-----",
                    end = "-----END PGP PUBLIC KEY BLOCK-----";
  const auto declared = [](const std::string& key) {
    return with_network("apt: { ubuntu: { mirror: \"http://10.20.0.9/pool\", key: \"" + key + "\" } }");
  };
  const ParsedSpec signed_again = declared(begin + "\\n\\nmQ==\\n" + end + "\\n\\n");
  CHECK(paths_of(signed_again).empty());
  CHECK(signed_again.spec.network.apt_of("ubuntu").key == begin + "\n\nmQ==\n" + end + "\n");
  CHECK(signed_again.spec.network.apt_of("debian").key.empty());
  for (const std::string bad : {"/etc/key.gpg", begin.c_str(), "-----BEGIN PGP PRIVATE KEY BLOCK-----"}) {
    CAPTURE(bad);
    CHECK(paths_of(declared(bad)) == Paths{"network.apt.ubuntu.key"});
  }
  CHECK_FALSE(paths_of(with_network("apt: { key: \"" + begin + end + "\" }")).empty());
}

TEST_CASE("a mirror of another distribution, or none where one is needed, is an error with its place",
          "[spec][apt]") {
  CHECK(paths_of(with_network("apt: { mirror: \"http://10.20.0.9/ubuntu/\" }")) ==
        Paths{"network.apt.mirror"});
  CHECK(paths_of(with_network("apt: { ubuntu: { mirror: \"http://10.20.0.9/debian\" } }")) ==
        Paths{"network.apt.ubuntu.mirror"});
  CHECK_FALSE(paths_of(with_network("apt: { ubuntu: { updates: false } }")).empty());
  CHECK_FALSE(paths_of(with_network("apt: { mint: { mirror: \"http://10.20.0.9/x\" } }")).empty());
  CHECK(paths_of(with_network("apt: { ubuntu: { mirror: \"http://mirror.example/ubuntu\" } }")) ==
        Paths{"network.apt.ubuntu.mirror"});  // a name needs a name server
}

namespace {

// With one image, of a recipe that is called debian-13 whatever it is of.
ParsedSpec built_by(const std::string& builder, const KnownRecipe& recipe, const std::string& network) {
  const std::string text = "cluster: x\nnetwork: { provisioning: { cidr: 10.20.0.0/24 }" + network +
                           " }\nimages: { cpu: { recipe: " + recipe.name +
                           " } }\nroles: { r: { playbooks: [ base ] } }\n";
  SpecNames names;
  names.recipes = {recipe};
  names.builder = builder;
  return parse_spec(text, names);
}

bool has_path(const ParsedSpec& parsed, const std::string& path) {
  const auto paths = paths_of(parsed);
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

}  // namespace

TEST_CASE("an image whose packages come from nowhere is known before it is built", "[spec][apt]") {
  KnownRecipe noble{"mine", "ubuntu"};
  const std::string at = "images.cpu.recipe",
                    mirror = ", apt: { ubuntu: { mirror: \"http://10.20.0.9/ubuntu\" } }";
  CHECK(has_path(built_by("debian", noble, ""), at));
  CHECK_FALSE(has_path(built_by("debian", noble, mirror), at));
  CHECK_FALSE(has_path(built_by("ubuntu", noble, ""), at));
  CHECK_FALSE(has_path(built_by("", noble, ""), at));  // the builder is not known
  noble.mirror = true;
  CHECK_FALSE(has_path(built_by("debian", noble, ""), at));
  CHECK(has_path(built_by("fedora", {"plain"}, ""), at));
}

TEST_CASE("images have the distribution of their recipes, where these are known", "[spec]") {
  const ParsedSpec known = built_by("", {"mine", "ubuntu"}, "");
  const Distribution* ubuntu = find_distribution("ubuntu");
  CHECK(known.spec.images.at("cpu").distribution == ubuntu);
  NodeSpec node;
  CHECK(known.spec.distribution_of(node) == nullptr);
  node.image = "cpu";
  CHECK(known.spec.distribution_of(node) == ubuntu);
  Spec later = with_network("dhcp: managed").spec;
  CHECK(later.images.at("cpu").distribution == nullptr);
  use_recipes(later, {{"debian-12", "debian"}, {"debian-13", "ubuntu"}});
  CHECK(later.images.at("cpu").distribution == ubuntu);
  // One that cannot be read is an error where it is used, and nowhere else.
  KnownRecipe broken{"mine"};
  broken.error = "mine.yaml:1:1: bad";
  const ParsedSpec bad = built_by("debian", broken, "");
  CHECK(has_path(bad, "images.cpu.recipe"));
  CHECK(bad.spec.images.at("cpu").distribution == nullptr);
  SpecNames names;
  names.recipes = {broken, {"debian-13"}};
  const std::string text = "images: { cpu: { recipe: debian-13 } }\n";
  CHECK_FALSE(has_path(parse_spec(text, names), "images.cpu.recipe"));
}
