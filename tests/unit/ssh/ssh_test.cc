// Against a real sshd on a loopback port, started as this user with a key pair of its own.
#include "controller/ssh/ssh.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/digest.h"
#include "tests/catch.h"

using namespace muster;
namespace fs = std::filesystem;

namespace {

std::string slurp(const fs::path& p) {
  std::ifstream f(p);
  return {std::istreambuf_iterator<char>(f), {}};
}

uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a);
  socklen_t size = sizeof a;
  getsockname(fd, reinterpret_cast<sockaddr*>(&a), &size);
  close(fd);
  return ntohs(a.sin_port);
}

struct Sshd {
  fs::path dir = fs::temp_directory_path() / ("muster-sshd-" + random_hex(6));
  uint16_t port = free_port();
  pid_t pid = 0;

  Sshd() {
    fs::create_directories(dir);
    fs::create_directories("/run/sshd");   // sshd's compiled-in privilege separation folder
    auto process = make_process();
    for (const char* name : {"host", "user", "other"})
      REQUIRE(process->run({{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dir / name}})->ok());
    fs::copy_file(dir / "user.pub", dir / "authorized");
    fs::permissions(dir, fs::perms::owner_all);
    std::ofstream(dir / "config") << "Port " << port << "\nListenAddress 127.0.0.1\nHostKey " << (dir / "host").string()
                                  << "\nAuthorizedKeysFile " << (dir / "authorized").string()
                                  << "\nStrictModes no\nUsePAM no\nPidFile none\n";
    pid = fork();
    if (pid == 0) {
      execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-e", "-f", (dir / "config").c_str(), "-E", (dir / "log").c_str(), nullptr);
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

}  // namespace

TEST_CASE("ssh runs a command, feeds it and returns both streams and the exit code", "[ssh]") {
  Sshd sshd;
  auto session = ssh_connect(sshd.target(), 10 * kSecond);
  REQUIRE(session.ok());
  const auto out = (*session)->run("cat; echo oops >&2; exit 7", "hello", 10 * kSecond);
  REQUIRE(out.ok());
  CHECK(out->out == "hello");
  CHECK(out->err == "oops\n");
  CHECK(out->exit_code == 7);
  // A payload over several windows arrives whole.
  const std::string big(3 << 20, 'x');
  const auto sum = (*session)->run("sha256sum | cut -c1-64", big, 30 * kSecond);
  REQUIRE(sum.ok());
  CHECK("sha256:" + sum->out.substr(0, 64) == sha256(big));
}

TEST_CASE("ssh refuses another host key before it authenticates, and an unknown user key", "[ssh]") {
  Sshd sshd;
  auto wrong_host = sshd.target();
  wrong_host.host_key = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
  const auto refused = ssh_connect(wrong_host, 10 * kSecond);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::denied);
  CHECK(slurp(sshd.dir / "log").find("Accepted") == std::string::npos);

  auto no_pin = sshd.target();
  no_pin.host_key.clear();
  CHECK(ssh_connect(no_pin, 10 * kSecond).error().code == Code::denied);

  auto wrong_user = sshd.target();
  wrong_user.private_key = slurp(sshd.dir / "other");
  CHECK(ssh_connect(wrong_user, 10 * kSecond).error().code == Code::denied);

  auto nobody_there = sshd.target();
  nobody_there.port = free_port();
  CHECK(ssh_connect(nobody_there, 5 * kSecond).error().code == Code::unavailable);
}

TEST_CASE("a command over its deadline is a timeout, not a failure", "[ssh]") {
  Sshd sshd;
  auto session = ssh_connect(sshd.target(), 10 * kSecond);
  REQUIRE(session.ok());
  const auto out = (*session)->run("cat /dev/zero | head -c 1; read never < /dev/tty; exec tail -f /dev/null", "", 500);
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().code == Code::timeout);
}

TEST_CASE("shell quoting keeps every character", "[ssh]") {
  CHECK(shell_quote("a b'c$d") == "'a b'\\''c$d'");
}
