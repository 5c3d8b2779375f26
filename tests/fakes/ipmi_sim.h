// Debian's ipmi_sim (package openipmi) on a free UDP port of 127.0.0.1: a BMC of another project, in
// front of a machine that is a few files. Known of it: it offers cipher suite 3 and not 17, and drops the
// valid and the UEFI bit of the boot flags. Ended with SIGKILL, which needs no answer; it dies with this
// process, too.
#pragma once

#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/free_port.h"
#include "tests/fakes/temp_dir.h"

namespace muster::testing {

class IpmiSim {
 public:
  // `more`: lines of its configuration.
  explicit IpmiSim(const std::string& guid, std::string more = "") : more_(std::move(more)) {
    dir_.write("chassis", kChassis);
    std::filesystem::permissions(dir_.path("chassis"), std::filesystem::perms(0755));
    dir_.write("node.emu",
               "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n"
               "mc_enable 0x20\n");
    std::filesystem::create_directory(dir_.path("state"));
    start(guid);
  }
  ~IpmiSim() { end(); }
  IpmiSim(const IpmiSim&) = delete;
  IpmiSim& operator=(const IpmiSim&) = delete;

  // Another BMC behind the same address.
  void replace(const std::string& guid) {
    end();
    start(guid);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void set(const std::string& name, const std::string& value) { dir_.write(name, value); }
  std::string get(const std::string& name) const { return dir_.read(name); }
  bool runs() const { return get("power").substr(0, 1) == "1"; }

  static constexpr const char* kUser = "admin";
  static constexpr const char* kPassword = "sim-secret";

 private:
  static constexpr const char* kChassis = R"sh(#!/bin/sh
d=${0%/*}
shift
op=$1
shift
[ "$op" != get ] || { for n; do case $n in
  power) echo "power:$(cat "$d/power" 2>/dev/null || echo 0)" ;;
  boot) echo "boot:$(cat "$d/next" 2>/dev/null || echo default)" ;;
esac; done; exit 0; }
[ "$op" = set ] || exit 0
while [ $# -gt 1 ]; do
  case "$1 $2" in
    boot*) printf %s "$2" >"$d/next" ;;
    "power 1") if [ ! -e "$d/dead" ] && [ "$(cat "$d/power" 2>/dev/null)" != 1 ]; then
        if [ "$(cat "$d/next" 2>/dev/null)" = pxe ]; then printf n; else printf d; fi >>"$d/boots"
        rm -f "$d/next"; printf 1 >"$d/power"; fi ;;
    "power 0") printf 0 >"$d/power" ;;
    shutdown*) [ -e "$d/deaf" ] || printf 0 >"$d/power" ;;
  esac
  printf '%s %s\n' "$1" "$2" >>"$d/calls"
  shift 2
done
)sh";

  void start(const std::string& guid) {
    if (!port_) port_ = free_port(SOCK_DGRAM);
    dir_.write("lan.conf", "name \"test\"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 " +
                               std::to_string(port_) + "\n    priv_limit admin\n    guid " + guid +
                               "\n    allowed_auths_admin none md2 md5 straight\n  endlan\n" + more_ +
                               "  chassis_control \"" + dir_.path("chassis") +
                               " 0x20\"\n"
                               "  user 1 false \"\" \"\" user 10 none md2 md5 straight\n  user 2 true \"" +
                               kUser + "\" \"" + kPassword + "\" admin 10 none md2 md5 straight\n");
    const std::string lan = dir_.path("lan.conf"), emu = dir_.path("node.emu"), state = dir_.path("state");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execl("/usr/bin/ipmi_sim", "ipmi_sim", "-n", "-c", lan.c_str(), "-f", emu.c_str(), "-s", state.c_str(),
            nullptr);
      _exit(127);
    }
    wait_until_it_answers();
  }

  void wait_until_it_answers() {
    const std::string port = std::to_string(port_);
    for (int i = 0; i < 100; ++i) {
      const auto said =
          make_process()->run({.argv = {"ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", port, "-U",
                                        kUser, "-E", "-C", "3", "-N", "1", "-R", "1", "raw", "6", "1"},
                               .env = {{"IPMITOOL_PASSWORD", kPassword}}});
      INFO((said.ok() ? said->err : said.error().message));
      REQUIRE(said.ok());  // package ipmitool
      if (said->ok()) return;
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = 0;
        FAIL("ipmi_sim ended at once: package openipmi");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    FAIL("ipmi_sim does not answer");
  }

  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  TempDir dir_;
  const std::string more_;
  int port_ = 0;
  pid_t pid_ = 0;
};

}  // namespace muster::testing
