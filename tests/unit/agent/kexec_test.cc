// Handing over to the RAM system: what is refused before anything is touched, what is loaded, and when it
// goes.
#include "agent/boot/kexec.h"

#include <algorithm>
#include <filesystem>

#include "agent/boot/ram_init.h"
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// A running system with a kernel that remembers what was loaded, and a systemd that knows units only
// after it has read them.
struct System : Process {
  TempDir dir;
  Files files{dir.path("")};
  std::string loaded;  // command line of what is loaded; "" nothing
  std::string kernel, initrd, known;
  std::vector<std::string> programs;
  std::map<std::string, std::string> served = {{"/ram/cpu/vmlinuz", "KERNEL"}, {"/ram/cpu/initrd", "INITRD"}};
  // What `ip route get` shows of the way to the controller.
  std::string route = R"([{"dst":"10.20.0.1","dev":"enp1s0","prefsrc":"10.20.0.12"}])";
  bool refuses = false, left = false, systemd_fails = false, cancelled = false;
  std::function<void(const std::string& path)> while_fetching = [](const std::string&) {};

  System() {
    REQUIRE(files.make_directories("/run/systemd/system"));
    put("/usr/sbin/muster-agent", "");
    put("/sys/kernel/kexec_loaded", "0\n");
    put("/proc/sys/kernel/kexec_load_disabled", "0\n");
    put("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    put("/proc/meminfo", "MemTotal:  2000000 kB\nMemAvailable:   1500000 kB\n");
    put("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
    put("/sys/class/net/enp1s0/device/vendor", "0x1af4\n");
  }
  void put(const std::string& path, const std::string& text) const { REQUIRE(files.write(path, text)); }
  void secure_boot(char on) const {
    put("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        std::string("\6\0\0\0", 4) + on);
  }

  Result<Output> run(const Command& c) override {
    programs.push_back(c.argv[0] + " " + c.argv.back());
    if (c.argv[0] == "ip")
      return Output{
          0,
          c.argv[2] == "route"
              ? route
              : R"([{"ifname":"enp1s0","link_type":"ether","mtu":1500,"address":"52:54:00:20:00:02","addr_info":[{"family":"inet","local":"10.20.0.12","prefixlen":24}]}])",
          ""};
    if (c.argv[0] == "systemctl") {
      if (systemd_fails) return Output{1, "", "Failed to connect to bus"};
      if (c.argv.back() == "daemon-reload") {
        known = files.read("/run/systemd/system/muster-kexec.service").value_or("");
        return Output{0, "", ""};
      }
      if (known.empty()) return Output{5, "", "Unit muster-kexec.service not found."};
      left = true;
      return Output{0, "", ""};
    }
    REQUIRE(c.argv == std::vector<std::string>{"/proc/self/exe", "kexec", "--stdin"});
    const Json request = parse_json(c.input).value();
    if (request.value("unload", false)) return loaded.clear(), Output{0, "", ""};
    if (refuses)
      return Output{4, "", "the running kernel rejected the new kernel: Operation not permitted\n"};
    const Files machine("/");
    kernel = machine.read(request["kernel"].get<std::string>()).value_or("");
    initrd = machine.read(request["initrd"].get<std::string>()).value_or("");
    loaded = request["command_line"].get<std::string>();
    return Output{0, "", ""};
  }
  wire::KexecJob job() const {
    return {"http://10.20.0.1:7480", "/ram/cpu/vmlinuz",
            sha256("KERNEL"),        "/ram/cpu/initrd",
            sha256("INITRD"),        "quiet muster.node=n1 muster.token=t0k3n muster.give_up=600",
            "52:54:00:20:00:02",     "",
            "10.20.0.12/24"};
  }
  Result<Json> prepare(const wire::KexecJob& job) {
    return prepare_kexec(
        {files, *this,
         [this, &job](const std::string& base, const std::string& path) -> Result<std::string> {
           CHECK(base == job.base_url);
           while_fetching(path);
           if (!served.count(path)) return fail(Code::unavailable, "no answer");
           return served[path];
         },
         [this] { return cancelled; }},
        job);
  }
  bool called(const std::string& program) const {
    return std::any_of(programs.begin(), programs.end(),
                       [&](const std::string& p) { return p.starts_with(program); });
  }
  bool left_files() const {
    return files.exists("/run/muster-kexec/vmlinuz") || files.exists("/run/muster-kexec/initrd");
  }
};

Code code_of(const Result<Json>& result) { return result.ok() ? Code::cancelled : result.error().code; }

}  // namespace

TEST_CASE("kernel, initrd and network are loaded, and the system is left in order", "[kexec]") {
  System s;
  const auto ready = s.prepare(s.job());
  REQUIRE(ready.ok());
  CHECK(s.kernel == "KERNEL");
  CHECK(s.initrd == "INITRD");
  CHECK(s.loaded == s.job().arguments + " muster.ip=10.20.0.12/24 muster.mac=52:54:00:20:00:02");
  CHECK((*ready)["network"] == " muster.ip=10.20.0.12/24 muster.mac=52:54:00:20:00:02");
  CHECK_FALSE(s.left);
  CHECK_FALSE(s.left_files());
  // The token is in no process list.
  for (const auto& program : s.programs) CHECK(program.find("t0k3n") == std::string::npos);
  REQUIRE(leave_by_kexec(s.files, s).ok());
  CHECK(s.left);
  CHECK(s.known.find("After=shutdown.target umount.target final.target\n") != std::string::npos);
  // A shutdown that hangs ends in the firmware.
  const std::string head = s.known.substr(0, s.known.find("[Service]"));
  CHECK(head.find("\nJobTimeoutSec=15min\n") != std::string::npos);
  CHECK(head.find("\nJobTimeoutAction=reboot-force\n") != std::string::npos);
}

TEST_CASE("a system that does not allow it is left untouched", "[kexec]") {
  System s;
  SECTION("locked down") { s.put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n"); }
  SECTION("more so") { s.put("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n"); }
  SECTION("Secure Boot") { s.secure_boot(1); }
  SECTION("switched off") { s.put("/proc/sys/kernel/kexec_load_disabled", "1\n"); }
  SECTION("no kexec") { REQUIRE(s.files.remove("/sys/kernel/kexec_loaded")); }
  SECTION("a watchdog") { s.put("/sys/class/watchdog/watchdog0/state", "active\n"); }
  SECTION("an agent elsewhere") { REQUIRE(s.files.remove("/usr/sbin/muster-agent")); }
  SECTION("no systemd") { std::filesystem::remove_all(s.dir.path("run/systemd")); }
  CHECK(code_of(s.prepare(s.job())) == Code::denied);
  CHECK(s.loaded == "");
  CHECK(s.programs.empty());
  CHECK_FALSE(s.left_files());
}

TEST_CASE("a port that is none, and too little memory, are found before anything is loaded", "[kexec]") {
  System s;
  s.put("/sys/class/watchdog/watchdog0/state", "inactive\n");
  SECTION("no hardware") { std::filesystem::remove_all(s.dir.path("sys/class/net/enp1s0")); }
  SECTION("memory") { s.put("/proc/meminfo", "MemAvailable:   100000 kB\n"); }
  CHECK(code_of(s.prepare(s.job())) == Code::denied);
  CHECK(s.kernel == "");
  CHECK_FALSE(s.called("systemctl"));
  CHECK_FALSE(s.left_files());
}

TEST_CASE("a system whose successor could not reach the controller is not left", "[kexec]") {
  System s;
  bool fetched = false;
  s.while_fetching = [&](const std::string&) { fetched = true; };
  wire::KexecJob job = s.job();
  const auto through = [&](const std::string& router) {
    job.base_url = "http://10.30.0.1:7480";
    s.route = R"([{"dst":"10.30.0.1","gateway":")" + router + R"(","dev":"enp1s0","prefsrc":"10.20.0.12"}])";
  };
  SECTION("the controller is a neighbour, and not in the new network") {
    job.address_cidr = "10.21.0.12/24";
    SECTION("without a router") {}
    SECTION("with one") { job.gateway = "10.21.0.254"; }
  }
  SECTION("a new address that is none") { job.address_cidr = ""; }
  SECTION("behind a router, and the new system has none") { through("10.20.0.254"); }
  SECTION("behind a router, and the new system has another") {
    through("10.20.0.254");
    job.gateway = "10.20.0.253";
  }
  SECTION("behind a router, and the new system would take it for a neighbour") {
    through("10.20.0.254");
    job.gateway = "10.20.0.254";
    job.address_cidr = "10.20.0.12/8";
  }
  CHECK(code_of(s.prepare(job)) == Code::denied);
  CHECK_FALSE(fetched);
  CHECK_FALSE(s.called("/proc/self/exe"));
  CHECK_FALSE(s.left_files());
}

TEST_CASE("a new system that has another address, or a router, is good where it reaches the controller",
          "[kexec]") {
  System s;
  wire::KexecJob job = s.job();
  SECTION("another address, and a wider network") { job.address_cidr = "10.20.7.11/16"; }
  SECTION("a router that the controller is not behind") { job.gateway = "10.20.0.254"; }
  SECTION("behind the router that both have") {
    job.base_url = "http://10.30.0.1:7480";
    job.gateway = "10.20.0.254";
    s.route = R"([{"dst":"10.30.0.1","gateway":"10.20.0.254","dev":"enp1s0","prefsrc":"10.20.0.12"}])";
  }
  CHECK(s.prepare(job).ok());
  CHECK(s.kernel == "KERNEL");
}

TEST_CASE("Secure Boot that is off, and a kernel without lockdown, are no hindrance", "[kexec]") {
  System s;
  s.secure_boot(0);
  REQUIRE(s.files.remove("/sys/kernel/security/lockdown"));
  CHECK(s.prepare(s.job()).ok());
}

TEST_CASE("what the kernel itself refuses is denied; what did not come whole is tried again", "[kexec]") {
  System s;
  SECTION("the kernel") {
    s.refuses = true;
    const auto refused = s.prepare(s.job());
    CHECK(code_of(refused) == Code::denied);
  }
  SECTION("another file than announced") {
    s.served["/ram/cpu/initrd"] = "INITRD of a newer agent";
    CHECK(code_of(s.prepare(s.job())) == Code::failed);
  }
  SECTION("no file") {
    s.served.erase("/ram/cpu/vmlinuz");
    CHECK(code_of(s.prepare(s.job())) == Code::unavailable);
  }
  SECTION("withdrawn meanwhile") {
    s.while_fetching = [&s](const std::string& path) { s.cancelled = path == "/ram/cpu/initrd"; };
    CHECK(s.prepare(s.job()).error().code == Code::cancelled);
  }
  SECTION("a new system that would have its network elsewhere") {
    wire::KexecJob job = s.job();
    job.mac = "52:54:00:20:00:99";
    CHECK(code_of(s.prepare(job)) == Code::denied);
  }
  SECTION("a command line that would be cut off") {
    wire::KexecJob job = s.job();
    job.arguments += " " + std::string(2000, 'x');
    CHECK(code_of(s.prepare(job)) == Code::denied);
  }
  CHECK(s.loaded == "");
  CHECK_FALSE(s.left_files());
}

TEST_CASE("a kernel that was loaded and not started does not stay loaded", "[kexec]") {
  System s;
  REQUIRE(s.prepare(s.job()).ok());
  SECTION("systemd does not take the order") {
    s.systemd_fails = true;
    CHECK_FALSE(leave_by_kexec(s.files, s).ok());
    CHECK(s.loaded == "");
    CHECK_FALSE(s.files.exists("/run/systemd/system/muster-kexec.service"));
  }
  SECTION("the agent ended before it went") {
    s.put("/sys/kernel/kexec_loaded", "1\n");
    forget_kexec(s.files, s);
    CHECK(s.loaded == "");
  }
  SECTION("a foreign kernel stays loaded") {
    System other;
    other.loaded = "their own";
    other.put("/sys/kernel/kexec_loaded", "1\n");
    forget_kexec(other.files, other);
    CHECK(other.loaded == "their own");
  }
}

TEST_CASE("what the child gets is taken literally or not at all", "[kexec]") {
  CHECK(load_kexec("").error().code == Code::invalid);
  CHECK(load_kexec(R"({"kernel":"/x","shell":"/bin/sh"})").error().code == Code::invalid);
  CHECK(load_kexec(R"({"kernel":"/nonexistent","initrd":"/nonexistent","command_line":""})").error().code ==
        Code::failed);
}

TEST_CASE("the RAM system goes back to the old system only as long as it has not joined", "[kexec]") {
  const RamOptions own = ram_options("quiet muster.give_up=90 panic=30", {});
  CHECK(own.dead_man == 90 * kSecond);
  CHECK(own.until_joined);
  const int64_t start = 5000;
  CHECK_FALSE(gives_up(own, start, start, start + 90 * kSecond));
  CHECK(gives_up(own, start, start, start + 90 * kSecond + 1));
  CHECK_FALSE(gives_up(own, start, start + 1, start + 24 * 60 * kMinute));
  // One that was netbooted has a BMC: it goes whenever it is alone for ten minutes.
  const RamOptions booted = ram_options("quiet panic=30", {});
  CHECK_FALSE(booted.until_joined);
  CHECK_FALSE(gives_up(booted, start, start + 60 * kMinute, start + 60 * kMinute + 10 * kMinute));
  CHECK(gives_up(booted, start, start + 60 * kMinute, start + 60 * kMinute + 10 * kMinute + 1));
  for (const char* wrong : {"muster.give_up=", "muster.give_up=soon", "muster.give_up=90s"})
    CHECK_FALSE(ram_options(wrong, {}).until_joined);
  CHECK(ram_options("muster.give_up=1", {}).dead_man == 30 * kSecond);
}
