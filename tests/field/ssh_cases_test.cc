// Field cases of SSH: agents with many keys, host keys of several types, and login shells as people have
// them, against a real sshd.
#include <filesystem>
#include <set>

#include "base/shell_text.h"
#include "cli/adopt_host.h"
#include "controller/ssh/ssh_keys.h"
#include "tests/fakes/key_agent.h"
#include "tests/fakes/sshd.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

namespace fs = std::filesystem;
using testing::KeyAgent;
using testing::slurp;
using testing::Sshd;

constexpr DurationMs kWait = 10 * kSecond;

std::string key_of(const Sshd& sshd) { return public_key_in(slurp(sshd.dir / "user.pub")).value(); }

SshTarget by_agent(const Sshd& sshd) {
  SshTarget target = sshd.target();
  target.private_key.clear();
  return target;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

std::string output_of(std::vector<std::string> argv) {
  const auto said = make_process()->run({.argv = std::move(argv)});
  REQUIRE((said.ok() && said->ok()));
  return said->out;
}

// An RSA key, and a line for sshd that has it as one of the host.
struct RsaKey {
  TempDir dir;
  RsaKey() { output_of({"ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", dir.path("rsa")}); }
  std::string line() const { return "HostKey " + dir.path("rsa") + "\n"; }
  std::string fingerprint() const { return host_keys_in(dir.read("rsa.pub"), "").value().front(); }
};

std::string place_of(const Sshd& sshd) { return "[127.0.0.1]:" + std::to_string(sshd.port); }

// What --host-key FILE allows there.
Result<std::vector<std::string>> allowed_by(const std::string& file, const Sshd& sshd) {
  cli::Adopting what;
  what.host_key = file;
  return cli::allowed_keys(what, sshd.target(), Json());
}

// Every command goes through a shell of the case's: `script`, with the command as its first argument.
struct OtherShell {
  TempDir dir;
  Sshd sshd;
  explicit OtherShell(const std::string& script) : sshd(force(dir, script)) {}

  static std::string force(const TempDir& dir, const std::string& script) {
    const auto write = [&](const char* name, const std::string& text) {
      dir.write(name, text);
      fs::permissions(dir.path(name), fs::perms(0755));
    };
    write("shell", script);
    write("sudo", "#!/bin/sh\n[ \"$1 $2\" = \"-n --\" ] || exit 1\nshift 2\nexec \"$@\"\n");
    write("forced", "#!/bin/sh\nPATH=" + dir.path("") + ":$PATH exec " + dir.path("shell") +
                        " \"$SSH_ORIGINAL_COMMAND\"\n");
    return "ForceCommand " + dir.path("forced") + "\n";
  }
};

constexpr const char* kAgent =
    "#!/bin/sh\necho '{\"ready\":true}'\nwhile read -r line; do echo '{\"facts\":{},\"said\":\"it is\"}'; "
    "done\n";

// All that adopting says to a host, through its login shell.
void speaks_with(const SshTarget& target) {
  auto session = ssh_connect(target, kWait);
  REQUIRE(session.ok());
  for (const bool again_as_root : {false, true}) {
    CAPTURE(again_as_root);
    if (again_as_root) session = as_root(std::move(*session));
    const auto out =
        (*session)->run("cat; printf '%s ' \"it's\" '\\n' >&2\nexit 7", "a line\nwithout end", kWait);
    REQUIRE(out.ok());
    CHECK(out->out == "a line\nwithout end");
    CHECK(out->err == "it's \\n ");
    CHECK(out->exit_code == 7);
    const auto unseen =
        run_agent_unseen(**session, "#!/bin/sh\necho \"$0 $*\"; cat\n", "preview --stdin", "asked", kWait);
    if (!unseen.ok()) FAIL(unseen.error().message);
    CHECK(*unseen == "/dev/shm/muster-agent preview --stdin\nasked");
    const auto dialog = talk_to_agent_unseen(**session, kAgent, "adopt --stdin", kWait);
    if (!dialog.ok()) FAIL(dialog.error().message);
    CHECK((*dialog)->request("?", kWait).value() == "{\"facts\":{},\"said\":\"it is\"}");
  }
}

}  // namespace

