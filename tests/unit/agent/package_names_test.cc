// Which packages a step means where a name has alternatives, is optional, or contains the kernel's release.
#include "agent/steps/packages/package_names.h"

#include "agent/core/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

// A machine with two kernels, the newer one last by name, and nothing installed.
struct Machine {
  FakeMachine machine;
  StepContext context = machine.context();
  Machine() {
    machine.put("/var/lib/dpkg/status", "");
    machine.put("/usr/lib/modules/6.1.0-9-amd64/modules.dep", "");
    machine.put("/usr/lib/modules/6.1.0-56-amd64/modules.dep", "");
  }
  Status apply(const Json& params) { return find_step_module("package")->apply(context, params); }
  Result<CheckResult> check(const Json& params) {
    return find_step_module("package")->check(context, params);
  }
  bool installed(const std::string& name) const {
    return machine.get("/var/lib/dpkg/status").find("Package: " + name + "\n") != std::string::npos;
  }
  // The packages of the last installation, as apt's command line has them.
  std::string last_install() const {
    for (auto call = machine.calls.rbegin(); call != machine.calls.rend(); ++call)
      if (const auto at = call->find("--no-install-recommends"); at != std::string::npos)
        return call->substr(at);
    return "";
  }
};

const Json kDriver = {{"names", {"nvidia-open-570=570.172.08-*|nvidia-open=570.172.08-*"}}};

TEST_CASE("package: of two names, the one that the archive has in this version", "[packages]") {
  Machine m;
  SECTION("a branch in the name") {
    m.machine.archive = {{"nvidia-open-570", {"570.211.01-1", "570.172.08-1"}}, {"nvidia-open", {"595.1-1"}}};
    REQUIRE(m.apply(kDriver).ok());
    CHECK(m.installed("nvidia-open-570"));
    CHECK_FALSE(m.installed("nvidia-open"));
  }
  SECTION("no branch in the name") {
    m.machine.archive = {{"nvidia-open", {"595.1-1", "570.172.08-1"}}};
    REQUIRE(m.apply(kDriver).ok());
    CHECK(m.installed("nvidia-open"));
    CHECK_FALSE(m.installed("nvidia-open-570"));
  }
  SECTION("both, but only the second in this version") {
    m.machine.archive = {{"nvidia-open-570", {"570.211.01-1"}}, {"nvidia-open", {"570.172.08-1"}}};
    REQUIRE(m.apply(kDriver).ok());
    CHECK_FALSE(m.installed("nvidia-open-570"));
  }
  CHECK(m.check(kDriver)->holds == Holds::yes);
  CHECK_FALSE(m.machine.called("force-confold update"));
}

TEST_CASE("package: alternatives that are installed start no process", "[packages]") {
  Machine m;
  m.machine.put("/var/lib/dpkg/status",
                "Package: nvidia-open\nStatus: install ok installed\nVersion: 570.172.08-1\n\n");
  CHECK(m.check(kDriver)->holds == Holds::yes);
  CHECK(m.machine.calls.empty());
  // In another version, it is not the wanted one.
  CHECK(m.check({{"names", {"nvidia-open-580=580.95.05-*|nvidia-open=580.95.05-*"}}})->holds == Holds::no);
}

TEST_CASE("package: stale lists decide nothing", "[packages]") {
  Machine m;
  m.machine.archive = {{"nvidia-open", {"570.172.08-1"}}, {"nvlsm", {"2025.10.11-1"}}};
  m.machine.lists_are_stale = true;
  Json params = kDriver;
  params["if_offered"] = {"nvlsm"};
  REQUIRE(m.apply(params).ok());
  CHECK(m.installed("nvidia-open"));
  CHECK(m.installed("nvlsm"));
}

