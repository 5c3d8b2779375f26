// SSH as people have it: agents with many keys, pins of another type, shells with habits. A real sshd on
// the loopback.
#include <algorithm>

#include "cli/adopt_host.h"
#include "tests/fakes/sshd.h"
#include "tests/field/case.h"

namespace muster::tests {

using testing::slurp;
using testing::Sshd;

namespace {

constexpr DurationMs kSoon = 20 * kSecond;

// An ssh-agent with keys that no host knows, and then the right one.
struct Agent {
  std::string socket;
  pid_t pid = 0;
  Agent(const Sshd& sshd, int strangers) : socket((sshd.dir / "agent").string()) {
    const auto process = make_process();
    pid = fork();
    if (pid == 0) {
      execlp("ssh-agent", "ssh-agent", "-D", "-a", socket.c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 500 && !std::filesystem::exists(socket); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    setenv("SSH_AUTH_SOCK", socket.c_str(), 1);
    for (int i = 0; i <= strangers; ++i) {
      const std::string key = (sshd.dir / (i == strangers ? "user" : "key" + std::to_string(i))).string();
      if (i < strangers)
        REQUIRE(process->run({{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key}})->ok());
      REQUIRE(process->run({{"ssh-add", "-q", key}})->ok());
    }
  }
  ~Agent() {
    unsetenv("SSH_AUTH_SOCK");
    kill(pid, SIGTERM);
    waitpid(pid, nullptr, 0);
  }
};

// What a shell makes of a word, given what it takes a backslash inside single quotes for.
std::string as_read(const std::string& quoted, bool fish) {
  std::string out;
  bool inside = false;
  for (size_t i = 0; i < quoted.size(); ++i) {
    const char c = quoted[i];
    const bool escape = c == '\\' && i + 1 < quoted.size() &&
                        (!inside || (fish && (quoted[i + 1] == '\\' || quoted[i + 1] == '\'')));
    if (escape)
      out += quoted[++i];
    else if (c == '\'')
      inside = !inside;
    else
      out += c;
  }
  return inside ? "(not closed)" : out;
}

}  // namespace

FIELD_CASE("agent-many-keys") {
  for (const auto& [config, strangers] : {std::pair("", 7), std::pair("MaxAuthTries 3\n", 3)}) {
    CAPTURE(config, strangers);
    const Sshd sshd(config);
    SshTarget target = sshd.target();
    target.private_key.clear();
    const Agent agent(sshd, strangers);
    const auto session = ssh_connect(target, kSoon);
    CAPTURE(session.ok() ? "" : session.error().message);
    REQUIRE(session.ok());
    CHECK((*session)->run("echo here", "", kSoon)->out == "here\n");
  }
  const Sshd sshd;
  SshTarget target = sshd.target();
  target.private_key.clear();
  CHECK(ssh_connect(target, kSoon).error().code == Code::denied);  // no agent
}

FIELD_CASE("host-key-type") {
  const Sshd sshd("HostKey {dir}/host_rsa\n");
  SshTarget target = sshd.target();
  const std::string usual = target.host_key, rsa = host_keys_in(slurp(sshd.dir / "host_rsa.pub")).value()[0];
  REQUIRE(rsa != usual);
  const auto all = learn_host_keys("127.0.0.1", sshd.port, kSoon);
  REQUIRE(all.ok());
  CHECK(all->size() == 2);
  CHECK(std::count(all->begin(), all->end(), rsa) == 1);
  target.host_key = rsa;
  CHECK(ssh_connect(target, kSoon).ok());
  target.host_key = "SHA256:another";
  CHECK(ssh_connect(target, kSoon).error().code == Code::denied);
  // What ssh-keyscan prints.
  const std::string place = "[127.0.0.1]:" + std::to_string(sshd.port);
  const auto word = [](const std::string& text) { return text.substr(0, text.rfind(' ')); };
  const std::string scan = "# " + place + " SSH-2.0-OpenSSH\n" + place + " " +
                           word(slurp(sshd.dir / "host_rsa.pub")) + "\n" + "other.example " +
                           word(slurp(sshd.dir / "host.pub")) + "\n";
  const auto pinned = host_keys_in(scan, {"127.0.0.1", place});
  REQUIRE(pinned.ok());
  CHECK(*pinned == std::vector<std::string>{rsa});
  CHECK(host_keys_in("|1|c2FsdA==|aGFzaA== " + word(slurp(sshd.dir / "host.pub")), {place}).error().code ==
        Code::invalid);
}

FIELD_CASE("shell-prints") {
  const Sshd sshd("ForceCommand echo Welcome to the cluster; eval \"$SSH_ORIGINAL_COMMAND\"\n");
  const std::string agent = "not started";
  cli::Host host(sshd.target(), agent);
  const auto opened = host.look("node01", "", Json::array());
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().code == Code::conflict);
  CHECK(opened.error().message.find("Welcome to the cluster") != std::string::npos);
}

FIELD_CASE("fish-login-shell") {
  for (const std::string word :
       {"plain", "it's", "a\\b", "\\", "'\\''", "printf '%s\\n' \"$x\" | sed 's|\\.|x|'", "end\\"}) {
    CAPTURE(word);
    CHECK(as_read(shell_quote(word), false) == word);
    CHECK(as_read(shell_quote(word), true) == word);
    const std::string twice = shell_quote(shell_quote(word));  // sudo's sh within the login shell
    CHECK(as_read(as_read(twice, true), false) == word);
    const auto echoed = make_process()->run({{"sh", "-c", "printf %s " + shell_quote(word)}});
    CHECK(echoed->out == word);
  }
}

}  // namespace muster::tests
