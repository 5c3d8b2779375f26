// Field cases of the way onto a host: what sshd and PAM say to ssh, start-up files, sudo, and terminals in
// between. A shell of this machine is the host; HostLinks decides what is tried again.
#include "controller/hosts/host_links.h"
#include "controller/hosts/lost_reason.h"
#include "tests/field/case.h"
#include "tests/unit/hosts/wire_bench.h"

namespace muster::tests {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A WireBench whose host is opened by HostLinks.
struct Reach : WireBench {
  int opened = 0;
  std::optional<Error> gone;
  std::unique_ptr<HostLinks> links;

  Reach() { as_plain_user(); }
  ~Reach() { links.reset(); }

  // bash as the login shell, with a start-up file of this text.
  void starts_up(const std::string& text) {
    dir.write("bashrc", text);
    const auto env = shell("bash");
    options.argv = {"env", "BASH_ENV=" + dir.path("bashrc")};
    options.argv.insert(options.argv.end(), env.begin() + 1, env.end());
    options.argv.insert(options.argv.end(), {"-c", "/bin/sh"});
  }
  // ssh that writes what is in this file of the case and ends so, or becomes the host's shell.
  void ssh_writes(const std::string& name, const std::string& file, const std::string& then) {
    options.argv = shell("/bin/sh");
    options.argv.insert(options.argv.end(),
                        {"-c", "cat '" + field_folder(name) + "/" + file + "' >&2; " + then});
  }
  // Until it is reached or given up.
  void go() {
    HostLinks::Events all;
    all.hello = [this](const std::string&, const HostHello& one) { hello = one; };
    all.looked = [this](const std::string&, const HostLooked& one) { looked = one; };
    all.broken = [](const std::string&, const Error&) {};
    all.gone = [this](const std::string&, const Error& error) { gone = error; };
    all.poll = [](auto&&...) {};
    all.post = [](auto&&...) {};
    HostLinkTiming timing;
    timing.again_first = timing.again_last = 10;
    timing.dropped = 60 * kMinute;  // a busy machine starts a process late
    const auto open = [this](HostWireOptions one, HostWireEvents its) {
      ++opened;
      return open_host_wire(*reactor, std::move(one), std::move(its));
    };
    links = std::make_unique<HostLinks>(*reactor, open, all, timing);
    links->add(options);
    until([this] { return looked || gone; });
  }
  // It was not reached, for this reason.
  void is_gone(Code code, const std::string& words) {
    REQUIRE(gone);
    CHECK(gone->code == code);
    CHECK(has(gone->message, words));
  }
  void ends() {
    bool left = false;
    links->leave_all([&left] { left = true; });
    until([&left] { return left; });
    nothing_left();
  }
};

// In place of fish: it reads all of its input before it runs anything.
constexpr const char* kReadsAll = "sh -c 'all=$(cat); eval \"$all\"'";

}  // namespace

// ---- what sshd and PAM say

FIELD_CASE("login-message-hidden: a host that boots is tried again") {
  Reach host;
  host.ssh_writes("login-message-hidden", "booting.txt", "exit 255");
  host.go();
  host.is_gone(Code::unavailable, "System is booting up");
  CHECK_FALSE(has(host.gone->message, "recorded"));
  CHECK(host.opened == 3);
}

FIELD_CASE("login-message-hidden: an expired account is not") {
  Reach host;
  host.ssh_writes("login-message-hidden", "expired.txt", "exit 255");
  host.go();
  host.is_gone(Code::denied, "Your account has expired");
  CHECK(host.opened == 1);
}

FIELD_CASE("banner-is-no-reason") {
  Reach host;
  host.ssh_writes("banner-is-no-reason", "refused.txt", "exit 255");
  host.go();
  REQUIRE(host.gone);
  CHECK(host.gone->code == Code::denied);
  CHECK_FALSE(has(host.gone->message, "recorded"));
  CHECK_FALSE(has(host.gone->message, "Authorized"));
}

FIELD_CASE("nologin-shown-to-root") {
  Reach host;
  host.stub("uname", "echo riscv64");
  host.ssh_writes("nologin-shown-to-root", "root.txt", "exec /bin/sh");
  host.go();
  host.is_gone(Code::failed, "riscv64");
}

// ---- start-up files

FIELD_CASE("rc-execs-other-shell: zsh") {
  if (!Files().exists("/usr/bin/zsh")) return;
  Reach host;
  host.starts_up(field_input("rc-execs-other-shell", "bashrc"));
  host.go();
  CHECK(host.looked);
  host.ends();
}

