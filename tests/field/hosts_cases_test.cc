// Hosts that lived before muster came: what they have kept, and what step modules do about it.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "agent/step.h"
#include "agent/steps/step_modules.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

namespace fs = std::filesystem;

// A fake machine on which a test says how some programs behave.
class Host : public FakeMachine {
 public:
  using Program = std::function<Result<Output>(const Command&)>;
  std::map<std::string, Program> programs;  // by name; one that answers an error leaves it to the fake

  Host() { put("/run/systemd/system/x", ""); }
  Result<Output> run(const Command& command) override {
    const auto it = programs.find(command.argv[0]);
    if (it == programs.end()) return FakeMachine::run(command);
    auto out = it->second(command);
    if (!out.ok()) return FakeMachine::run(command);
    calls.push_back(steps::join(command.argv, " "));
    return out;
  }
  CheckResult check(const std::string& module, const Json& params) {
    StepContext c = context();
    auto out = find_step_module(module)->check(c, params);
    INFO((out.ok() ? "" : out.error().message));
    REQUIRE(out.ok());
    return *out;
  }
  Status apply(const std::string& module, const Json& params) {
    StepContext c = context();
    return find_step_module(module)->apply(c, params);
  }
  size_t count(const std::string& part) const {
    return static_cast<size_t>(std::count_if(calls.begin(), calls.end(), [&](const std::string& call) {
      return call.find(part) != std::string::npos;
    }));
  }
  // Applied once and holding afterwards, and again without a call that `part` is in.
  void settles(const std::string& module, const Json& params, const std::string& part) {
    CHECK(check(module, params).holds == Holds::no);
    const Status applied = apply(module, params);
    INFO((applied.ok() ? "" : applied.error().message));
    REQUIRE(applied.ok());
    const CheckResult now = check(module, params);
    INFO(now.diff);
    CHECK(now.holds == Holds::yes);
    const size_t before = count(part);
    CHECK(apply(module, params).ok());
    CHECK(count(part) == before);
  }
};

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
const Result<Output> kToFake = fail(Code::not_found, "");

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// ---- apt and dpkg

// apt and dpkg as they are after a run that was cut off: apt refuses, dpkg goes on.
struct Interrupted {
  Host host;
  const std::string journal = "/var/lib/dpkg/updates/0001";

  Interrupted() {
    host.put("/var/lib/dpkg/status", field_input("dpkg-interrupted", "status"));
    host.put(journal, field_input("dpkg-interrupted", "journal"));
    host.programs["apt-get"] = [this](const Command& c) -> Result<Output> {
      const bool locks = has(c.argv, "install") && !has(c.argv, "--simulate");
      if ((locks || has(c.argv, "check")) && host.files().exists(journal))
        return Output{100, "", "E: dpkg was interrupted"};
      return kToFake;
    };
    host.programs["dpkg"] = [this](const Command& c) -> Result<Output> {
      if (!has(c.argv, "--configure") || !has(c.argv, "-a")) return Output{2, "", "dpkg: what?"};
      host.put("/var/lib/dpkg/status",
               replaced(host.get("/var/lib/dpkg/status") + host.get(journal), "ok unpacked", "ok installed"));
      REQUIRE(host.files().remove(journal).ok());
      return Output{0, "", ""};
    };
  }
};

FIELD_CASE("dpkg-interrupted") {
  Interrupted it;
  it.host.settles("package", {{"names", {"some-tool"}}}, "apt-get");
  CHECK(it.host.count("dpkg --force-confold --configure -a") == 1);
  CHECK_FALSE(it.host.files().exists(it.journal));
}

FIELD_CASE("dpkg-interrupted: what the journal says is only unpacked is not installed") {
  Interrupted it;
  it.host.settles("package", {{"names", {"zone-tables"}}}, "dpkg");
  CHECK(it.host.count(" install ") == 0);
  CHECK(it.host.check("package", {{"names", {"zone-tables=2026b-1"}}}).holds == Holds::yes);
}

FIELD_CASE("dpkg-interrupted: a run that is still at work is waited for") {
  Interrupted it;
  it.host.programs["apt-get"] = [&](const Command& c) -> Result<Output> {
    if (has(c.argv, "check")) REQUIRE(it.host.files().remove(it.journal).ok());  // the other one is done
    return kToFake;
  };
  it.host.settles("package", {{"names", {"some-tool"}}}, "apt-get");
  CHECK(it.host.count("dpkg --force-confold") == 0);
}

FIELD_CASE("dpkg-interrupted: without a journal dpkg is left alone") {
  Interrupted it;
  REQUIRE(it.host.files().remove(it.journal).ok());
  it.host.put("/var/lib/dpkg/updates/tmp.i", "");
  it.host.settles("package", {{"names", {"some-tool"}}}, "apt-get");
  CHECK(it.host.count("dpkg --force-confold") == 0);
}

FIELD_CASE("package-provided-name") {
  Host host;
  host.put("/var/lib/dpkg/status", field_input("package-provided-name", "status"));
  CHECK(host.check("package", {{"names", {"librail1"}}}).holds == Holds::yes);
  CHECK(host.apply("package", {{"names", {"librail1"}}}).ok());
  CHECK(host.count("apt-get") == 0);
  // A version is one of a package of that name.
  CHECK(host.check("package", {{"names", {"librail1=50.0-2"}}}).holds == Holds::no);
  // What is held is the package itself.
  const Json held = {{"names", {"librail1"}}, {"hold", true}};
  CHECK(host.check("package", held).holds == Holds::no);
  REQUIRE(host.apply("package", held).ok());
  CHECK(host.called("apt-mark hold librail1t64"));
  CHECK(host.check("package", held).holds == Holds::yes);
}

FIELD_CASE("package-provided-name: where apt has a package of that name, it is that one") {
  Host host;
  host.put("/var/lib/dpkg/status", field_input("package-provided-name", "status"));
  std::string offered;
  host.programs["apt-cache"] = [&](const Command&) -> Result<Output> { return Output{0, offered, ""}; };
  for (const char* name : {"mail-agent", "other-agent"}) {
    INFO(name);
    offered.clear();
    CHECK(host.check("package", {{"names", {name}}}).holds == Holds::yes);
    offered = fmt::format("Package: {}\nVersion: 7\n\n", name);
    CHECK(host.check("package", {{"names", {name}}}).holds == Holds::no);
  }
}

}  // namespace
}  // namespace muster::tests
