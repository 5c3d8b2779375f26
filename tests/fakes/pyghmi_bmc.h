// pyghmi's fake BMC (Debian's python3-pyghmi) on a free UDP port of 127.0.0.1: IPMI as another project
// understood it, in front of a machine that is a few files. Known of it: cipher suite 3 only, no GUID, boot
// flags without the UEFI bit, no power cycle. Ended with SIGKILL; it dies with this process, too.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/fakes/ipmi_sim.h"

namespace muster::testing {

class PyghmiBmc {
 public:
  PyghmiBmc() {
    const auto there = make_process()->run({.argv = {"/usr/bin/python3", "-c", "import pyghmi.ipmi.bmc"}});
    INFO("package python3-pyghmi, which scripts/deps.sh test installs");
    REQUIRE((there.ok() && there->ok()));
    dir_.write("power", "0");
    dir_.write("bmc.py", kProgram);
    const std::string port = std::to_string(port_), program = dir_.path("bmc.py");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execl("/usr/bin/python3", "python3", program.c_str(), port.c_str(), nullptr);
      _exit(127);
    }
    REQUIRE(answers());
  }
  ~PyghmiBmc() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  PyghmiBmc(const PyghmiBmc&) = delete;
  PyghmiBmc& operator=(const PyghmiBmc&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void set(const std::string& name, const std::string& value) { dir_.write(name, value); }
  std::string get(const std::string& name) const { return dir_.read(name); }
  bool runs() const { return get("power") == "1"; }

  static constexpr const char* kUser = "admin";
  static constexpr const char* kPassword = "sim-secret";

 private:
  static constexpr const char* kProgram = R"py(import os, sys
import pyghmi.ipmi.bmc as bmc
here = os.path.dirname(os.path.abspath(__file__))
def path(name): return os.path.join(here, name)
class Machine(bmc.Bmc):
    device = 'default'
    def get_power_state(self): return 'on' if open(path('power')).read() == '1' else 'off'
    def is_active(self): return self.get_power_state() == 'on'
    def switch(self, on):
        with open(path('power'), 'w') as f: f.write('1' if on else '0')
    def power_on(self):
        if self.is_active() or os.path.exists(path('dead')): return
        with open(path('boots'), 'a') as f: f.write('n' if self.device == 'network' else 'd')
        self.device = 'default'
        self.switch(True)
    def power_off(self): self.switch(False)
    def power_shutdown(self):
        if not os.path.exists(path('deaf')): self.switch(False)
    def get_boot_device(self): return self.device
    def set_boot_device(self, device): self.device = device
Machine({'admin': 'sim-secret'}, port=int(sys.argv[1]), address='127.0.0.1').listen()
)py";

  bool answers() const {
    const std::string port = std::to_string(port_);
    for (int i = 0; i < 30; ++i) {
      const auto said =
          make_process()->run({.argv = {"ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", port, "-U",
                                        kUser, "-E", "-C", "3", "-N", "1", "-R", "2", "raw", "6", "1"},
                               .env = {{"IPMITOOL_PASSWORD", kPassword}}});
      if (said.ok() && said->ok()) return true;
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) return false;
    }
    return false;
  }

  TempDir dir_;
  const int port_ = free_port(SOCK_DGRAM);
  pid_t pid_ = 0;
};

}  // namespace muster::testing