// ---- keys of the operator

FIELD_CASE("agent-many-keys: the right one is the last") {
  const std::string tries = GENERATE("3", "6");
  Sshd sshd("MaxAuthTries " + tries + "\n");
  KeyAgent agent;
  agent.add_others(7);
  agent.add(sshd.dir / "user");
  const auto session = ssh_connect(by_agent(sshd), kWait);
  if (!session.ok()) FAIL(session.error().message);
  CHECK((*session)->own_key() == key_of(sshd));
  CHECK((*session)->run("echo in", "", kWait)->out == "in\n");
}

FIELD_CASE("agent-many-keys: one is picked by its public half") {
  Sshd sshd("MaxAuthTries 3\n");
  KeyAgent agent;
  agent.add_others(12);
  agent.add(sshd.dir / "user");
  const auto unpicked = ssh_connect(by_agent(sshd), kWait);
  REQUIRE_FALSE(unpicked.ok());
  CHECK(unpicked.error().code == Code::denied);
  // Servers shut out a client that fails too often.
  CHECK(count(slurp(sshd.dir / "log"), "maximum authentication attempts exceeded") == 3);

  cli::Adopting what;
  what.key = (sshd.dir / "user.pub").string();
  SshTarget target = cli::target_of(what, "127.0.0.1:" + std::to_string(sshd.port), Json()).value();
  target.user = by_agent(sshd).user;
  target.host_key = by_agent(sshd).host_key;
  CHECK(ssh_connect(target, kWait).ok());
  CHECK(count(slurp(sshd.dir / "log"), "maximum authentication attempts exceeded") == 3);
  what.key = (sshd.dir / "other.pub").string();  // not in the agent
  target.agent_key = cli::target_of(what, "127.0.0.1", Json()).value().agent_key;
  CHECK(ssh_connect(target, kWait).error().code == Code::denied);
}

FIELD_CASE("max-auth-tries-2") {
  Sshd sshd("MaxAuthTries 2\n");
  KeyAgent agent;
  agent.add_others(2);
  agent.add(sshd.dir / "user");
  CHECK(ssh_connect(by_agent(sshd), kWait).ok());
}

FIELD_CASE("agent-with-certificate") {
  Sshd sshd;
  KeyAgent agent;
  output_of({"ssh-keygen", "-q", "-s", sshd.dir / "other", "-I", "ops", "-n", "root", sshd.dir / "user.pub"});
  agent.add(sshd.dir / "user");  // ssh-add takes the certificate beside it, too
  REQUIRE(count(output_of({"ssh-add", "-L"}), "\n") == 2);
  const auto session = ssh_connect(by_agent(sshd), kWait);
  REQUIRE(session.ok());
  CHECK((*session)->own_key() == key_of(sshd));
}

// ---- keys of the host

FIELD_CASE("host-key-type: the fingerprint of another type is pinned") {
  RsaKey rsa;
  Sshd sshd(rsa.line());
  SshTarget target = sshd.target();
  const std::string unasked = target.host_key;
  REQUIRE(unasked != rsa.fingerprint());
  target.host_key = learn_host_key("127.0.0.1", sshd.port, kWait, {rsa.fingerprint()}).value();
  CHECK(target.host_key == rsa.fingerprint());
  CHECK(cli::is_allowed(target, {rsa.fingerprint()}, false).ok());
  CHECK(ssh_connect(target, kWait).ok());
  // Another machine is still another one, and sees no key of the operator's.
  const std::string log = slurp(sshd.dir / "log");
  target.host_key = "SHA256:" + std::string(43, 'A');
  CHECK(ssh_connect(target, kWait).error().code == Code::denied);
  CHECK(count(slurp(sshd.dir / "log"), "Accepted") == count(log, "Accepted"));
  CHECK(learn_host_key("127.0.0.1", sshd.port, kWait, {target.host_key}).value() == unasked);
}

