// .deb files that the module `package` installs by URL and digest.
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/unit/agent/step_run.h"

namespace muster {
namespace {

const std::string kUrl = "https://mirror.example/enroot.deb";
const std::string kCapsUrl = "https://mirror.example/enroot-caps.deb";
const std::string kEnroot = "Package: enroot\nVersion: 4.1.2-1\n";
const std::string kCaps = "Package: enroot+caps\nVersion: 4.1.2-1\n";

Json file(const std::string& url, const std::string& content) {
  return {{"url", url}, {"sha256", sha256(content)}};
}
Json only(const Json& one) { return {{"files", Json::array({one})}}; }

struct Run : testing::StepRun {
  Run() {
    machine.put("/var/lib/dpkg/status", "");
    machine.web = {{kUrl, kEnroot}, {kCapsUrl, kCaps}};
  }
  bool holds(const Json& params) { return check("package", params)->holds == Holds::yes; }
  Code refused(const Json& params) {
    const Status done = apply("package", params);
    REQUIRE_FALSE(done.ok());
    return done.error().code;
  }
  // Calls of apt that installed something.
  std::vector<std::string> installations() const {
    std::vector<std::string> out;
    for (const auto& call : machine.calls)
      if (call.starts_with("apt-get ") && call.find(" install ") != std::string::npos &&
          call.find("--simulate") == std::string::npos)
        out.push_back(call);
    return out;
  }
  void check_nothing_is_left() const {
    CHECK(machine.files().list("/var/cache/muster/packages").empty());
    CHECK_FALSE(machine.files().exists("/var/lib/muster/package-files.json"));
    CHECK(machine.get("/var/lib/dpkg/status").empty());
  }
};

TEST_CASE("package: files and names are installed in one run, and then neither is fetched again",
          "[packages]") {
  Run r;
  const Json params = {{"names", {"fio"}}, {"files", {file(kUrl, kEnroot), file(kCapsUrl, kCaps)}}};
  CHECK_FALSE(r.holds(params));
  REQUIRE(r.apply("package", params).ok());
  REQUIRE(r.installations().size() == 1);
  CHECK(r.installations()[0].find(" fio ") != std::string::npos);
  for (const char* name : {"fio", "enroot", "enroot+caps"})
    CHECK(r.machine.get("/var/lib/dpkg/status").find(std::string("Package: ") + name + "\n") !=
          std::string::npos);
  CHECK(r.machine.files().list("/var/cache/muster/packages").empty());
  r.machine.web.clear();
  const size_t calls = r.machine.calls.size();
  CHECK(r.holds(params));
  CHECK(r.apply("package", params).ok());
  CHECK(r.machine.calls.size() == calls);
}

TEST_CASE("package: with a wrong digest nothing is installed, and the URL is named", "[packages]") {
  Run r;
  r.machine.web[kCapsUrl] = "Package: enroot+caps\nVersion: 6.6.6\n";
  const Json params = {{"names", {"fio"}}, {"files", {file(kUrl, kEnroot), file(kCapsUrl, kCaps)}}};
  const Status done = r.apply("package", params);
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().message.find(kCapsUrl) != std::string::npos);
  CHECK(r.installations().empty());
  r.check_nothing_is_left();
  CHECK_FALSE(r.holds(params));
}

TEST_CASE("package: a file that is no package, or that apt refuses, leaves nothing", "[packages]") {
  Run r;
  SECTION("a page of the proxy") {
    r.machine.web[kUrl] = "<html>";
    const Status done = r.apply("package", only(file(kUrl, "<html>")));
    REQUIRE_FALSE(done.ok());
    CHECK(done.error().message.find(kUrl) != std::string::npos);
  }
  SECTION("apt would remove a package for it") {
    r.machine.apt_removes = "slurm-wlm";
    CHECK(r.refused(only(file(kUrl, kEnroot))) == Code::conflict);
  }
  SECTION("its dependency has a version that is not in the set") {
    r.machine.apt_brings = "Inst enroot (4.1.2-1 local-deb [amd64])\nInst libenroot (4.0.0-1 x [amd64])\n";
    Json params = only(file(kUrl, kEnroot));
    params["locked"] = {{{"packages", {"libenroot"}}, {"version", "4.1.2-*"}}};
    CHECK(r.refused(params) == Code::conflict);
  }
  SECTION("the image must have it") {
    Json params = only(file(kUrl, kEnroot));
    params["install"] = false;
    CHECK(r.refused(params) == Code::conflict);
  }
  r.check_nothing_is_left();
}

TEST_CASE("package: of a file that was installed, dpkg's status decides", "[packages]") {
  Run r;
  const Json params = only(file(kUrl, kEnroot));
  REQUIRE(r.apply("package", params).ok());
  SECTION("removed") { r.machine.put("/var/lib/dpkg/status", ""); }
  SECTION("replaced by another version") {
    r.machine.put("/var/lib/dpkg/status",
                  "Package: enroot\nStatus: install ok installed\nVersion: 4.2.0-1\n\n");
  }
  CHECK_FALSE(r.holds(params));
  REQUIRE(r.apply("package", params).ok());
  CHECK(r.installations().back().find("--allow-downgrades") != std::string::npos);
  CHECK(r.holds(params));
}

TEST_CASE("package: a file with another digest is installed, even if its version is the same", "[packages]") {
  Run r;
  const Json first = only(file(kUrl, kEnroot));
  REQUIRE(r.apply("package", first).ok());
  const std::string rebuilt = kEnroot + "Description: built again\n";
  r.machine.web[kUrl] = rebuilt;
  const Json second = only(file(kUrl, rebuilt));
  CHECK_FALSE(r.holds(second));
  REQUIRE(r.apply("package", second).ok());
  REQUIRE(r.installations().size() == 2);
  CHECK(r.installations()[1].find("--reinstall") != std::string::npos);
  CHECK(r.holds(second));
  CHECK_FALSE(r.holds(first));  // it is no longer what is installed
}

TEST_CASE("package: packages of files are held and released with the names", "[packages]") {
  Run r;
  Json params = {{"names", {"fio"}}, {"files", {file(kUrl, kEnroot)}}, {"hold", true}};
  REQUIRE(r.apply("package", params).ok());
  CHECK(r.machine.called("apt-mark hold enroot fio"));
  CHECK(r.holds(params));
  params["hold"] = false;
  CHECK_FALSE(r.holds(params));
}

TEST_CASE("package: a file whose variables are not set is left out; half of one is refused", "[packages]") {
  Run r;
  const auto with = [](const char* url, const std::string& digest) {
    return only({{"url", url}, {"sha256", digest}});
  };
  CHECK(r.holds(with("", "")));
  CHECK(r.apply("package", with("", "")).ok());
  CHECK(r.machine.calls.empty());
  CHECK(r.refused(with("", sha256("x"))) == Code::invalid);
  CHECK(r.refused(with(kUrl.c_str(), "")) == Code::invalid);
  CHECK(r.refused(with(kUrl.c_str(), "abc")) == Code::invalid);
  CHECK(r.refused(with("ftp://mirror.example/a.deb", sha256("x"))) == Code::invalid);
  CHECK(r.refused({{"hold", true}}) == Code::invalid);  // neither names nor files
}

}  // namespace
}  // namespace muster
