// The spec's storage sections: levels of arrays, and what the site serves.
#include "controller/engines/engine.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/catch.h"

using namespace muster;

namespace {

// `section` is line 22.
std::string spec(const std::string& section, int fast = 3,
                 const std::string& playbooks = "storage-external") {
  return R"(cluster: gaggle
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc:          { cidr: 10.20.1.0/24 }
users: { ops: { keys: [ "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMoH8DjInlSv4hPRVSzZ9rzTDZGMk3ztdsEUCsjTLYnl ops@desk" ] } }
images:
  gpu: { recipe: debian-12 }
nodes:
  - name: gpu[01-02]
    role: gpu
    power: { driver: redfish, address: "10.20.1.{n+10}", secret: bmc }
    mac: "52:54:00:aa:00:{n}"
    image: gpu
    disks:
      os:   { match: { model: "Micron*", count: 1 } }
      fast: { match: { model: "PM9A3*", count: )" +
         std::to_string(fast) + R"( }, policy: format-if-blank }
  - { name: login, role: login, image: gpu, power: { driver: redfish, address: 10.20.1.99, secret: bmc }, mac: "52:54:00:bb:00:01", disks: { os: { match: { serial: S1 } } } }
roles:
  gpu: { playbooks: [ )" +
         playbooks + R"( ] }
  login: { playbooks: [ ] }
storage:
  data: { )" +
         section + R"( }
)";
}

std::string errors_of(const std::string& text) {
  std::string out;
  for (const SpecError& error : parse_spec(text).errors) out += to_string(error, "f") + "\n";
  return out;
}

bool says(const std::string& errors, const std::string& what) {
  INFO(errors);
  return errors.find(what) != std::string::npos;
}

const std::string kNfsHome = "engine: external, fstype: nfs4, source: \"10.0.0.5:/export\", mount: /data";

}  // namespace

TEST_CASE("storage: MooseFS' master is a declared node that holds its data", "[spec][takeover]") {
  const auto named = [](const std::string& server) {
    return errors_of(spec("engine: moosefs, disks: fast, copies: 2, mount: /data, server: " + server, 3,
                          "storage-shared"));
  };
  CHECK(named("gpu02").empty());
  CHECK(says(named("gpu09"), "storage.data.server"));
  CHECK(says(named("login"), "login holds no data"));
  CHECK(says(errors_of(spec("engine: ceph, disks: fast, mount: /data, server: gpu02", 3, "storage-ceph")),
             "has no effect for engine 'ceph'"));
}

TEST_CASE("each level of an array has its fewest drives, said at the level", "[spec]") {
  const std::map<std::string, int> fewest = {
      {"raid0", 1}, {"raid1", 2}, {"raid5", 3}, {"raid6", 4}, {"raid10", 4}};
  for (const auto& [level, count] : fewest) {
    const std::string section = "engine: local, disks: fast, level: " + level + ", mount: /data";
    CHECK(errors_of(spec(section, count, "")).empty());
    if (count == 1) continue;
    const std::string few = errors_of(spec(section, count - 1, ""));
    CHECK(says(few, "f:22:46: storage.data.level: " + level + " needs at least " + std::to_string(count) +
                        " drives, but group 'fast' of gpu01 has " + std::to_string(count - 1)));
    CHECK(is_redundant(level));
  }
  CHECK_FALSE(is_redundant("raid0"));
  const std::string server = "engine: nfs, server: gpu02, disks: fast, level: raid6, mount: /data";
  CHECK(errors_of(spec(server, 4, "")).empty());
  CHECK(
      says(errors_of(spec(server, 3, "")), "raid6 needs at least 4 drives, but group 'fast' of gpu02 has 3"));
  CHECK(
      says(errors_of(spec("engine: local, disks: fast, level: raid4, mount: /data")), "storage.data.level"));
}

TEST_CASE("storage of the site is read, and mounted by those with its playbook", "[spec]") {
  const ParsedSpec parsed = parse_spec(spec(kNfsHome + ", options: \"nconnect=8,ro\", nodes: { role: gpu }"));
  for (const auto& error : parsed.errors) FAIL_CHECK(to_string(error, "f"));
  REQUIRE(parsed.spec.storage.size() == 1);
  const StorageSpec& data = parsed.spec.storage.front();
  CHECK(data.fstype == "nfs4");
  CHECK(data.source == "10.0.0.5:/export");
  CHECK(data.options == "nconnect=8,ro");
  CHECK_FALSE(data.writable);
  for (const auto& node : parsed.spec.nodes) {
    CHECK(mounts(data, node) == (node.role == "gpu"));
    CHECK_FALSE(holds_data(data, node));
    CHECK_FALSE(is_member(data, node));
  }
  CHECK(parse_spec(spec(kNfsHome + ", writable: true")).spec.storage.front().writable);
  for (const char* good :
       {"fstype: nfs4, source: \"[fd00::1]:/e\"", "fstype: nfs4, source: \"nas.site.org:/\"",
        "fstype: lustre, source: \"10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch/sub\"",
        "fstype: ceph, source: \"hpc@11111111-2222-8333-a444-555555555555.fs=/gpu\", options: "
        "\"mon_addr=10.0.0.1:3300/10.0.0.2:3300,secretfile=/etc/ceph/k\""})
    CHECK(errors_of(spec(std::string("engine: external, mount: /data, ") + good)) == "");
}

TEST_CASE("storage of the site: what it needs, what it has not, and where that stands", "[spec]") {
  CHECK(
      says(errors_of(spec("engine: external, mount: /data")), "f:22:9: storage.data: missing key 'fstype'"));
  CHECK(
      says(errors_of(spec("engine: external, mount: /data")), "f:22:9: storage.data: missing key 'source'"));
  CHECK_FALSE(says(errors_of(spec(kNfsHome)), "missing key"));
  CHECK(says(errors_of(spec("engine: local, mount: /data")), "f:22:9: storage.data: missing key 'disks'"));
  for (const std::string key : {"disks: fast", "server: gpu01", "level: raid0", "fs: xfs", "copies: 2"})
    CHECK(says(errors_of(spec(kNfsHome + ", " + key)),
               key.substr(0, key.find(':')) + ": has no effect for engine 'external'"));
  for (const std::string key : {"fstype: nfs4", "source: x", "options: ro", "writable: true"})
    CHECK(says(errors_of(spec("engine: local, disks: fast, mount: /data, " + key)),
               key.substr(0, key.find(':')) + ": has no effect for engine 'local'"));
  CHECK(says(errors_of(spec("engine: external, fstype: nfs3, source: \"a:/b\", mount: /data")),
             "storage.data.fstype"));
  for (const char* bad : {"10.0.0.5/export", "10.0.0.5:export", "10.0.0.5:/a b", "-o:/x", "h:/%n", "h:/*"})
    CHECK(says(
        errors_of(spec(std::string("engine: external, fstype: nfs4, mount: /data, source: \"") + bad + "\"")),
        "storage.data.source"));
  CHECK(says(errors_of(spec("engine: external, fstype: ceph, mount: /data, source: \"hpc@.fs=/\"")),
             "USER@FSID.FILESYSTEM=/PATH"));
}

TEST_CASE("storage of the site: each file system has its form of source, to the last character", "[spec]") {
  const auto is_source = [](const std::string& fstype, const std::string& source) {
    const std::string errors =
        errors_of(spec("engine: external, mount: /data, fstype: " + fstype + ", source: \"" + source + "\""));
    return !says(errors, "storage.data.source");
  };
  const std::string fsid = "hpc@11111111-2222-8333-a444-555555555555";
  for (const char* good : {"n:/", "N.a_b-c:/x/y.z+@_-", "[::ffff:10.0.0.5]:/e"})
    CHECK(is_source("nfs4", good));
  for (const char* bad : {"", ":/x", "n:", "n:x", "n/:x", "[]:/e", "[fd00::1:/e", "[fd00::g]:/e",
                          "[fd00::1]/e", "n:/x:y", "n:/x=y", "_n:/x", "n@m:/x"})
    CHECK_FALSE(is_source("nfs4", bad));
  for (const std::string& good : {fsid + ".fs=/", fsid + ".-=/a@b", fsid + "...=/x"})
    CHECK(is_source("ceph", good));
  for (const std::string& bad :
       {fsid + ".=/", fsid + ".fs=", fsid + ".fs/", fsid + "fs=/", fsid + ".fs=/a=b", "@" + fsid.substr(4),
        fsid.substr(0, fsid.size() - 1) + ".fs=/", fsid + "5.fs=/", "hpc@A" + fsid.substr(5) + ".fs=/",
        fsid.substr(0, 12) + fsid.substr(13) + ".fs=/"})
    CHECK_FALSE(is_source("ceph", bad));
  for (const char* good : {"n:/s", "10.0.0.5@o2ib,10.1.0.5@tcp:/s-1/", "fd00::5@tcp:/s/a@b", "a::/s"})
    CHECK(is_source("lustre", good));
  for (const char* bad :
       {"", "/s", ":/s", "n/s", "n:/", "n:/s.x", "n:/s//b c", "@n:/s", "n/m:/s", "n:/s/a:b"})
    CHECK_FALSE(is_source("lustre", bad));
}

TEST_CASE("storage of the site: options that cannot be meant", "[spec]") {
  for (const std::string bad :
       {"secret=AQ==", "ro,secret=AQ==", "bg", "rw noatime", "ro;x", "bind", "noauto,ro"})
    CHECK(says(errors_of(spec(kNfsHome + ", options: \"" + bad + "\"")), "storage.data.options"));
  CHECK(says(errors_of(spec(kNfsHome + ", options: ro, writable: true")), "storage.data.options"));
  CHECK(errors_of(spec(kNfsHome + ", options: \"soft,timeo=100\", writable: true")) == "");
}

TEST_CASE("storage of the site that no node would mount is an error at its role", "[spec]") {
  CHECK(says(errors_of(spec(kNfsHome + ", nodes: { role: login }")),
             "no node would mount this storage: role 'login' does not have the playbook 'storage-external'"));
  CHECK(says(errors_of(spec(kNfsHome + ", nodes: { role: gpus }")), "did you mean 'gpu'?"));
  CHECK(says(errors_of(spec("engine: external, fstype: nfs4, source: \"a:/b\", mount: /home")),
             "storage.data.mount"));
  // A playbook of the user's own may mount it.
  CHECK(errors_of(spec(kNfsHome + ", nodes: { role: login }", 3, "")) == "");
}
