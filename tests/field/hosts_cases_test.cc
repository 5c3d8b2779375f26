// Hosts that lived before muster came: what they have kept, and what step modules do about it.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "agent/core/step.h"
#include "agent/steps/step_modules.h"
#include "base/lower.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

namespace fs = std::filesystem;

// A fake machine on which a test says how some programs behave.
class Host : public FakeMachine {
 public:
  using Program = std::function<Result<Output>(const Command&)>;
  std::map<std::string, Program> programs;  // by name; one that answers an error leaves it to the fake

  Host() { put("/run/systemd/system/x", ""); }
  Result<Output> run(const Command& command) override {
    const auto it = programs.find(command.argv[0]);
    if (it == programs.end()) return FakeMachine::run(command);
    auto out = it->second(command);
    if (!out.ok()) return FakeMachine::run(command);
    calls.push_back(steps::join(command.argv, " "));
    return out;
  }
  CheckResult check(const std::string& module, const Json& params) {
    StepContext c = context();
    auto out = find_step_module(module)->check(c, params);
    INFO((out.ok() ? "" : out.error().message));
    REQUIRE(out.ok());
    return *out;
  }
  Status apply(const std::string& module, const Json& params) {
    StepContext c = context();
    return find_step_module(module)->apply(c, params);
  }
  size_t count(const std::string& part) const {
    return static_cast<size_t>(std::count_if(calls.begin(), calls.end(), [&](const std::string& call) {
      return call.find(part) != std::string::npos;
    }));
  }
  // Applied once and holding afterwards, and again without a call that `part` is in.
  void settles(const std::string& module, const Json& params, const std::string& part) {
    CHECK(check(module, params).holds == Holds::no);
    const Status applied = apply(module, params);
    INFO((applied.ok() ? "" : applied.error().message));
    REQUIRE(applied.ok());
    const CheckResult now = check(module, params);
    INFO(now.diff);
    CHECK(now.holds == Holds::yes);
    const size_t before = count(part);
    CHECK(apply(module, params).ok());
    CHECK(count(part) == before);
  }
};

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
const Result<Output> kToFake = fail(Code::not_found, "");

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// ---- apt and dpkg

// apt and dpkg as they are after a run that was cut off: apt refuses, dpkg goes on.
struct Interrupted {
  Host host;
  const std::string journal = "/var/lib/dpkg/updates/0001";

  Interrupted() {
    host.put("/var/lib/dpkg/status", field_input("dpkg-interrupted", "status"));
    host.put(journal, field_input("dpkg-interrupted", "journal"));
    host.programs["apt-get"] = [this](const Command& c) -> Result<Output> {
      const bool locks = has(c.argv, "install") && !has(c.argv, "--simulate");
      if ((locks || has(c.argv, "check")) && host.files().exists(journal))
        return Output{100, "", "E: dpkg was interrupted"};
      return kToFake;
    };
    host.programs["dpkg"] = [this](const Command& c) -> Result<Output> {
      if (!has(c.argv, "--configure") || !has(c.argv, "-a")) return Output{2, "", "dpkg: what?"};
      host.put("/var/lib/dpkg/status",
               replaced(host.get("/var/lib/dpkg/status") + host.get(journal), "ok unpacked", "ok installed"));
      REQUIRE(host.files().remove(journal).ok());
      return Output{0, "", ""};
    };
  }
};

FIELD_CASE("dpkg-interrupted") {
  Interrupted it;
  it.host.settles("package", {{"names", {"some-tool"}}}, "apt-get");
  CHECK(it.host.count("dpkg --force-confold --configure -a") == 1);
  CHECK_FALSE(it.host.files().exists(it.journal));
}

FIELD_CASE("dpkg-interrupted: what the journal says is only unpacked is not installed") {
  Interrupted it;
  it.host.settles("package", {{"names", {"zone-tables"}}}, "dpkg");
  CHECK(it.host.count(" install ") == 0);
  CHECK(it.host.check("package", {{"names", {"zone-tables=2026b-1"}}}).holds == Holds::yes);
}

FIELD_CASE("dpkg-interrupted: a run that is still at work is waited for") {
  Interrupted it;
  it.host.programs["apt-get"] = [&](const Command& c) -> Result<Output> {
    if (has(c.argv, "check")) REQUIRE(it.host.files().remove(it.journal).ok());  // the other one is done
    return kToFake;
  };
  it.host.settles("package", {{"names", {"some-tool"}}}, "apt-get");
  CHECK(it.host.count("dpkg --force-confold") == 0);
}

