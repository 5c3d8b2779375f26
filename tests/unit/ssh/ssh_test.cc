// Against a real sshd on a loopback port (tests/fakes/sshd.h).
#include "controller/ssh/ssh.h"

#include "controller/ssh/ssh_keys.h"

#include <stdlib.h>

#include "tests/fakes/sshd.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using namespace muster::testing;

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
  const auto out =
      (*session)->run("cat /dev/zero | head -c 1; read never < /dev/tty; exec tail -f /dev/null", "", 500);
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().code == Code::timeout);
}

TEST_CASE("keys of an SSH agent open a session, and nothing does without one", "[ssh]") {
  Sshd sshd;
  SshTarget target = sshd.target();
  target.private_key.clear();
  ::unsetenv("SSH_AUTH_SOCK");
  const auto without = ssh_connect(target, 10 * kSecond);
  REQUIRE_FALSE(without.ok());
  CHECK(without.error().code == Code::denied);
  CHECK(without.error().message.find("SSH_AUTH_SOCK") != std::string::npos);

  const std::string socket = (sshd.dir / "agent").string();
  auto process = make_process();
  const auto agent = process->run({{"ssh-agent", "-a", socket, "-s"}});
  REQUIRE((agent.ok() && agent->ok()));
  ::setenv("SSH_AUTH_SOCK", socket.c_str(), 1);
  const auto empty = ssh_connect(target, 10 * kSecond);
  CHECK_FALSE(empty.ok());
  REQUIRE(process->run({{"ssh-add", "-q", (sshd.dir / "user").string()}})->ok());
  const auto with = ssh_connect(target, 10 * kSecond);
  CHECK(with.ok());
  const auto at = agent->out.find("SSH_AGENT_PID=");
  REQUIRE(at != std::string::npos);
  kill(std::stoi(agent->out.substr(at + 14)), SIGTERM);
  ::unsetenv("SSH_AUTH_SOCK");
}

TEST_CASE("the public half of a private key is what its .pub file holds", "[ssh]") {
  Sshd sshd;
  const std::string line = slurp(sshd.dir / "user.pub");
  const size_t begin = line.find(' ') + 1;
  CHECK(public_key_of(slurp(sshd.dir / "user")).value() ==
        line.substr(begin, line.find_first_of(" \n", begin) - begin));
  CHECK(public_key_of("no key").error().code == Code::invalid);
}

TEST_CASE("host keys are read from fingerprints and public keys, and from nothing else", "[ssh]") {
  Sshd sshd;
  const std::string shown = sshd.target().host_key;
  const auto from_key = host_keys_in(slurp(sshd.dir / "host.pub"), "");
  REQUIRE(from_key.ok());
  CHECK(*from_key == std::vector<std::string>{shown});
  const auto from_listing = host_keys_in("# of the rack\n256 " + shown + " root@host (ED25519)\n\n", "");
  REQUIRE(from_listing.ok());
  CHECK(*from_listing == std::vector<std::string>{shown});
  CHECK(host_keys_in("", "").error().code == Code::invalid);
  // A line of known_hosts speaks of a host; its key must not stand for another one.
  const std::string line = "10.20.0.31,rack7 " + slurp(sshd.dir / "host.pub");
  for (const char* other : {"", "10.20.0.3", "[10.20.0.31]:2222"})
    CHECK(host_keys_in(line, other).error().code == Code::invalid);
  CHECK(host_keys_in(line, "rack7").value() == std::vector<std::string>{shown});
  CHECK(host_keys_in("@revoked " + line, "rack7").error().code == Code::invalid);
  for (const char* mark : {"@revoked ", "@revoked\t", "@revoked \t"})
    CHECK(host_keys_in(line + mark + line, "rack7").error().code == Code::invalid);
  CHECK(host_keys_in("@cert-authority " + line, "rack7").error().code == Code::invalid);
  CHECK(host_keys_in("10.20.0.31 ssh-ed25519 no-key", "10.20.0.31").error().code == Code::invalid);
}

TEST_CASE("the agent is run on a host without being left there", "[ssh]") {
  Sshd sshd;
  auto session = ssh_connect(sshd.target(), 10 * kSecond);
  REQUIRE(session.ok());
  const std::string agent = "#!/bin/sh\necho \"$0 $*\"; cat; echo end\n";
  const auto said = run_agent_unseen(**session, agent, "preview --stdin", "asked", 30 * kSecond);
  if (!said.ok()) FAIL(said.error().message);
  CHECK(*said == "/dev/shm/muster-agent preview --stdin\naskedend\n");
  CHECK_FALSE(fs::exists("/dev/shm/muster-agent"));
  const auto left = (*session)->run("grep -c muster-preview /proc/self/mounts", "", 10 * kSecond);
  REQUIRE(left.ok());
  CHECK(left->out == "0\n");
  const auto bad = run_agent_unseen(**session, "#!/bin/sh\necho no such hardware >&2; exit 3\n", "preview",
                                    "", 30 * kSecond);
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().message.find("no such hardware") != std::string::npos);
}

