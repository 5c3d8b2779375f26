// One boot by the boot loader's entry: what is refused, what is written, and that the boot after it is the
// old system's again, whatever happens.
#include "agent/boot/boot_once.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "agent/boot/kexec.h"
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

constexpr const char* kArguments = "quiet muster.node=n1 muster.token=t0k3n muster.give_up=600";
constexpr const char* kEsp = "1b2c3d4e-0000-4000-8000-00000000abcd";

std::string wide(const std::string& ascii) {
  std::string out;
  for (const char c : ascii) out += std::string{c, '\0'};
  return out + std::string(2, '\0');
}

// A host whose kernel is locked down, with a boot loader that boots as GRUB 2.06 of Debian 12 or systemd-boot
// 252 do: the entry for one boot is forgotten before it is started, where that can be written.
struct Host : Process {
  TempDir dir;
  Files files{dir.path("")};
  std::vector<std::string> programs;
  std::string layers, type = "ext2", relative = "/boot/grub";  // of the file system with /boot/grub
  bool env_is_kept = true;                                     // grub-reboot works
  bool grub_writes = true, grub_reads = true;                  // its environment, at boot
  std::string fallback;                                        // of the last boot
  bool mount_fails = false, systemd_fails = false, restarts = false;

  Host() {
    REQUIRE(files.make_directories("/run/systemd/system"));
    put("/usr/sbin/muster-agent", "");
    put("/sys/kernel/kexec_loaded", "0\n");
    put("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    put("/proc/meminfo", "MemAvailable:   1500000 kB\n");
    put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    put("/sys/class/net/enp1s0/device/vendor", "0x1af4\n");
    REQUIRE(files.make_directories("/sys/firmware/efi/efivars"));
  }
  void put(const std::string& path, const std::string& text) const { REQUIRE(files.write(path, text)); }
  std::string get(const std::string& path) const { return files.read(path).value_or(""); }
  static std::string variable(const std::string& name) {
    return "/sys/firmware/efi/efivars/" + name + "-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
  }
  void set(const std::string& name, const std::string& value) const {
    put(variable(name), std::string("\7\0\0\0", 4) + value);
  }
  void has_grub() const {
    put("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-6.1.0-18-amd64 root=UUID=1 ro quiet\n");
    put("/boot/grub/grub.cfg",
        "if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n   set next_entry=\n   save_env "
        "next_entry\n"
        "   set boot_once=true\nelse\n   set default=\"0\"\nfi\nmenuentry 'Debian' {}\n"
        "if [ -f  ${config_directory}/custom.cfg ]; then\n  source ${config_directory}/custom.cfg\nfi\n");
    set_env("");
  }
  void has_systemd_boot() const {
    put("/proc/cmdline", "root=PARTLABEL=muster-root-a ro\n");
    set("LoaderInfo", wide("systemd-boot 252.30-1~deb12u2"));
    set("LoaderFeatures", std::string("\x3f\0\0\0\0\0\0\0", 8));
    set("LoaderDevicePartUUID", wide("1B2C3D4E-0000-4000-8000-00000000ABCD"));
  }

  // The next boot's entry; "" the usual one.
  std::string boot() {
    if (files.exists(variable("LoaderEntryOneShot"))) {
      REQUIRE(files.remove(variable("LoaderEntryOneShot")));
      return get("/run/muster-esp/loader/entries/muster-once.conf");
    }
    return boot_grub();
  }
  // As the head of grub.cfg in Debian 12, then custom.cfg. save_env may fail, or say that it wrote and not do
  // so: a later read of the block shows the same.
  std::string boot_grub() {
    std::map<std::string, std::string> vars{{"default", "0"}, {"next_entry", next_entry()}};
    if (!vars["next_entry"].empty()) {
      vars["default"] = vars["next_entry"];
      vars["next_entry"] = "";
      if (grub_writes) set_env("next_entry=\n");
      vars["boot_once"] = "true";
    }
    if (get("/boot/grub/custom.cfg").find("source $prefix/muster-once/entry.cfg") == std::string::npos)
      return "";
    const std::string entry = run_grub(get("/boot/grub/muster-once/entry.cfg"), vars);
    fallback = vars["fallback"];
    return vars["default"] == "muster-once" ? entry : "";
  }
  // The commands that the entry's file has; what it puts into the menu.
  std::string run_grub(const std::string& script, std::map<std::string, std::string>& vars) const {
    std::istringstream lines(script);
    std::vector<bool> runs;
    std::string menu;
    bool in_entry = false;
    for (std::string line; std::getline(lines, line);) {
      line.erase(0, line.find_first_not_of(' '));
      const bool now = std::all_of(runs.begin(), runs.end(), [](bool b) { return b; });
      if (in_entry) {
        if (now) menu += line + "\n";
        in_entry = line != "}";
      } else if (std::smatch m;
                 std::regex_match(line, m, std::regex(R"re(if \[ "\$\{(\w+)\}" = "([^"]*)" \]; then)re"))) {
        runs.push_back(vars[m[1]] == m[2]);
      } else if (line == "else") {
        runs.back() = !runs.back();
      } else if (line == "fi") {
        runs.pop_back();
      } else if (line.starts_with("menuentry ")) {
        in_entry = true;
        if (now) menu += line + "\n";
      } else if (std::smatch set; std::regex_match(line, set, std::regex(R"(set (\w+)=(\S*))"))) {
        if (now) vars[set[1]] = set[2];
      } else {
        REQUIRE(line == "load_env next_entry");
        if (now && grub_reads && env_has("next_entry=")) vars["next_entry"] = next_entry();
      }
    }
    CHECK(runs.empty());
    return menu;
  }
  bool env_has(const std::string& text) const {
    return get("/boot/grub/grubenv").find("\n" + text) != std::string::npos;
  }
  std::string next_entry() const {
    std::istringstream lines(get("/boot/grub/grubenv"));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("next_entry=")) return line.substr(11);
    return "";
  }
  void set_env(const std::string& text) const {
    std::string block = "# GRUB Environment Block\n" + text;
    block.resize(1024, '#');
    put("/boot/grub/grubenv", block);
  }
  void unset() const { set_env(""); }
  bool left_anything() const {
    return files.exists("/boot/grub/muster-once") || files.exists("/run/muster-esp/muster-once") ||
           files.exists("/run/muster-esp/loader/entries/muster-once.conf") || boot_once_armed(files) ||
           !next_entry().empty() || get("/boot/grub/custom.cfg").find("muster") != std::string::npos;
  }
  bool called(const std::string& program) const {
    return std::any_of(programs.begin(), programs.end(),
                       [&](const std::string& p) { return p.starts_with(program); });
  }

  Result<Output> run(const Command& c) override {
    std::string line;
    for (const auto& word : c.argv) line += (line.empty() ? "" : " ") + word;
    programs.push_back(line);
    const std::string& name = c.argv[0];
    if (name == "ip")
      return Output{
          0,
          c.argv[2] == "route"
              ? R"([{"dst":"10.20.0.1","dev":"enp1s0","prefsrc":"10.20.0.12"}])"
              : R"([{"ifname":"enp1s0","link_type":"ether","mtu":1500,"address":"52:54:00:20:00:02","addr_info":[{"family":"inet","local":"10.20.0.12","prefixlen":24}]}])",
          ""};
    if (name == "grub-probe") {
      const std::string& what = c.argv[1];
      return Output{0,
                    (what == "--target=abstraction" ? layers
                     : what == "--target=fs"        ? type
                                                    : "abcd-0123") +
                        "\n",
                    ""};
    }
    if (name == "grub-mkrelpath") return Output{0, relative + "\n", ""};
    if (name == "grub-reboot") {
      if (env_is_kept) set_env("next_entry=" + c.argv[1] + "\n");
      return Output{0, "", ""};
    }
    if (name == "grub-editenv") {
      if (c.argv[2] == "unset") unset();
      return Output{0, next_entry().empty() ? "" : "next_entry=" + next_entry() + "\n", ""};
    }
    if (name == "mount") return Output{mount_fails ? 32 : 0, "", mount_fails ? "mount: wrong fs type" : ""};
    if (name == "umount") return Output{0, "", ""};
    if (name == "systemctl") {
      restarts = !systemd_fails && c.argv.back() == "reboot.target";
      return Output{systemd_fails ? 1 : 0, "", ""};
    }
    return Output{4, "", "the running kernel rejected the new kernel: Operation not permitted\n"};
  }
  Result<Json> prepare() {
    const wire::KexecJob job = {
        "http://10.20.0.1:7480", "/ram/cpu/vmlinuz", sha256("KERNEL"),    "/ram/cpu/initrd",
        sha256("INITRD"),        kArguments,         "52:54:00:20:00:02", "",
        "10.20.0.12/24"};
    return prepare_kexec({files, *this,
                          [](const std::string&, const std::string& path) -> Result<std::string> {
                            return std::string(path == "/ram/cpu/vmlinuz" ? "KERNEL" : "INITRD");
                          },
                          [this] { return cancelled; }},
                         job);
  }
  bool cancelled = false;
};

void denied(Host& host) {
  const auto ready = host.prepare();
  REQUIRE_FALSE(ready.ok());
  CHECK(ready.error().code == Code::denied);
  CHECK_FALSE(host.left_anything());
  CHECK_FALSE(host.called("systemctl"));
}

}  // namespace

TEST_CASE("GRUB: one boot into the RAM system, and the one after it is the old system's", "[kexec][once]") {
  Host host;
  host.has_grub();
  SECTION("locked down") {}
  SECTION("kexec is switched off") {
    host.put("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
    host.put("/proc/sys/kernel/kexec_load_disabled", "1\n");
  }
  SECTION("no kexec") {
    host.put("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
    REQUIRE(host.files.remove("/sys/kernel/kexec_loaded"));
  }
  SECTION("the kernel refuses") {
    host.put("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
  }
  const auto ready = host.prepare();
  INFO((ready.ok() ? "" : ready.error().message));
  REQUIRE(ready.ok());
  CHECK((*ready)["way"] == "grub, one boot");
  CHECK_FALSE(host.restarts);
  REQUIRE(leave_by_kexec(host.files, host).ok());
  CHECK(host.restarts);
  const std::string entry = host.boot();
  CHECK(entry.find("linux /boot/grub/muster-once/vmlinuz 'quiet' 'muster.node=n1' 'muster.token=t0k3n'") !=
        std::string::npos);
  CHECK(entry.find("'muster.give_up=600'") != std::string::npos);  // the RAM system goes back by itself
  CHECK(entry.find("'muster.mac=52:54:00:20:00:02'") != std::string::npos);
  CHECK(entry.find("search --no-floppy --fs-uuid --set=root abcd-0123") != std::string::npos);
  CHECK(host.fallback == "0");
  CHECK(host.get("/boot/grub/muster-once/vmlinuz") == "KERNEL");
  CHECK(host.get("/boot/grub/muster-once/initrd") == "INITRD");
  CHECK(host.boot().empty());
  // The old system is back: its agent takes away what is left.
  forget_kexec(host.files, host);
  CHECK_FALSE(host.left_anything());
}

TEST_CASE("a GRUB that cannot take its entry back starts the old system, at every boot", "[kexec][once]") {
  Host host;
  host.has_grub();
  REQUIRE(host.prepare().ok());
  SECTION("the firmware does not write") { host.grub_writes = false; }
  SECTION("what it wrote cannot be read") { host.grub_reads = false; }
  CHECK(host.boot().empty());
  CHECK(host.boot().empty());
  forget_kexec(host.files, host);
  CHECK_FALSE(host.left_anything());
}

TEST_CASE("the entry for one boot is in no other boot's menu", "[kexec][once]") {
  Host host;
  host.has_grub();
  REQUIRE(host.prepare().ok());
  const std::string script = host.get("/boot/grub/muster-once/entry.cfg");
  const auto menu = [&](std::map<std::string, std::string> vars) { return host.run_grub(script, vars); };
  host.set_env("next_entry=\n");
  CHECK_FALSE(menu({{"boot_once", "true"}, {"default", "muster-once"}}).empty());
  // Chosen by default, or another entry for one boot, or not chosen at all.
  CHECK(menu({{"default", "muster-once"}}).empty());
  CHECK(menu({{"boot_once", "true"}, {"default", "memtest"}}).empty());
  CHECK(menu({{"default", "0"}}).empty());
}

TEST_CASE("the token is root's alone, and in no process list", "[kexec][once]") {
  Host host;
  host.has_grub();
  host.put("/boot/grub/custom.cfg", "set superusers=root\npassword_pbkdf2 root grub.pbkdf2.x\n");
  std::filesystem::permissions(host.dir.path("boot/grub/custom.cfg"), std::filesystem::perms(0600));
  REQUIRE(host.prepare().ok());
  const auto mode = [&](const std::string& path) {
    return static_cast<unsigned>(std::filesystem::status(host.dir.path(path)).permissions()) & 0777;
  };
  CHECK(mode("boot/grub/muster-once") == 0700);
  CHECK(mode("boot/grub/muster-once/entry.cfg") == 0600);
  CHECK(mode("boot/grub/custom.cfg") == 0600);
  CHECK(host.get("/boot/grub/custom.cfg").find("t0k3n") == std::string::npos);
  for (const auto& program : host.programs) CHECK(program.find("t0k3n") == std::string::npos);
  // An operator's custom.cfg is theirs again, to the byte.
  forget_boot_once(host.files, host);
  CHECK(host.get("/boot/grub/custom.cfg") == "set superusers=root\npassword_pbkdf2 root grub.pbkdf2.x\n");
  CHECK(mode("boot/grub/custom.cfg") == 0600);
  CHECK_FALSE(host.left_anything());
}

TEST_CASE("a GRUB that would start it for ever, or not at all, is left untouched", "[kexec][once]") {
  Host host;
  host.has_grub();
  SECTION("on LVM") { host.layers = "lvm"; }
  SECTION("on md") { host.layers = "diskfilter mdraid1x"; }
  SECTION("encrypted") { host.layers = "cryptodisk luks"; }
  SECTION("on btrfs") { host.type = "btrfs"; }
  SECTION("on ZFS") { host.type = "zfs"; }
  SECTION("a configuration that knows no single boot") {
    host.put("/boot/grub/grub.cfg", "source ${config_directory}/custom.cfg\n");
  }
  SECTION("a configuration without custom.cfg") { host.put("/boot/grub/grub.cfg", "save_env next_entry\n"); }
  SECTION("no environment") { REQUIRE(host.files.remove("/boot/grub/grubenv")); }
  SECTION("an environment elsewhere") {
    REQUIRE(host.files.remove("/boot/grub/grubenv"));
    REQUIRE(host.files.symlink("/boot/efi/EFI/x/grubenv", "/boot/grub/grubenv"));
  }
  SECTION("a configuration that does not say which boot is the one") {
    std::string config = host.get("/boot/grub/grub.cfg");
    config.erase(config.find("set boot_once=true"), 18);
    host.put("/boot/grub/grub.cfg", config);
  }
  SECTION("an environment of another size") { host.put("/boot/grub/grubenv", "# GRUB Environment Block\n"); }
  SECTION("an environment that is none") { host.put("/boot/grub/grubenv", std::string(1024, '#')); }
  SECTION("an environment that is not written") { host.env_is_kept = false; }
  SECTION("installed, and not what started this system") { host.put("/proc/cmdline", "root=/dev/vda1\n"); }
  SECTION("a path that GRUB would take apart") { host.relative = "/boot it"; }
  denied(host);
}

TEST_CASE("under Secure Boot neither way is gone: what would be installed would not start", "[kexec][once]") {
  Host host;
  if (GENERATE(true, false))
    host.has_grub();
  else
    host.has_systemd_boot();
  host.put("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
           std::string("\6\0\0\0\1", 5));
  denied(host);
  CHECK(host.programs.empty());
}

TEST_CASE("systemd-boot: one boot into the RAM system", "[kexec][once]") {
  Host host;
  host.has_systemd_boot();
  const auto ready = host.prepare();
  INFO((ready.ok() ? "" : ready.error().message));
  REQUIRE(ready.ok());
  CHECK((*ready)["way"] == "systemd-boot, one boot");
  CHECK(host.called("mount -t vfat -o umask=0077,nosuid,nodev,noexec /dev/disk/by-partuuid/" +
                    std::string(kEsp)));
  CHECK(host.programs.back() == "umount /run/muster-esp");
  REQUIRE(leave_by_kexec(host.files, host).ok());
  CHECK(host.restarts);
  const std::string entry = host.boot();
  CHECK(entry.find("linux /muster-once/vmlinuz\ninitrd /muster-once/initrd\n") != std::string::npos);
  CHECK(entry.find(std::string("options ") + kArguments + " muster.ip=10.20.0.12/24") != std::string::npos);
  CHECK(host.boot().empty());
  forget_kexec(host.files, host);
  CHECK_FALSE(host.left_anything());
}

TEST_CASE("a systemd-boot that cannot is left untouched", "[kexec][once]") {
  Host host;
  host.has_systemd_boot();
  SECTION("an old one") { host.set("LoaderFeatures", std::string("\7\0\0\0\0\0\0\0", 8)); }
  SECTION("one that does not say where it is") {
    REQUIRE(host.files.remove(Host::variable("LoaderDevicePartUUID")));
  }
  SECTION("a partition that is none") { host.set("LoaderDevicePartUUID", wide("../../sda1")); }
  SECTION("a partition that does not mount") { host.mount_fails = true; }
  denied(host);
}

TEST_CASE("a full boot partition is refused for want of room, not for the folder it does not take",
          "[kexec][once]") {
  Host host;
  host.has_systemd_boot();
  // A file system without a free block. Paths of the agent end in the test's own folder; the path whose room
  // is looked at does not.
  REQUIRE(host.files.make_directories("/proc/self/fd"));
  REQUIRE(host.files.symlink("/proc/self/fd", "/run/muster-esp"));
  const auto ready = host.prepare();
  REQUIRE_FALSE(ready.ok());
  CHECK(ready.error().code == Code::denied);
  CHECK(ready.error().message.find("is free on the boot loader's partition") != std::string::npos);
  CHECK_FALSE(host.left_anything());
}

TEST_CASE("what was armed and is withdrawn leaves nothing", "[kexec][once]") {
  Host host;
  const bool grub = GENERATE(true, false);
  grub ? host.has_grub() : host.has_systemd_boot();
  SECTION("before it was armed") {
    host.cancelled = true;
    CHECK(host.prepare().error().code == Code::cancelled);
  }
  SECTION("afterwards") {
    REQUIRE(host.prepare().ok());
    CHECK(boot_once_armed(host.files));
    forget_kexec(host.files, host);
  }
  SECTION("systemd does not restart") {
    REQUIRE(host.prepare().ok());
    host.systemd_fails = true;
    CHECK_FALSE(leave_by_kexec(host.files, host).ok());
  }
  CHECK(host.boot().empty());
  CHECK_FALSE(host.left_anything());
}

TEST_CASE("another program's entry for one boot is its own", "[kexec][once]") {
  Host host;
  host.has_grub();
  host.set_env("next_entry=memtest\n");
  forget_kexec(host.files, host);
  CHECK(host.next_entry() == "memtest");
  CHECK(host.programs.empty());
}