FIELD_CASE("dpkg-interrupted: without a journal dpkg is left alone") {
  Interrupted it;
  REQUIRE(it.host.files().remove(it.journal).ok());
  it.host.put("/var/lib/dpkg/updates/tmp.i", "");
  it.host.settles("package", {{"names", {"some-tool"}}}, "apt-get");
  CHECK(it.host.count("dpkg --force-confold") == 0);
}

FIELD_CASE("package-provided-name") {
  Host host;
  host.put("/var/lib/dpkg/status", field_input("package-provided-name", "status"));
  CHECK(host.check("package", {{"names", {"librail1"}}}).holds == Holds::yes);
  CHECK(host.apply("package", {{"names", {"librail1"}}}).ok());
  CHECK(host.count("apt-get") == 0);
  // A version is one of a package of that name.
  CHECK(host.check("package", {{"names", {"librail1=50.0-2"}}}).holds == Holds::no);
  // What is held is the package itself.
  const Json held = {{"names", {"librail1"}}, {"hold", true}};
  CHECK(host.check("package", held).holds == Holds::no);
  REQUIRE(host.apply("package", held).ok());
  CHECK(host.called("apt-mark hold librail1t64"));
  CHECK(host.check("package", held).holds == Holds::yes);
}

FIELD_CASE("package-provided-name: where apt has a package of that name, it is that one") {
  Host host;
  host.put("/var/lib/dpkg/status", field_input("package-provided-name", "status"));
  std::string offered;
  host.programs["apt-cache"] = [&](const Command&) -> Result<Output> { return Output{0, offered, ""}; };
  for (const char* name : {"mail-agent", "other-agent"}) {
    INFO(name);
    offered.clear();
    CHECK(host.check("package", {{"names", {name}}}).holds == Holds::yes);
    offered = fmt::format("Package: {}\nVersion: 7\n\n", name);
    CHECK(host.check("package", {{"names", {name}}}).holds == Holds::no);
  }
}

// ---- chrony

constexpr const char* kSources = "/etc/chrony/sources.d/muster.sources";

// The lines that name time servers in the files that chrony would read, ours apart.
std::vector<std::string> other_servers(const Host& host) {
  std::vector<std::string> out;
  const auto read = [&](const std::string& path) {
    for (const auto& line : split_lines(host.get(path))) {
      const size_t begin = line.find_first_not_of(" \t");
      const std::string word = lower(
          begin == std::string::npos ? "" : line.substr(begin, line.find_first_of(" \t", begin) - begin));
      if (word == "server" || word == "pool" || word == "peer" || word == "initstepslew") out.push_back(line);
    }
  };
  read("/etc/chrony/chrony.conf");
  for (const char* folder :
       {"/etc/chrony/conf.d", "/etc/chrony/sources.d", "/etc/chrony", "/etc/chrony/site.d"})
    for (const auto& name : host.files().list(folder))
      if (name != "muster.sources" && name != "chrony.conf") read(std::string(folder) + "/" + name);
  return out;
}

// The source folders that chrony.conf names.
std::vector<std::string> source_folders(const Host& host) {
  std::vector<std::string> out;
  for (const auto& line : split_lines(host.get("/etc/chrony/chrony.conf")))
    if (line.starts_with("sourcedir "))
      for (const auto& folder : split(line.substr(10), ' ')) out.push_back(folder);
  return out;
}

FIELD_CASE("chrony-other-servers") {
  Host host;
  host.put("/etc/chrony/chrony.conf", field_input("chrony-other-servers", "chrony.conf"));
  host.put("/etc/chrony/conf.d/site.conf", "server 198.51.100.5\n");
  host.put("/etc/chrony/site-a.conf", "\tpool pool3.example\n");
  host.put("/etc/chrony/sources.d/cloud.sources", "pool ntp.cloud.example iburst\n");
  host.put("/run/chrony-dhcp/eth0.sources", "server 198.51.100.6\n");
  host.put(kSources, "server 192.0.2.10 iburst\n");
  const Json params = {{"file", kSources}};
  REQUIRE(other_servers(host).size() == 8);
  host.settles("time_servers", params, "systemctl");
  CHECK(other_servers(host).empty());
  CHECK(source_folders(host) == std::vector<std::string>{"/etc/chrony/sources.d"});
  CHECK(host.get(kSources) == "server 192.0.2.10 iburst\n");
  CHECK(host.get("/run/chrony-dhcp/eth0.sources") == "server 198.51.100.6\n");
  CHECK(host.get("/etc/chrony/chrony.conf").find("\nrefclock PHC /dev/ptp0 poll 2\n") != std::string::npos);
  CHECK(host.get("/etc/chrony/chrony.conf").find("SERVER 198.51.100.1 iburst") != std::string::npos);
  CHECK(host.count("systemctl try-restart chrony.service") == 1);
}

