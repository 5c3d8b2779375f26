// What an image and an adopted host keep of what packages and providers made.
#include <filesystem>

#include "base/os.h"
#include "controller/image/customize.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"
#include "tests/unit/plan/fixture.h"

namespace muster::tests {

namespace {

std::string script_named(const std::string& path) {
  for (const auto& file : builtin_files())
    if (file.path == path) return file.content;
  return "";
}

}  // namespace

FIELD_CASE("image-identity") {
  const TempDir tree, tools;
  const Files files(tree.path(""));
  const std::vector<std::string> baked = {"/etc/nvme/hostnqn", "/etc/nvme/hostid",
                                          "/etc/ssl/private/ssl-cert-snakeoil.key",
                                          "/etc/ssh/ssh_host_ed25519_key", "/var/lib/systemd/random-seed"};
  for (const auto& path : baked) REQUIRE(files.write(path, "of the build\n").ok());
  REQUIRE(files.write("/etc/iscsi/initiatorname.iscsi", "InitiatorName=iqn.of.the.build\n").ok());
  REQUIRE(files.make_directories("/boot").ok());
  for (const char* folder : {"/var/lib/dpkg", "/var/cache/debconf", "/var/log", "/var"})
    REQUIRE(files.make_directories(folder).ok());
  tools.write("chroot", "#!/bin/sh\nexit 0\n");
  std::filesystem::permissions(tools.path("chroot"), std::filesystem::perms::owner_all);
  tools.write("finish.sh", finish_script(ImageRecipe{}, {}));
  auto process = make_process();
  const auto ran = process->run({.argv = {"sh", tools.path("finish.sh"), tree.path("")},
                                 .env = {{"PATH", tools.path("") + ":/usr/sbin:/usr/bin:/sbin:/bin"}}});
  REQUIRE(ran.ok());
  CAPTURE(ran->err);
  REQUIRE(ran->exit_code == 0);
  for (const auto& path : baked) {
    CAPTURE(path);
    CHECK_FALSE(files.exists(path));
  }
  CHECK(files.read("/etc/iscsi/initiatorname.iscsi").value_or("") == "GenerateName=yes\n");
  // Each node makes its own, and has it before what uses it.
  CHECK(script_named("/usr/lib/muster/own-identity").find("/etc/nvme/hostnqn") != std::string::npos);
  CHECK(customize_script(ImageRecipe{}, "/overlay").find("muster-own-identity.service") != std::string::npos);
}

// The effect at the next boot is cloud-init's own: cfg.d is read in the order of its names, the last one counts.
FIELD_CASE("cloud-init-etc-hosts") {
  using namespace muster::testing;
  PlannerInput in = with_nodes(installed);
  for (auto& node : in.spec.nodes) {
    if (node.name != "node03") continue;
    node.adopt = {"10.20.0.13", 22, "root", "SHA256:key"};
    node.image.clear();
    node.mac.clear();
    node.power = {};
    node.disks.erase("os");
  }
  in.nodes["node03"].mode = wire::Mode::adopted;
  in.nodes["node03"].image_digest.clear();
  in.request.kind = RequestKind::adopt;
  in.request.nodes = {"node03"};
  const auto writes = [](const PlannerInput& input, const std::string& node) {
    std::string text;
    for (const Json& step : planned(input).find(node + "/configure")->params["steps"])
      if (step["module"] == "file" && step["params"]["path"] == "/etc/cloud/cloud.cfg.d/99-muster.cfg")
        text = step["params"]["content"];
    return text;
  };
  CHECK(writes(in, "node03").find("manage_etc_hosts: false\n") != std::string::npos);
  PlannerInput imaged = with_nodes(installed);
  imaged.request.kind = RequestKind::up;
  CHECK(writes(imaged, "node03").empty());
}

}  // namespace muster::tests
