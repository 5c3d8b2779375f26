// Hosts that lived before muster came: what their files hold already.
#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>

#include "agent/steps/step_modules.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

Status applied(FakeMachine& machine, const char* module, const Json& params) {
  StepContext context = machine.context();
  return find_step_module(module)->apply(context, params);
}
bool is_right(FakeMachine& machine, const char* module, const Json& params) {
  StepContext context = machine.context();
  const auto out = find_step_module(module)->check(context, params);
  REQUIRE(out.ok());
  return out->holds == Holds::yes;
}

}  // namespace

// The two steps of the playbook base.
FIELD_CASE("chrony-other-servers") {
  const std::string path = "/etc/chrony/chrony.conf", own = "include /etc/chrony/sources.d/muster.sources";
  const Json none = {{"path", path}, {"first_words", {"pool", "server", "peer"}}, {"ensure", "absent"}};
  const Json elsewhere = {{"path", path}, {"first_words", {"sourcedir"}}, {"line", own}};
  FakeMachine machine;
  machine.put(path,
              "confdir /etc/chrony/conf.d\npool 2.example.pool iburst\nserver 198.51.100.1\n  "
              "pool\tntp.example iburst\n"
              "\tpeer 198.51.100.2\n# server of the site\nsourcedir /run/chrony-dhcp\nsourcedir "
              "/etc/chrony/sources.d\n"
              "keyfile /etc/chrony/chrony.keys\n");
  CHECK_FALSE(is_right(machine, "line", none));
  CHECK_FALSE(is_right(machine, "line", elsewhere));
  for (int run = 0; run < 2; ++run) {
    REQUIRE(applied(machine, "line", none).ok());
    REQUIRE(applied(machine, "line", elsewhere).ok());
    CHECK(machine.get(path) ==
          "confdir /etc/chrony/conf.d\n# server of the site\n" + own + "\nkeyfile /etc/chrony/chrony.keys\n");
  }
  CHECK(is_right(machine, "line", none));
  CHECK(is_right(machine, "line", elsewhere));
  // One more that somebody adds.
  machine.put(path, machine.get(path) + "server\t198.51.100.9\n");
  CHECK_FALSE(is_right(machine, "line", none));
}

FIELD_CASE("clock-file-from-future") {
  FakeMachine machine;
  machine.units["munge.service"] = {};
  machine.put("/etc/munge/munge.key", "key");
  const Json params = {{"names", {"munge"}}, {"enabled", true}, {"restart_for", {"/etc/munge/munge.key"}}};
  REQUIRE(applied(machine, "service", params).ok());
  const timespec ahead[2] = {{std::time(nullptr) + 7200, 0}, {std::time(nullptr) + 7200, 0}};
  REQUIRE(utimensat(AT_FDCWD, machine.files().real("/etc/munge/munge.key").c_str(), ahead, 0) == 0);
  CHECK(is_right(machine, "service", params));
}

FIELD_CASE("sysctl-normalised-values") {
  const auto holds = [](const std::string& kernel, const std::string& declared) {
    FakeMachine machine;
    machine.put("/proc/sys/net/core/x", "\n");
    const Json params = {{"values", {{"net.core.x", declared}}}};
    REQUIRE(applied(machine, "sysctl", params).ok());
    machine.put("/proc/sys/net/core/x", kernel + "\n");
    return is_right(machine, "sysctl", params);
  };
  CHECK(holds("6817-6819,9421", "6819,6817-6818,9421"));
  CHECK(holds("100-102", "100,101,102"));
  CHECK(holds("4096", "0x1000"));
  CHECK(holds("4096\t87380\t16777216", "4096 87380 0x1000000"));
  CHECK(holds("bbr", "bbr"));
  CHECK_FALSE(holds("6817-6819", "6817-6818"));
  CHECK_FALSE(holds("4096", "4097"));
  CHECK_FALSE(holds("4096\t87380", "4096"));
  CHECK_FALSE(holds("cubic", "bbr"));
}

// GRUB's own files, sourced by a shell as grub-mkconfig does.
FIELD_CASE("grub-default-wins") {
  FakeMachine machine;
  machine.put("/etc/default/grub",
              "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"iommu=soft\"\n");
  machine.put("/etc/default/grub.d/50-image.cfg",
              "GRUB_CMDLINE_LINUX_DEFAULT=\"console=tty1 iommu=off splash mitigations=off\"\n");
  machine.put("/run/systemd/system/.keep", "");
  machine.put("/proc/cmdline", "root=UUID=1 ro iommu=off\n");
  (void)applied(machine, "kernel_command_line",
                {{"name", "tuning"}, {"present", {"iommu=pt"}}, {"absent", {"splash"}}});
  const auto process = make_process();
  const auto menu =
      process->run({.argv = {"sh", "-ec",
                             ". $0/etc/default/grub; for f in $0/etc/default/grub.d/*.cfg; do . $f; done; "
                             "echo $GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT",
                             machine.files().real("/")}});
  REQUIRE(menu.ok());
  CAPTURE(menu->err);
  CHECK(menu->out == "iommu=pt console=tty1 mitigations=off\n");
}

}  // namespace muster::tests