FIELD_CASE("rc-execs-other-shell: one that reads its input to the end") {
  Reach host;
  host.starts_up("unset BASH_ENV; exec " + std::string(kReadsAll) + "\n");
  host.options.patience = kSecond;
  host.go();
  host.is_gone(Code::failed, "start-up file");
  CHECK(host.opened == 1);
}

FIELD_CASE("rc-last-line-is-fish") {
  Reach host;
  host.starts_up("unset BASH_ENV\n" + std::string(kReadsAll) + "\n");
  host.options.patience = kSecond;
  host.go();
  host.is_gone(Code::failed, "start-up file");
  CHECK(host.opened == 1);
}

FIELD_CASE("rc-exits") {
  Reach host;
  const std::string also = GENERATE("", "echo Welcome\n");
  host.starts_up(also + field_input("rc-exits", "bashrc"));
  host.go();
  host.is_gone(Code::failed, "start-up file");
  CHECK(has(host.gone->message, "Welcome") == !also.empty());
  CHECK(host.opened == 1);
}

FIELD_CASE("rc-reads-input") {
  Reach host;
  host.starts_up(field_input("rc-reads-input", "bashrc"));
  host.options.patience = 6 * kSecond;  // the next line comes within a third of it
  host.go();
  CHECK(host.looked);
  host.ends();
}

// ---- sudo

FIELD_CASE("slow-sudo: measured as a plain user") {
  Reach host;
  host.stub("sudo", "echo >>" + host.dir.path("started") + "\nexec sleep 1000");
  host.options.patience = 5 * kSecond;
  host.go();
  REQUIRE(host.looked);
  CHECK(host.hello->how == "user");
  CHECK(has(host.hello->why_user, "sudo"));
  CHECK(host.opened == 2);
  CHECK(Files().read(host.dir.path("started")).value() == "\n");
  host.ends();
}

FIELD_CASE("slow-sudo: one that answers after that finds no input, and leaves nothing") {
  Reach host;
  const std::string answers = host.dir.path("answers");
  // As sudo: a signal of its user's does not reach it.
  host.stub(
      "sudo",
      "shift 3\nexec setsid --wait /bin/sh -c 'until [ -e \"$0\" ]; do sleep 0.05; done; exec \"$@\"' " +
          answers + " \"$@\"");
  host.options.patience = 5 * kSecond;
  host.go();
  REQUIRE(host.looked);
  CHECK(host.hello->how == "user");
  REQUIRE(Files().write(answers, "").ok());
  host.ends();
}

FIELD_CASE("sudo-cannot-resolve-host") {
  Reach host;
  const bool allowed = GENERATE(true, false);
  host.stub("sudo", "echo 'sudo: unable to resolve host gpu01: Name or service not known' >&2\n" +
                        std::string(allowed ? "shift 3; exec \"$@\""
                                            : "echo 'sudo: a password is required' >&2; exit 1"));
  host.go();
  REQUIRE(host.looked);
  CHECK(host.hello->how == (allowed ? "sudo" : "user"));
  CHECK(has(host.hello->why_user, "a password is required") == !allowed);
  CHECK(host.hello->why_user.find('\n') == std::string::npos);
  host.ends();
}

// ---- terminals

FIELD_CASE("terminal-between") {
  Reach host;
  if (!Files().exists("/usr/bin/script")) return;
  host.options.argv = host.shell("script");
  host.options.argv.insert(host.options.argv.end(), {"-qec", "/bin/sh", "/dev/null"});
  host.go();
  host.is_gone(Code::failed, "terminal");
  CHECK(host.opened == 1);
}

FIELD_CASE("terminal-between: what a host sends is not shown unless it is text") {
  Reach host;
  host.dir.write("echoed", std::string("\x1f\x8b\x08\x00\x93\xfe\x12\x80\xff\x05", 10) +
                               std::string(500, '\xe7') + "\n");
  host.options.argv = {"/bin/sh", "-c", "cat " + host.dir.path("echoed") + "; exit 1"};
  host.go();
  REQUIRE(host.gone);
  CHECK(host.gone->message == one_line(host.gone->message));
  CHECK_FALSE(has(host.gone->message, "\xe7"));
}

FIELD_CASE("recorder-says-so") {
  Reach host;
  if (!Files().exists("/usr/bin/script")) return;
  host.options.argv = host.shell("/bin/sh");
  host.options.argv.insert(
      host.options.argv.end(),
      {"-c", "echo 'ATTENTION! This session is recorded.'; exec script -qec /bin/sh /dev/null"});
  host.go();
  REQUIRE(host.gone);
  CHECK(host.gone->code == Code::failed);
  CHECK_FALSE(has(host.gone->message, "ATTENTION"));
  CHECK(host.opened == 1);
}

}  // namespace muster::tests