FIELD_CASE("chrony-other-servers: a restart that was missed is made up for") {
  Host host;
  host.put("/etc/chrony/chrony.conf", "server 198.51.100.1\nsourcedir /etc/chrony/sources.d\n");
  host.broken = {"systemctl try-restart"};
  const Json params = {{"file", kSources}};
  CHECK_FALSE(host.apply("time_servers", params).ok());
  CHECK(other_servers(host).empty());
  host.broken.clear();
  host.settles("time_servers", params, "systemctl");
}

FIELD_CASE("chrony-run-folder") {
  Host host;
  host.put("/etc/chrony/chrony.conf", field_input("chrony-run-folder", "chrony.conf"));
  host.put("/etc/chrony/site.d/a.sources", "server 198.51.100.1\n");
  host.settles("time_servers", {{"file", kSources}}, "systemctl");
  CHECK(source_folders(host) == std::vector<std::string>{"/etc/chrony/site.d", "/etc/chrony/sources.d"});
  CHECK(other_servers(host).empty());
  CHECK(host.get("/etc/chrony/chrony.conf").find("\ndriftfile /var/lib/chrony/drift\n") != std::string::npos);
}

// ---- services

// systemctl of one running unit, which knows since when.
struct Unit {
  Host host;
  int64_t since = now();
  size_t restarts = 0;

  static int64_t now() {
    timespec t = {};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<int64_t>(t.tv_sec) * 1000000 + t.tv_nsec / 1000;
  }
  Unit() {
    host.programs["systemctl"] = [this](const Command& c) -> Result<Output> {
      if (c.argv[1] == "restart") ++restarts, since = now();
      if (c.argv[1] != "show") return Output{0, "", ""};
      return Output{
          0,
          fmt::format("Id=munge.service\nNames=munge.service\nLoadState=loaded\nActiveState=active\n"
                      "UnitFileState=enabled\nNeedDaemonReload=no\nActiveEnterTimestampMonotonic={}\n\n",
                      since),
          ""};
    };
    host.put("/etc/munge/munge.key", "key");
  }
  void date(std::chrono::minutes from_now) const {
    fs::last_write_time(host.files().real("/etc/munge/munge.key"),
                        fs::file_time_type::clock::now() + from_now);
  }
};
const Json kMunge = {{"names", {"munge"}}, {"enabled", true}, {"restart_for", {"/etc/munge/munge.key"}}};

FIELD_CASE("clock-file-from-future") {
  Unit unit;
  unit.date(std::chrono::minutes(120));
  unit.host.settles("service", kMunge, "systemctl restart");
  CHECK(unit.restarts == 1);
  CHECK(unit.host.get("/etc/munge/munge.key") == "key");
}

FIELD_CASE("clock-file-from-future: a file that is newer than the service is still a reason") {
  Unit unit;
  unit.date(std::chrono::minutes(-10));
  unit.since -= 5 * 60 * int64_t{1000000};
  CHECK(unit.host.check("service", kMunge).holds == Holds::yes);
  unit.since -= 10 * 60 * int64_t{1000000};
  unit.host.settles("service", kMunge, "systemctl restart");
  CHECK(unit.restarts == 1);
}

// ---- the kernel's command line

// GRUB's files, and update-grub evaluating them as the real one does.
struct Grub {
  Host host;
  std::string forced;  // what a script of /etc/grub.d adds behind everything

  Grub() {
    host.put("/usr/sbin/update-grub", "");
    host.put("/etc/default/grub", field_input("grub-default-wins", "grub"));
    host.programs["update-grub"] = [this](const Command&) -> Result<Output> {
      const std::string script =
          "set -e; R=" + host.files().real("") +
          "; . $R/etc/default/grub; for f in $R/etc/default/grub.d/*.cfg; do . $f; done; "
          "echo \"$GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT\"";
      Command shell{.argv = {"/bin/sh", "-c", script}};
      shell.env = {{"LC_ALL", "C"}};
      auto line = run_ok(*make_process(), shell);
      INFO((line.ok() ? "" : line.error().message));
      REQUIRE(line.ok());
      const std::string words = replaced(*line, "\n", "") + forced;
      host.put(
          "/boot/grub/grub.cfg",
          "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Debian' {\n\tlinux\t/vmlinuz root=UUID=1 ro  " +
              words + "\n}\nmenuentry 'recovery' {\n\tlinux\t/vmlinuz root=UUID=1 ro single\n}\n");
      return Output{0, "", ""};
    };
  }
  // As if the machine had started again with what the menu has.
  void restart() {
    const std::string menu = host.get("/boot/grub/grub.cfg");
    const size_t begin = menu.find("/vmlinuz"), end = menu.find('\n', begin);
    host.put("/proc/cmdline", "BOOT_IMAGE=" + menu.substr(begin, end - begin) + "\n");
    fs::remove_all(host.files().real("/run/muster"));
  }
  std::string running() const { return host.get("/proc/cmdline"); }
};

