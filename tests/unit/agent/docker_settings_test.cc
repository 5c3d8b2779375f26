// /etc/docker/daemon.json of machines made by hand.
#include <algorithm>

#include "tests/catch.h"
#include "tests/unit/agent/step_run.h"
#include "tests/unit/plan/shipped.h"

namespace muster {
namespace {

constexpr const char* kFile = "/etc/docker/daemon.json";
constexpr const char* kRecord = "/etc/docker/daemon.json.muster";

// The object as one object's member `settings`.
Json settings(const Json& object) { return {{"settings", object}}; }

struct Run : testing::StepRun {
  void install(const std::string& package, const std::string& version) const {
    machine.put("/var/lib/dpkg/status",
                "Package: " + package + "\nStatus: install ok installed\nVersion: " + version + "\n\n");
  }
  // Applies them twice, and returns what dockerd reads.
  Json applied(const Json& params) {
    const Status done = apply("docker_settings", params);
    INFO((done.ok() ? "" : done.error().message));
    REQUIRE(done.ok());
    CHECK(check("docker_settings", params)->holds == Holds::yes);
    const auto made = machine.snapshot();
    CHECK(apply("docker_settings", params).ok());
    CHECK(machine.snapshot() == made);
    return Json::parse(machine.get(kFile));
  }
  std::string note(const Json& params) { return check("docker_settings", params)->note; }
};

TEST_CASE("docker_settings: the site's file gets what it lacks, and keeps what it has", "[steps]") {
  Run r;
  SECTION("there is no file") {
    CHECK(r.applied(settings({{"iptables", false}})) == Json::parse(R"({"iptables": false})"));
  }
  SECTION("there is one") {
    r.machine.put(kFile, R"({"log-driver": "journald", "features": {"buildkit": true}, "debug": true,
                             "registry-mirrors": ["https://site.example"]})");
    Json params = settings({{"iptables", false}, {"log-driver", "local"}, {"features", {{"cdi", true}}}});
    params["lists"] = {{"registry-mirrors", "https://a.example https://site.example"}};
    CHECK(r.applied(params) == Json::parse(R"({"iptables": false, "log-driver": "journald", "debug": true,
        "features": {"buildkit": true, "cdi": true},
        "registry-mirrors": ["https://site.example", "https://a.example"]})"));
    CHECK(r.note(params).find("log-driver") != std::string::npos);
    CHECK(r.note(params).find("registry-mirrors") == std::string::npos);
  }
}

TEST_CASE("docker_settings: muster's values change and go, the site's stay", "[steps]") {
  Run r;
  r.machine.put(kFile, R"({"registry-mirrors": ["https://site.example"], "log-opts": {"max-file": "3"}})");
  Json params = settings({{"data-root", "/a"},
                          {"live-restore", true},
                          {"log-opts", {{"max-size", "50m"}}},
                          {"features", {{"cdi", true}}}});
  params["lists"] = {{"registry-mirrors", {"https://a.example", "https://b.example"}}};
  (void)r.applied(params);
  params = settings({{"data-root", "/b"}});
  params["lists"] = {{"registry-mirrors", {"https://b.example"}}};
  CHECK(r.applied(params) == Json::parse(R"({"data-root": "/b", "log-opts": {"max-file": "3"},
      "registry-mirrors": ["https://site.example", "https://b.example"]})"));
  CHECK(r.applied(settings(Json::object())) ==
        Json::parse(R"({"log-opts": {"max-file": "3"}, "registry-mirrors": ["https://site.example"]})"));
  CHECK_FALSE(r.machine.files().exists(kRecord));
}

TEST_CASE("docker_settings: a value that the site changed is the site's", "[steps]") {
  Run r;
  (void)r.applied(settings({{"live-restore", true}}));
  r.machine.put(kFile, R"({"live-restore": false})");
  CHECK(r.applied(settings({{"live-restore", true}})) == Json::parse(R"({"live-restore": false})"));
  CHECK(r.applied(settings(Json::object())) == Json::parse(R"({"live-restore": false})"));
}

TEST_CASE("docker_settings: a key on which the node depends, and which the site set otherwise, is named",
          "[steps]") {
  Run r;
  Json params = settings({{"bridge", "none"}, {"bip", ""}, {"features", {{"cdi", true}}}, {"debug", false}});
  params["required"] = {"bridge", "bip", "features.cdi"};
  const auto [text, key] = GENERATE(table<std::string, std::string>({
      {R"({"bridge": "br0", "debug": true})", "bridge"},
      {R"({"bip": "10.201.0.1/24", "debug": true})", "bip"},
      {R"({"features": {"cdi": false}, "debug": true})", "features.cdi"},
      {R"({"features": "none", "debug": true})", "features"},
  }));
  if (key == "features") params["required"].push_back("features");
  r.machine.put(kFile, text);
  const auto seen = r.check("docker_settings", params);
  REQUIRE(seen.ok());
  CHECK(seen->holds == Holds::no);
  CHECK(seen->diff.find("`" + key + "`") != std::string::npos);
  CHECK(r.apply("docker_settings", params).error().code == Code::conflict);
  CHECK(r.machine.get(kFile) == text);
  CHECK_FALSE(r.machine.files().exists(kRecord));
  params["required"] = {"debug.x"};
  CHECK(r.apply("docker_settings", params).ok());  // where the node does not depend on it
}

TEST_CASE("docker_settings: one key can take the place of another", "[steps]") {
  Run r;
  const auto with = [](const char* bridge, const char* bip) {
    Json params = settings({{"bridge", bridge}, {"bip", bip}, {"iptables", false}});
    params["required"] = {"bridge", "bip", "iptables"};
    return params;
  };
  SECTION("it was written with a record") {
    CHECK(r.applied(with("none", "")) == Json::parse(R"({"bridge": "none", "iptables": false})"));
  }
  SECTION("it was written before there was a record") {
    r.machine.put(kFile, R"({"iptables": false, "ip6tables": false, "bridge": "none",
                             "live-restore": true, "log-driver": "local"})");
  }
  CHECK(r.applied(with("", "10.201.0.1/24")) ==
        Json::parse(R"({"bip": "10.201.0.1/24", "iptables": false})"));
}

TEST_CASE("docker_settings: the settings in an image with hpc count as muster's", "[steps]") {
  Run r;
  const auto playbooks = testing::shipped_playbooks();
  const auto& steps = playbooks.at("hpc").steps;
  const auto step = std::find_if(steps.begin(), steps.end(),
                                 [](const auto& one) { return one.name == "docker settings of the image"; });
  REQUIRE(step != steps.end());
  const Json argv = step->params["argv"];
  r.machine.put(kFile, argv.back().get<std::string>());
  CHECK(r.applied(settings({{"iptables", false}})) == Json::parse(R"({"iptables": false})"));
}

TEST_CASE("docker_settings: what is not a JSON object is not touched", "[steps]") {
  Run r;
  const std::string text = GENERATE(as<std::string>{}, R"({"iptables": true,})", "[1]", "iptables = false");
  r.machine.put(kFile, text);
  CHECK(r.check("docker_settings", settings({{"iptables", false}})).error().code == Code::conflict);
  const Status done = r.apply("docker_settings", settings({{"iptables", false}}));
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().code == Code::conflict);
  CHECK(done.error().message.find(kFile) != std::string::npos);
  CHECK(r.machine.get(kFile) == text);
  CHECK_FALSE(r.machine.files().exists(kRecord));
}

TEST_CASE("docker_settings: some settings are for newer versions of Docker", "[steps]") {
  Run r;
  Json params = settings({{"iptables", false}});
  params["from_version"] = {{"25", {{"features", {{"cdi", true}}}}}};
  const auto [package, version, cdi] = GENERATE(table<std::string, std::string, bool>({
      {"docker.io", "20.10.24+dfsg1-1+deb12u1", false},
      {"docker.io", "26.1.5+dfsg1-9+b9", true},
      {"docker.io", "25.0.0", true},
      {"docker-ce", "5:27.3.1-1~debian.12~bookworm", true},
      {"docker-ce", "5:24.0.9-1~debian.12~bookworm", false},
      {"podman", "30.0", false},
  }));
  r.install(package, version);
  CHECK(r.applied(params).contains("features") == cdi);
}

TEST_CASE("docker_settings: after a power cut, the value before and the one after it are muster's",
          "[steps]") {
  Run r;
  (void)r.applied(settings({{"data-root", "/a"}}));
  r.machine.put(kRecord, R"([{"data-root": "/a"}, {"data-root": "/b"}])");
  SECTION("before the file was written") {}
  SECTION("after it was written") { r.machine.put(kFile, R"({"data-root": "/b"})"); }
  SECTION("the wanted value is there, only the record is not done") {
    r.machine.put(kFile, R"({"data-root": "/c"})");
    r.machine.put(kRecord, R"([{"data-root": "/b"}, {"data-root": "/c"}])");
    CHECK(r.check("docker_settings", settings({{"data-root", "/c"}}))->holds == Holds::no);
  }
  CHECK(r.applied(settings({{"data-root", "/c"}})) == Json::parse(R"({"data-root": "/c"})"));
  CHECK(Json::parse(r.machine.get(kRecord)) == Json::parse(R"([{"data-root": "/c"}])"));
}

TEST_CASE("docker_settings: parameters of a wrong form are refused", "[steps]") {
  Run r;
  r.install("docker.io", "26.1.5");
  Json params = settings({{"iptables", false}});
  SECTION("a list that is a number") { params["lists"] = {{"registry-mirrors", 1}}; }
  SECTION("a version that is none") { params["from_version"] = {{"newest", Json::object()}}; }
  SECTION("a version without settings") { params["from_version"] = {{"25", true}}; }
  CHECK(r.apply("docker_settings", params).error().code == Code::invalid);
  CHECK_FALSE(r.machine.files().exists(kFile));
}

}  // namespace
}  // namespace muster
