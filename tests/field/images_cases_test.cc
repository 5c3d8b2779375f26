// What an image and an adopted host keep of what packages and providers made.
#include <filesystem>

#include "base/os.h"
#include "controller/image/customize.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"
#include "tests/unit/plan/shipped.h"

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

// The effect at the next boot is cloud-init's own: cfg.d is read in the order of its names, the last one
// counts.
FIELD_CASE("cloud-init-etc-hosts") {
  using namespace muster::testing;
  PlannerInput in = shipped_input(
      "cluster: gaggle\n"
      "network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed }, bmc: { cidr: 10.20.1.0/24 } }\n"
      "images: { node: { recipe: debian-12, kernel: cloud } }\n"
      "nodes:\n"
      "  - { name: node01, role: cpu, power: { driver: redfish, address: 10.20.1.11, secret: bmc },\n"
      "      mac: \"52:54:00:00:00:01\", address: 10.20.0.11, image: node,\n"
      "      disks: { os: { match: { serial: \"A*\", count: 1 }, policy: format-if-blank } } }\n"
      "  - { name: login01, role: cpu, address: 10.20.0.31,\n"
      "      adopt: { host: 10.20.0.31, host_key: \"SHA256:8zUNzGaXp/zEX4x58o3O4XaGdmlLXNNeDG2mht9i13E\" } "
      "}\n"
      "roles: { cpu: { playbooks: [ base ] } }\n");
  in.nodes["login01"].mode = wire::Mode::adopted;
  const auto writes = [&in](RequestKind kind, const std::string& node) {
    in.request.kind = kind;
    in.request.nodes = {node};
    const Plan plan = planned_of(in);
    const Action* configure = plan.find(node + "/configure");
    REQUIRE(configure != nullptr);
    std::string text;
    for (const Json& step : configure->params["steps"])
      if (step["module"] == "file" && step["params"]["path"] == "/etc/cloud/cloud.cfg.d/99-muster.cfg")
        text = step["params"]["content"];
    return text;
  };
  CHECK(writes(RequestKind::adopt, "login01").find("manage_etc_hosts: false\n") != std::string::npos);
  CHECK(writes(RequestKind::up, "node01").empty());
}

}  // namespace muster::tests