FIELD_CASE("grub-default-wins") {
  Grub grub;
  grub.host.put("/etc/default/grub.d/50-cloud.cfg", field_input("grub-default-wins", "cloud.cfg"));
  grub.host.put("/proc/cmdline", "root=UUID=1 ro net.ifnames=0 console=tty1 iommu=off\n");
  const Json params = {{"name", "tuning"}, {"present", {"iommu=pt", "nvme_core.io_timeout=4294967295"}}};
  REQUIRE(grub.host.apply("kernel_command_line", params).ok());
  CHECK(grub.host.files().exists("/run/muster/reboot/kernel_command_line-tuning"));
  grub.restart();
  const auto words = split(replaced(grub.running(), "\n", ""), ' ');
  CHECK(has(words, "iommu=pt"));
  CHECK_FALSE(has(words, "iommu=off"));
  CHECK_FALSE(has(words, "nvme-core.io_timeout=30"));
  for (const char* kept : {"net.ifnames=0", "console=tty1", "dyndbg=\"file", "a.c", "+p\""})
    CHECK(has(words, kept));
  CHECK(grub.host.check("kernel_command_line", params).holds == Holds::yes);
}

FIELD_CASE("grub-default-wins: keys that must not be there go from both") {
  Grub grub;
  grub.host.put("/etc/default/grub.d/50-cloud.cfg", field_input("grub-default-wins", "cloud.cfg"));
  grub.host.put("/proc/cmdline", "root=UUID=1 ro net.ifnames=0 console=tty1 iommu=off\n");
  const Json params = {{"absent", {"iommu", "net.ifnames=0", "console=tty0"}}};
  REQUIRE(grub.host.apply("kernel_command_line", params).ok());
  grub.restart();
  CHECK(grub.running().find("iommu") == std::string::npos);
  CHECK(grub.running().find("net.ifnames") == std::string::npos);
  CHECK(grub.running().find("console=tty1") != std::string::npos);
  CHECK(grub.host.check("kernel_command_line", params).holds == Holds::yes);
}

FIELD_CASE("grub-later-file") {
  Grub grub;
  grub.host.put("/etc/default/grub.d/99-site.cfg", field_input("grub-later-file", "site.cfg"));
  // As muster wrote it before.
  grub.host.put("/etc/default/grub.d/60-muster-base.cfg",
                "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX iommu=pt\"\n");
  grub.host.put("/proc/cmdline", "root=UUID=1 ro iommu=soft quiet iommu=off\n");
  const Json params = {{"present", {"iommu=pt"}}};
  REQUIRE(grub.host.apply("kernel_command_line", params).ok());
  CHECK_FALSE(grub.host.files().exists("/etc/default/grub.d/60-muster-base.cfg"));
  grub.restart();
  CHECK(grub.running().find("iommu=pt") != std::string::npos);
  CHECK(grub.running().find("iommu=off") == std::string::npos);
  CHECK(grub.running().find("iommu=soft") == std::string::npos);
  CHECK(grub.host.check("kernel_command_line", params).holds == Holds::yes);
}

FIELD_CASE("grub-later-file: what a script of /etc/grub.d sets is said and asks for no restart") {
  Grub grub;
  grub.forced = " iommu=off";
  grub.host.put("/proc/cmdline", "root=UUID=1 ro quiet iommu=off\n");
  const Json params = {{"present", {"iommu=pt"}}};
  CHECK(grub.host.apply("kernel_command_line", params).error().code == Code::conflict);
  CHECK_FALSE(grub.host.files().exists("/run/muster/reboot/kernel_command_line-base"));
  CHECK(grub.host.check("kernel_command_line", params).holds == Holds::no);
  grub.forced = "";
  CHECK(grub.host.apply("kernel_command_line", params).ok());
  grub.restart();
  CHECK(grub.host.check("kernel_command_line", params).holds == Holds::yes);
}

