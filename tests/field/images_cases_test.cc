// Images have nothing that one machine alone may have; each node gets its own.
#include <set>
#include <sstream>

#include "agent/image/image_job.h"
#include "agent/image/layout.h"
#include "controller/image/customize.h"
#include "sys/os.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

constexpr uint64_t kMiB = 1 << 20;

std::vector<std::string> lines_of(const std::string& name, const std::string& file) {
  std::vector<std::string> out;
  std::istringstream in(field_input(name, file));
  for (std::string line; std::getline(in, line);) out.push_back(line);
  REQUIRE_FALSE(out.empty());
  return out;
}

// A tree as packages leave it, and the scripts that run in its builder. Programs are tried in `bin` first.
struct Tree {
  TempDir dir;
  Files files{dir.path("")};
  Tree() {
    for (const char* folder : {"/tree/etc/ssh", "/tree/var/log"})
      REQUIRE(files.make_directories(folder).ok());
    // Of the tree's own only this is called: whether a unit is enabled, and what always works.
    program("chroot", "case \"$*\" in *is-enabled*) exit 1;; esac");
  }
  void program(const std::string& name, const std::string& body) {
    REQUIRE(files.write("/bin/" + name, "#!/bin/sh\n" + body + "\n", 0755).ok());
  }
  void put(const std::string& path) { REQUIRE(files.write("/tree/" + path, "secret\n", 0600).ok()); }
  void run(const std::string& script, const std::string& argument) {
    REQUIRE(files.write("/script", script, 0755).ok());
    const auto done = make_process()->run({.argv = {"/bin/sh", dir.path("script"), argument},
                                           .env = {{"PATH", dir.path("bin") + ":/usr/bin:/bin"}}});
    REQUIRE(done.ok());
    INFO(done->err);
    REQUIRE(done->exit_code == 0);
  }
  bool has(const std::string& path) { return files.exists("/tree/" + path); }
  std::string text(const std::string& path) { return files.read_line("/tree/" + path); }
};

// Root of a node with this machine id.
void seed(const Files& root, const std::string& machine_id) {
  wire::ImageJob job;
  job.hostname = "work01";
  job.address_cidr = "10.40.0.21/24";
  job.mac = "b8:ce:f6:40:00:01";
  const ImageManifest manifest;
  const SeedRequest request{job, manifest, "/dev/null", make_layout(8192 * kMiB, kMiB, 0).value(),
                            "a", false,    {}};
  REQUIRE(seed_root(root, request, machine_id).ok());
}

std::string own_keys() {
  for (const auto& file : builtin_files())
    if (file.path == "/usr/lib/muster/own-keys") return file.content;
  return "";
}

}  // namespace

FIELD_CASE("image-identity") {
  for (const std::string& script : {customize_script({}, "/o"), finish_script({}, {})}) {
    Tree tree;
    const auto paths = lines_of("image-identity", "tree.txt");
    for (const auto& path : paths) tree.put(path);
    tree.put("etc/machine-id");
    tree.put("etc/nvme/discovery.conf");  // is not one machine's
    tree.put("etc/ssl/certs/other.pem");
    REQUIRE(tree.files.symlink("ssl-cert-snakeoil.pem", "/tree/etc/ssl/certs/12ab34cd.0").ok());
    REQUIRE(tree.files.symlink("other.pem", "/tree/etc/ssl/certs/56ef7890.0").ok());
    tree.run(script, tree.dir.path("tree"));
    for (const auto& path : paths) {
      CAPTURE(path);
      CHECK(tree.text(path).find("secret") == std::string::npos);
    }
    CHECK(tree.text("etc/machine-id").empty());
    CHECK_FALSE(tree.files.read_link("/tree/etc/ssl/certs/12ab34cd.0").ok());
    CHECK(tree.has("etc/ssl/certs/56ef7890.0"));
    CHECK(tree.has("etc/nvme/discovery.conf"));
  }
}

FIELD_CASE("nvme-host-of-each") {
  const auto ids = lines_of("nvme-host-of-each", "ids.txt");
  REQUIRE(ids.size() == 2);
  const auto host = [](const std::string& machine_id) {
    const TempDir dir;
    const Files root(dir.path(""));
    REQUIRE(root.make_directories("/etc/nvme").ok());
    seed(root, machine_id);
    const std::string id = root.read_line("/etc/nvme/hostid");
    CHECK(id.size() == 36);
    CHECK(root.read_line("/etc/nvme/hostnqn") == "nqn.2014-08.org.nvmexpress:uuid:" + id);
    return id;
  };
  CHECK(host(ids[0]) != host(ids[1]));
  CHECK(host(ids[0]) == host(ids[0]));
  const TempDir bare;  // an image without the package gets no such files
  seed(Files(bare.path("")), ids[0]);
  CHECK_FALSE(Files(bare.path("")).exists("/etc/nvme"));
  CHECK_FALSE(Files(bare.path("")).exists("/etc/iscsi"));
}

FIELD_CASE("iscsi-name-in-image") {
  Tree tree;
  tree.put("etc/iscsi/initiatorname.iscsi");
  tree.run(finish_script({}, {}), tree.dir.path("tree"));
  CHECK(tree.text("etc/iscsi/initiatorname.iscsi") == "GenerateName=yes");
  std::set<std::string> names;
  for (const auto& id : lines_of("iscsi-name-in-image", "ids.txt")) {
    const Files root(tree.dir.path("tree"));
    seed(root, id);
    const std::string text = root.read("/etc/iscsi/initiatorname.iscsi").value_or("");
    CHECK(text.find("\nInitiatorName=iqn.1993-08.org.debian:01:") != std::string::npos);
    CHECK(text.find("GenerateName") == std::string::npos);
    names.insert(text);
  }
  CHECK(names.size() == 2);
}

FIELD_CASE("snakeoil-in-image") {
  const std::string key = lines_of("snakeoil-in-image", "missing.txt").front();
  Tree tree;
  tree.program("make-ssl-cert", "echo \"$*\" >> " + tree.dir.path("made") +
                                    "\nmkdir -p \"$R/etc/ssl/private\" \"$R/etc/ssl/certs\"\n"
                                    "echo k > \"$R/etc/ssl/private/ssl-cert-snakeoil.key\"\n"
                                    "echo c > \"$R/etc/ssl/certs/ssl-cert-snakeoil.pem\"");
  const std::string script = "R=\"$1\"; export R\n" + own_keys();
  REQUIRE_FALSE(own_keys().empty());
  for (int boot = 0; boot < 2; ++boot) tree.run(script, tree.dir.path("tree"));
  CHECK(tree.has(key));
  CHECK(tree.dir.read("made") == "generate-default-snakeoil --force-overwrite\n");
  CHECK(customize_script({}, "/o").find("'muster-own-keys.service'") != std::string::npos);
}

}  // namespace muster::tests