FIELD_CASE("host-key-type: what ssh-keyscan prints") {
  RsaKey rsa;
  Sshd sshd(rsa.line());
  Sshd other;
  TempDir dir;
  std::vector<std::string> scan = {"ssh-keyscan", "-p", std::to_string(sshd.port), "127.0.0.1"};
  SECTION("as it is") {}
  SECTION("hashed") { scan.insert(scan.begin() + 1, "-H"); }
  dir.write("scan",
            output_of({"ssh-keyscan", "-p", std::to_string(other.port), "127.0.0.1"}) + output_of(scan));
  const auto allowed = allowed_by(dir.path("scan"), sshd);
  REQUIRE(allowed.ok());
  CHECK(std::set<std::string>(allowed->begin(), allowed->end()) ==
        std::set<std::string>{sshd.target().host_key, rsa.fingerprint()});
  CHECK(allowed_by(dir.path("scan"), other).value() == std::vector<std::string>{other.target().host_key});
  Sshd stranger;
  CHECK(allowed_by(dir.path("scan"), stranger).error().code == Code::invalid);
}

FIELD_CASE("host-key-rsa-only") {
  RsaKey rsa;
  Sshd sshd(rsa.line() + "HostKeyAlgorithms rsa-sha2-512,rsa-sha2-256\n");
  TempDir dir;
  dir.write("known_hosts", place_of(sshd) + " " + rsa.dir.read("rsa.pub"));
  const auto allowed = allowed_by(dir.path("known_hosts"), sshd);
  REQUIRE(allowed.ok());
  const std::string shown = learn_host_key("127.0.0.1", sshd.port, kWait, *allowed).value();
  CHECK(shown == rsa.fingerprint());
  CHECK(*allowed == std::vector<std::string>{shown});
}

// ---- login shells

FIELD_CASE("shell-prints") {
  OtherShell host("#!/bin/sh\n. " + field_folder("shell-prints") + "/bashrc\nexec bash -c \"$1\"\n");
  speaks_with(host.sshd.target());
  const std::string agent = kAgent;
  cli::Host adopted(host.sshd.target(), agent);
  const auto answer = adopted.request({{"ask", "look"}}, kWait);
  if (!answer.ok()) FAIL(answer.error().message);
  CHECK(answer->at("said") == "it is");
}

FIELD_CASE("shell-prints-motd") {
  OtherShell host("#!/bin/sh\n. " + field_folder("shell-prints-motd") + "/bashrc\nexec bash -c \"$1\"\n");
  speaks_with(host.sshd.target());
}

FIELD_CASE("fish-login-shell") {
  OtherShell host("#!/bin/sh\nexec python3 " + field_folder("fish-login-shell") + "/fish.py \"$1\"\n");
  speaks_with(host.sshd.target());
}

// With root's login shell of now: tests/field/ssh/login_shells.sh runs it with others.
TEST_CASE("ssh: a real login shell hands commands on as they are", "[.login-shell]") {
  Sshd sshd;
  auto session = ssh_connect(sshd.target(), kWait);
  REQUIRE(session.ok());
  const std::string nested = "sh -c " + shell_word("printf '%s\\n' \"it's\" '\\n'; cat");
  const auto out = (*session)->run("sh -c " + shell_word(nested), "input", kWait);
  REQUIRE(out.ok());
  CHECK(out->out == "it's\n\\n\ninput");
  CHECK(out->err == "");
  const std::string agent = kAgent;
  cli::Host adopted(sshd.target(), agent);
  const auto answer = adopted.request({{"ask", "look"}}, kWait);
  if (!answer.ok()) FAIL(answer.error().message);
  CHECK(answer->at("said") == "it is");
}

}  // namespace muster::tests