FIELD_CASE("grub-two-consoles") {
  Host host;
  host.add_system("nvme0n1", "OWN1");
  host.mount_entry("nvme0n1p2", "/", "ext4");
  host.put("/etc/muster/image.json", R"({"name":"cpu","digest":"sha256:1","slot":"b"})");
  host.put("/proc/cmdline", field_input("grub-two-consoles", "cmdline"));
  const Json params = {{"present", {"console=tty0", "console=ttyS0,115200"}}};
  CHECK(host.check("kernel_command_line", params).holds == Holds::yes);
  host.put("/proc/cmdline", "root=UUID=1 ro console=tty0 console=ttyS1,9600\n");
  host.put("/boot/efi/loader/entries/muster-b.conf",
           "options root=UUID=1 ro console=tty0 console=ttyS1,9600\n");
  REQUIRE(host.apply("kernel_command_line", params).ok());
  CHECK(host.get("/boot/efi/loader/entries/muster-b.conf") ==
        "options root=UUID=1 ro console=tty0 console=ttyS0,115200\n");
}

// ---- sysctl

// Each line of a case's table: the kernel has one value and another is declared.
void try_values(const std::string& name) {
  for (const auto& line : split_lines(field_input(name, "values"))) {
    if (line.empty() || line[0] == '#') continue;
    INFO(line);
    std::vector<std::string> f(1);
    for (const char c : line)
      if (c == '|' && f.size() < 4)
        f.emplace_back();
      else
        f.back() += c;
    REQUIRE(f.size() == 4);
    const bool same = f[3] == "same";
    Host host;
    const std::string path = "/proc/sys/" + replaced(f[0], ".", "/");
    host.put(path, f[1] + "\n");
    const Json params = {{"values", {{f[0], f[2]}}}};
    CHECK(host.check("sysctl", params).holds == Holds::no);  // there is no file yet
    REQUIRE(host.apply("sysctl", params).ok());
    // What is so is not written again; what is written stands behind it in this fake of a kernel's file.
    CHECK(host.get(path) == f[1] + "\n" + (same ? "" : f[2] + "\n"));
    host.put(path, f[1] + "\n");
    CHECK((host.check("sysctl", params).holds == Holds::yes) == same);
  }
}

FIELD_CASE("sysctl-normalised-values") { try_values("sysctl-normalised-values"); }
FIELD_CASE("sysctl-vector-beginning") { try_values("sysctl-vector-beginning"); }
FIELD_CASE("sysctl-vector-blanks") { try_values("sysctl-vector-blanks"); }
FIELD_CASE("sysctl-empty-text") { try_values("sysctl-empty-text"); }

FIELD_CASE("sysctl-normalised-values: a dot in an interface's name") {
  Host host;
  const std::string path = "/proc/sys/net/ipv4/conf/eth0.100/rp_filter";
  for (const char* key : {"net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"}) {
    INFO(key);
    host.put(path, "");
    REQUIRE(host.apply("sysctl", {{"values", {{key, 2}}}}).ok());
    CHECK(host.get(path) == "2\n");
  }
}

// What the last file in the order of systemd-sysctl says of a key.
std::string at_boot(const Host& host, const std::string& key) {
  std::string out;
  for (const auto& name : host.files().list("/etc/sysctl.d"))
    for (const auto& line : split_lines(host.get("/etc/sysctl.d/" + name)))
      if (line.starts_with(key + " = ")) out = line.substr(key.size() + 3);
  return out;
}

FIELD_CASE("sysctl-later-file") {
  Host host;
  host.put("/proc/sys/net/core/somaxconn", "");
  for (const char* file : {"90-site.conf", "99-sysctl.conf"})
    host.put(std::string("/etc/sysctl.d/") + file, field_input("sysctl-later-file", "site.conf"));
  host.put("/etc/sysctl.d/60-muster-base.conf", "# Written by muster.\nnet.core.somaxconn = 4096\n");
  host.settles("sysctl", {{"values", {{"net.core.somaxconn", 4096}}}}, "sysctl");
  CHECK(at_boot(host, "net.core.somaxconn") == "4096");
  CHECK_FALSE(host.files().exists("/etc/sysctl.d/60-muster-base.conf"));
}

FIELD_CASE("sysctl-no-file-yet") {
  Host host;
  host.put("/proc/sys/vm/swappiness", "10\n");
  host.settles("sysctl", {{"values", {{"vm.swappiness", 10}}}}, "sysctl");
  CHECK(at_boot(host, "vm.swappiness") == "10");
}

}  // namespace
}  // namespace muster::tests
