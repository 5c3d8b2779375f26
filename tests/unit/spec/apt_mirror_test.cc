// network.apt: the mirror of images and nodes.
#include "controller/spec/apt_origin.h"

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
  CHECK(security_beside("http://m.example/debian") == "http://m.example/debian-security");
  CHECK(security_beside("http://m.example/mydebian").empty());
  CHECK(security_beside("http://m.example/pool").empty());
  CHECK(security_beside("/debian").empty());
}

TEST_CASE("the security pocket follows from the mirror, or is said", "[spec][apt]") {
  const ParsedSpec beside = with_network("apt: { mirror: \"http://10.20.0.9/debian/\" }");
  CHECK(paths_of(beside).empty());
  CHECK(beside.spec.network.apt.mirror == "http://10.20.0.9/debian");
  CHECK(beside.spec.network.apt.security == "http://10.20.0.9/debian-security");
  CHECK(beside.spec.network.apt.updates);
  const ParsedSpec none =
      with_network("apt: { mirror: \"http://10.20.0.9/pool\", security_mirror: none, updates: false }");
  CHECK(paths_of(none).empty());
  CHECK(none.spec.network.apt.security == kNoMirror);
  CHECK_FALSE(none.spec.network.apt.updates);
  const ParsedSpec other = with_network(
      "apt: { mirror: \"http://10.20.0.9/debian\", security_mirror: \"http://10.20.0.8/sec/\" }");
  CHECK(other.spec.network.apt.security == "http://10.20.0.8/sec");
  CHECK(paths_of(with_network("apt: { mirror: \"http://10.20.0.9/pool\" }")) == Paths{"network.apt.mirror"});
  CHECK_FALSE(with_network("dhcp: managed").spec.network.apt.declared());
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