TEST_CASE("without the right to become root, the host's own words are the answer", "[ssh]") {
  TempDir dir;
  // A sudo that wants a password.
  std::ofstream(dir.path("sudo"))
      << "#!/bin/sh\n[ \"$1\" = -n ] && { echo 'sudo: a password is required' >&2; exit 1; }\n";
  fs::permissions(dir.path("sudo"), fs::perms::owner_all);
  struct Path : SshSession {
    std::string dir;
    Result<Output> run(const std::string& command, SshInput, DurationMs deadline) override {
      return make_process()->run({{"sh", "-c", "PATH=" + dir + ":$PATH; " + command}, "", {}, deadline});
    }
  };
  auto inner = std::make_unique<Path>();
  inner->dir = dir.path("");
  const auto out = as_root(std::move(inner))->run("id -u", "", 10 * kSecond);
  REQUIRE(out.ok());
  CHECK(out->exit_code == 1);
  CHECK(out->err.find("a password is required") != std::string::npos);
}

TEST_CASE("an agent that was sent once takes many requests, and nothing of it stays", "[ssh]") {
  Sshd sshd;
  auto session = ssh_connect(sshd.target(), 10 * kSecond);
  REQUIRE(session.ok());
  const std::string agent =
      "#!/bin/sh\necho \"ready $*\"\nwhile read -r line; do case $line in end) exit 3;; "
      "die) echo 'out of memory' >&2; exit 1;; mute) ;; *) echo \"heard $line\";; esac; done\n";
  auto dialog = talk_to_agent_unseen(**session, agent, "adopt --stdin", 30 * kSecond);
  if (!dialog.ok()) FAIL(dialog.error().message);
  for (const char* line : {"one", "two", "the token"}) {
    const auto said = (*dialog)->request(line, 10 * kSecond);
    REQUIRE(said.ok());
    CHECK(*said == std::string("heard ") + line);
  }
  // Beside it, over the same connection.
  CHECK((*session)->run("ls /dev/shm/muster-agent", "", 10 * kSecond)->exit_code != 0);
  CHECK((*dialog)->request("mute", 300).error().code == Code::timeout);
  const auto died = (*dialog)->request("die", 10 * kSecond);
  CHECK(died.error().code == Code::timeout);  // the request may have been carried out
  CHECK(died.error().message.find("out of memory") != std::string::npos);
  CHECK((*dialog)->request("again", 10 * kSecond).error().code == Code::unavailable);
  dialog->reset();
  CHECK((*session)->run("grep -c muster-preview /proc/self/mounts", "", 10 * kSecond)->out == "0\n");
}

TEST_CASE("an agent that cannot begin is a failure in the host's own words", "[ssh]") {
  Sshd sshd;
  auto session = ssh_connect(sshd.target(), 10 * kSecond);
  REQUIRE(session.ok());
  const auto dialog = talk_to_agent_unseen(**session, "#!/bin/sh\necho 'no such processor' >&2; exit 1\n",
                                           "adopt --stdin", 30 * kSecond);
  REQUIRE_FALSE(dialog.ok());
  CHECK(dialog.error().code == Code::failed);
  CHECK(dialog.error().message.find("no such processor") != std::string::npos);
}

TEST_CASE("a connection that is gone asks nothing", "[ssh]") {
  auto sshd = std::make_unique<Sshd>();
  auto session = ssh_connect(sshd->target(), 10 * kSecond);
  REQUIRE(session.ok());
  auto dialog = (*session)->talk("echo ready; read -r line; echo $PPID; exec cat >/dev/null", "", kMinute);
  REQUIRE(dialog.ok());
  const auto server = (*dialog)->request("who", 10 * kSecond);
  REQUIRE(server.ok());
  REQUIRE(kill(std::stoi(*server), SIGKILL) == 0);
  // Whether its end is known by now or shows when no answer comes; from then on it is known.
  const Code first = (*dialog)->request("again", 10 * kSecond).error().code;
  CHECK((first == Code::unavailable || first == Code::timeout));
  CHECK((*dialog)->request("once more", 10 * kSecond).error().code == Code::unavailable);
}