TEST_CASE("package: an optional package is left out only where no archive has it", "[packages]") {
  const Json params = {{"names", {"fio"}}, {"if_offered", {"imex-570=570.1-*|imex=570.1-*"}}};
  const auto with = [&](Machine& m, std::vector<std::string> versions) {
    m.machine.archive = {{"fio", {"3.36-1"}}};
    if (!versions.empty()) m.machine.archive["imex"] = std::move(versions);
    return m.apply(params).ok() ? m.last_install() : "failed";
  };
  Machine without;
  CHECK(with(without, {}).ends_with(" fio"));
  CHECK(without.check(params)->holds == Holds::yes);
  // What the archive has later on is nothing that the machine lacks.
  without.machine.archive["imex"] = {"570.1-1"};
  without.machine.calls.clear();
  CHECK(without.check(params)->holds == Holds::yes);
  CHECK(without.machine.calls.empty());

  Machine all;
  CHECK(with(all, {"595.1-1", "570.1-1"}).ends_with(" fio imex=570.1-*"));
  CHECK(all.check(params)->holds == Holds::yes);
  Json held = params;
  held["hold"] = true;
  REQUIRE(all.apply(held).ok());
  CHECK(all.machine.called("apt-mark hold fio imex"));
  // In another version only: apt gets the wanted one, and refuses it.
  Machine other;
  CHECK(with(other, {"595.1-1"}).ends_with(" fio imex=570.1-*"));
}

TEST_CASE("package: {kernel} is the newest kernel's release", "[packages]") {
  Machine m;
  const Json params = {{"names", {"linux-headers-{kernel}"}}};
  CHECK(m.check(params)->diff == "not installed: linux-headers-6.1.0-56-amd64");
  REQUIRE(m.apply(params).ok());
  CHECK(m.installed("linux-headers-6.1.0-56-amd64"));
  CHECK(m.check(params)->holds == Holds::yes);
  FakeMachine empty;
  empty.put("/var/lib/dpkg/status", "");
  StepContext context = empty.context();
  CHECK(find_step_module("package")->check(context, params).error().code == Code::not_found);
  CHECK(m.check({{"names", {"fio"}}}).ok());  // which needs no kernel
}

TEST_CASE("package: no node waits for its share of a phased update", "[packages]") {
  Machine m;
  m.machine.archive = {{"fio", {"3.36-1"}}};
  REQUIRE(m.apply({{"names", {"fio"}}}).ok());
  int looked = 0;
  for (const auto& call : m.machine.calls)
    if (call.starts_with("apt-get ")) {
      INFO(call);
      ++looked;
      CHECK(call.find(" -o APT::Get::Always-Include-Phased-Updates=true ") != std::string::npos);
    }
  CHECK(looked >= 2);  // simulated, then done
}

TEST_CASE("package: a name that is empty is refused", "[packages]") {
  Machine m;
  for (const char* wrong : {"", "|", "=1", "a|=1"})
    CHECK(m.check({{"names", {wrong}}}).error().code == Code::invalid);
}

TEST_CASE("apt_repository: pockets of the system's own suite", "[packages]") {
  Machine m;
  m.machine.put("/usr/share/keyrings/k.gpg", "key");
  m.machine.put("/etc/os-release", "VERSION_CODENAME=noble\n");
  m.machine.put("/etc/apt/sources.list", "deb http://mirror.example/ubuntu noble main\n");
  Json params = {{"name", "more"},
                 {"pockets", {"updates"}},
                 {"components", {"restricted", "multiverse"}},
                 {"signed_by", "/usr/share/keyrings/k.gpg"}};
  REQUIRE(find_step_module("apt_repository")->apply(m.context, params).ok());
  CHECK(m.machine.get("/etc/apt/sources.list.d/muster-more.sources")
            .find("URIs: http://mirror.example/ubuntu\nSuites: noble noble-updates\nComponents: restricted "
                  "multiverse\n") != std::string::npos);
  params["suites"] = {"noble"};
  CHECK(find_step_module("apt_repository")->check(m.context, params).error().code == Code::invalid);
}

}  // namespace
}  // namespace muster
