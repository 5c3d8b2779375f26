// A real sshd on a loopback port, started as this user with a key pair of its own.
#pragma once

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/digest.h"
#include "controller/ssh/ssh.h"
#include "tests/catch.h"
#include "tests/fakes/free_port.h"

namespace muster::testing {

namespace fs = std::filesystem;

inline std::string slurp(const fs::path& p) {
  std::ifstream f(p);
  return {std::istreambuf_iterator<char>(f), {}};
}

struct Sshd {
  fs::path dir = fs::temp_directory_path() / ("muster-sshd-" + random_hex(6));
  uint16_t port = free_port();
  pid_t pid = 0;

  // `more`: lines of its configuration, which come first.
  explicit Sshd(const std::string& more = "") {
    fs::create_directories(dir);
    fs::create_directories("/run/sshd");  // sshd's compiled-in privilege separation folder
    auto process = make_process();
    for (const char* name : {"host", "user", "other"})
      REQUIRE(process->run({{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dir / name}})->ok());
    fs::copy_file(dir / "user.pub", dir / "authorized");
    fs::permissions(dir, fs::perms::owner_all);
    std::ofstream(dir / "config") << more << "Port " << port << "\nListenAddress 127.0.0.1\nHostKey "
                                  << (dir / "host").string() << "\nAuthorizedKeysFile "
                                  << (dir / "authorized").string()
                                  << "\nStrictModes no\nUsePAM no\nPidFile none\n"
                                  // bash reads ~/.bashrc for sshd's commands: what this account has there
                                  // (version managers that wait for a lock, say) is not part of a test.
                                  << "SetEnv HOME=" << dir.string() << "\n";
    pid = fork();
    if (pid == 0) {
      execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-e", "-f", (dir / "config").c_str(), "-E",
            (dir / "log").c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 200 && !learn_host_key("127.0.0.1", port, 1000).ok(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ~Sshd() {
    kill(pid, SIGTERM);
    waitpid(pid, nullptr, 0);
    fs::remove_all(dir);
  }
  SshTarget target() const {
    SshTarget t{"127.0.0.1", port, "root", slurp(dir / "user"), {}};
    if (const char* user = getenv("USER"); user && geteuid() != 0) t.user = user;
    t.host_key = learn_host_key("127.0.0.1", port, 5000).value();
    return t;
  }
};

}  // namespace muster::testing
