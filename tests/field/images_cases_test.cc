// What an image keeps of what packages made.
#include <filesystem>

#include "base/os.h"
#include "controller/image/customize.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"

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

}  // namespace muster::tests
