// The wire with a host that is not as it should be: scripts in place of the agent or of the host's programs.
#include "controller/hosts/bootstrap.h"
#include "controller/hosts/host_wire.h"
#include "tests/unit/hosts/wire_bench.h"

using namespace muster;

namespace {

Error lost_after(WireBench& bench) {
  bench.open();
  bench.until([&] { return bench.lost.has_value(); });
  CHECK_FALSE(bench.looked);
  bench.nothing_left();
  return *bench.lost;
}

}  // namespace

TEST_CASE("wire: a host that has not what is needed says which", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  SECTION("another kind of machine") {
    bench.stub("uname", "echo aarch64");
    const Error lost = lost_after(bench);
    CHECK(lost.code == Code::failed);
    CHECK(lost.message.find("aarch64") != std::string::npos);
  }
  SECTION("no folder can be made anywhere") {
    bench.stub("mktemp", "exit 1");
    CHECK(lost_after(bench).code == Code::failed);
  }
  SECTION("every file system is full") {
    bench.stub("head", "exit 1");
    CHECK(lost_after(bench).code == Code::failed);
  }
  SECTION("the agent does not run") {
    REQUIRE(Files().write(bench.dir.path("broken"), "#!/bin/sh\necho 'too old a kernel' >&2\nexit 1\n").ok());
    bench.options.agent = bench.dir.path("broken");
    const Error lost = lost_after(bench);
    CHECK(lost.code == Code::failed);
    CHECK(lost.message.find("too old a kernel") != std::string::npos);
  }
  SECTION("the agent breaks on its way") {
    bench.stub("gzip", "head -c 100");
    CHECK(lost_after(bench).code == Code::unavailable);
  }
  SECTION("the command here has no agent") {
    bench.options.agent = bench.dir.path("none");
    CHECK(lost_after(bench).code == Code::not_found);
  }
}

TEST_CASE("wire: a place where no program runs is passed over, and one that is full", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  const std::string run = bench.dir.path("run"), home = bench.dir.path("home");
  // Mounts of a name space of their own. Where none can be made there is nothing to try.
  const auto process = make_process();
  if (!process->run({.argv = {"unshare", "--mount", "mount", "-t", "tmpfs", "x", run}})->ok()) return;
  const bool full = GENERATE(true, false), nowhere = GENERATE(true, false);
  const std::string bad = full ? "size=1m" : "noexec";
  std::string mounts = "mount -t tmpfs -o " + bad + " bad " + run;
  if (nowhere)
    for (const std::string& place : {std::string("/dev/shm"), std::string("/tmp"), std::string("/var/tmp")})
      mounts += " && mount -t tmpfs -o " + bad + " bad " + place;
  // This test's own folders may lie below /tmp.
  bench.options.argv = {"unshare", "--mount", "/bin/sh", "-c",
                        "mount --bind " + bench.dir.path("bin") + " /mnt && " + mounts + " && mkdir -p " +
                            run + " && XDG_RUNTIME_DIR=" + run + " HOME=/proc PATH=/mnt:$PATH exec /bin/sh"};
  bench.open();
  bench.until([&] { return bench.looked.has_value() || bench.lost; });
  if (nowhere) {
    REQUIRE(bench.lost);
    CHECK(bench.lost->code == Code::failed);
  } else {
    REQUIRE(bench.hello);
    CHECK(bench.hello->folder == "/dev/shm");
    bench.leave();
  }
  bench.nothing_left();
}

TEST_CASE("wire: what ssh or another command says becomes the reason", "[hosts]") {
  WireBench bench;
  const auto says = [&](const std::string& script) {
    bench.options.argv = {"/bin/sh", "-c", script};
    return lost_after(bench);
  };
  SECTION("refused") {
    CHECK(says("echo 'ops@gpu01: Permission denied (publickey).' >&2; exit 255").code == Code::denied);
  }
  SECTION("unknown") {
    CHECK(
        says("echo 'ssh: Could not resolve hostname gpu01: Name or service not known' >&2; exit 255").code ==
        Code::not_found);
  }
  SECTION("away") {
    CHECK(says("echo 'ssh: connect to host gpu01 port 22: Connection refused' >&2; exit 255").code ==
          Code::unavailable);
  }
  SECTION("no such command") {
    bench.options.argv = {"no-such-command"};
    CHECK(lost_after(bench).code == Code::not_found);
  }
  SECTION("nothing at all") { CHECK(says("exit 1").code == Code::unavailable); }
  SECTION("no shell for this account") {
    CHECK(says("echo 'This account is currently not available.'; exit 1").code == Code::denied);
  }
  SECTION("it hangs") {
    bench.options.patience = 100;
    CHECK(says("exec sleep 1000").code == Code::unavailable);
  }
  SECTION("it prints without end") { CHECK(says("yes").code == Code::invalid); }
}

TEST_CASE("wire: an agent that sends something else ends it", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  const std::string hello = "echo '" + WireBench::hello_text() + "'\n";
  SECTION("garbage") { bench.agent_is(hello + "echo garbage; cat"); }
  SECTION("a request without a number") {
    bench.agent_is(hello + R"(echo '{"poll":{"have":[],"boot":"b"}}'; cat)");
  }
  SECTION("an endless line") { bench.agent_is(hello + "cat /dev/zero"); }
  SECTION("a hello that is none") { bench.agent_is("echo 'MUSTER1 {}'; cat"); }
  SECTION("a hello of a later version") {
    std::string later = hello;
    later.replace(later.find("\"version\":1"), 11, "\"version\":2");
    bench.agent_is(later + "cat");
  }
  CHECK(lost_after(bench).code == Code::invalid);
}

TEST_CASE("wire: an agent that ends is a lost connection", "[hosts]") {
  WireBench bench;
  bench.as_plain_user();
  bench.agent_is("echo '" + WireBench::hello_text() + "'; echo 'out of memory' >&2; exit 1");
  const Error lost = lost_after(bench);
  CHECK(lost.code == Code::unavailable);
  CHECK(lost.message.find("out of memory") != std::string::npos);
}

TEST_CASE("wire: left before the agent is there", "[hosts]") {
  WireBench bench;
  bench.options.argv = {"/bin/sh", "-c", "exec sleep 1000"};
  bench.open();
  if (GENERATE(true, false)) bench.until([&] { return true; });
  bench.leave();
  CHECK_FALSE(bench.lost);
}
