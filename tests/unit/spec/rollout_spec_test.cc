// The section `rollout:`: its defaults, and what is refused with its place.
#include <fmt/format.h>

#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/catch.h"

using namespace muster;

namespace {

struct Cluster {
  std::string rollout = "rollout: {}";
  std::string gpu_power = "{ driver: redfish, address: \"10.20.1.{n+10}\", secret: bmc }";
  std::string gpu_disks = "";
  std::string storage = "";
  std::string limits = "";
};

// `rollout` begins in line 1.
std::string text_of(const Cluster& c) {
  return c.rollout + fmt::format(R"(
cluster: gaggle
network: {{ provisioning: {{ cidr: 10.20.0.0/24 }}, bmc: {{ cidr: 10.20.1.0/24 }} }}
images: {{ gpu: {{ recipe: debian-12 }} }}
nodes:
  - name: gpu[01-04]
    role: gpu
    power: {}
    mac: "52:54:00:aa:00:{{n}}"
    image: gpu
    disks: {{ os: {{ match: {{ serial: S1 }} }}{} }}
  - {{ name: head, role: head, adopt: {{ host: 10.20.0.78, user: root, host_key: "SHA256:AAAAC3NzaC1lZDI1NTE5AAAAIMoH8DjInlSv4hPRVSz" }} }}
  - {{ name: old, role: legacy, adopt: {{ host: 10.20.0.77, user: root, host_key: "SHA256:AAAAC3NzaC1lZDI1NTE5AAAAIMoH8DjInlSv4hPRVSz" }} }}
roles:
  gpu: {{ playbooks: [ base, scheduler, storage-shared, storage-ceph ] }}
  head: {{ playbooks: [ base, scheduler ], leads: [ scheduler ] }}
  legacy: {{ playbooks: [ base ] }}
{}
{}
)",
                                 c.gpu_power, c.gpu_disks, c.storage, c.limits);
}

ParsedSpec parsed(const Cluster& c) { return parse_spec(text_of(c)); }

// The only error, "LINE PATH".
std::string place_of_error(const Cluster& c) {
  const ParsedSpec spec = parsed(c);
  std::string all;
  for (const auto& error : spec.errors) all += to_string(error, "f") + "\n";
  INFO(all);
  CHECK(spec.errors.size() == 1);
  return spec.errors.empty() ? "" : fmt::format("{} {}", spec.errors[0].line, spec.errors[0].path);
}

const char* kDisk = ", fast: { match: { serial: S2 }, policy: format-if-blank }";

}  // namespace

TEST_CASE("rollout: every key has a default", "[spec][rollout]") {
  CHECK_FALSE(parsed({"vars: {}"}).spec.rollout);
  for (const char* empty : {"rollout: {}", "rollout:"}) {
    const ParsedSpec spec = parsed({empty});
    CHECK(spec.errors.empty());
    REQUIRE(spec.spec.rollout);
    const RolloutSpec& r = *spec.spec.rollout;
    CHECK(r.roles == std::vector<std::string>{"gpu"});  // head was adopted
    CHECK(r.max_unavailable == 1);
    CHECK(r.max_unavailable_percent == 0);
    CHECK(r.canary == 1);
    CHECK(r.failure_budget == 0);
    CHECK(r.window == 8 * 60 * kMinute);
    CHECK(r.drain_timeout == 2 * 60 * kMinute);
    CHECK(r.trial == spec.spec.limits.trial);
    CHECK(r.acceptance.empty());
    CHECK(r.rebuild == Rebuild::never);
    CHECK_FALSE(r.rebuilt_images);
  }
}

TEST_CASE("rollout: what is declared counts", "[spec][rollout]") {
  const ParsedSpec spec = parsed(
      {"rollout: { roles: [ gpu ], max_unavailable: \"25 %\", canary: 2, failure_budget: 3, window: 6 h, "
       "drain_timeout: 30 min, trial: 50 min, acceptance: quick, rebuilt_images: true }"});
  REQUIRE(spec.errors.empty());
  const RolloutSpec& r = *spec.spec.rollout;
  CHECK(r.max_unavailable_percent == 25);
  CHECK(r.canary == 2);
  CHECK(r.failure_budget == 3);
  CHECK(r.window == 6 * 60 * kMinute);
  CHECK(r.drain_timeout == 30 * kMinute);
  CHECK(r.trial == 50 * kMinute);
  CHECK(r.acceptance == "quick");
  CHECK(r.rebuilt_images);
}

TEST_CASE("rollout: images that are built again each day or week are covered by the approval",
          "[spec][rollout]") {
  const std::map<std::string, Rebuild> words = {
      {"daily", Rebuild::daily}, {"weekly", Rebuild::weekly}, {"never", Rebuild::never}};
  for (const auto& [word, rebuild] : words) {
    CAPTURE(word);
    const ParsedSpec spec = parsed({fmt::format("rollout: {{ rebuild: {} }}", word)});
    REQUIRE(spec.errors.empty());
    CHECK(spec.spec.rollout->rebuild == rebuild);
    CHECK(spec.spec.rollout->rebuilt_images == (rebuild != Rebuild::never));
    for (const char* allowed : {"true", "false"}) {
      const Cluster both{fmt::format("rollout:\n  rebuild: {}\n  rebuilt_images: {}", word, allowed)};
      const bool refused = rebuild != Rebuild::never && allowed == std::string("false");
      CHECK(parsed(both).errors.empty() != refused);
      if (refused) CHECK(place_of_error(both) == "3 rollout.rebuilt_images");
    }
  }
  for (const char* bad : {"hourly", "true", "7", "[ daily ]", "Daily"}) {
    CAPTURE(bad);
    CHECK(place_of_error({fmt::format("rollout: {{ rebuild: {} }}", bad)}) == "1 rollout.rebuild");
  }
}

TEST_CASE("rollout: a batch of zero and other sizes that are a slip are refused", "[spec][rollout]") {
  for (const char* bad : {"0", "\"0 %\"", "\"101 %\"", "\"-1\"", "\"some\"", "\"%\"", "-1", "99999"}) {
    INFO(bad);
    CHECK(place_of_error({fmt::format("rollout: {{ max_unavailable: {} }}", bad)}) ==
          "1 rollout.max_unavailable");
  }
  CHECK(place_of_error({"rollout: { canary: 0 }"}) == "1 rollout.canary");
  CHECK(place_of_error({"rollout: { failure_budget: -1 }"}) == "1 rollout.failure_budget");
  CHECK(place_of_error({"rollout: { window: 1 min }"}) == "1 rollout.window");
  CHECK(place_of_error({"rollout: { batch: 4 }"}) == "1 rollout.batch");
}

TEST_CASE("rollout: a trial longer than the window is refused", "[spec][rollout]") {
  CHECK(place_of_error({"rollout:\n  window: 1 h\n  trial: 61 min"}) == "3 rollout.trial");
  CHECK(place_of_error({"rollout: { window: 1 h }"}) == "1 rollout.window");  // limits.trial is 2 h
  CHECK(parsed({"rollout: { window: 1 h, trial: 1 h }"}).errors.empty());
  Cluster c{"rollout: { window: 1 h }"};
  c.limits = "limits: { trial: 1 h }";
  CHECK(parsed(c).errors.empty());
}

TEST_CASE("rollout: unknown roles, roles without an image, adopted nodes are refused", "[spec][rollout]") {
  CHECK(place_of_error({"rollout: { roles: [ gpu, gpus ] }"}) == "1 rollout.roles[1]");
  CHECK(place_of_error({"rollout: { roles: [ gpu, gpu ] }"}) == "1 rollout.roles[1]");
  CHECK(place_of_error({"rollout: { roles: [ head ] }"}) == "1 rollout.roles[0]");
  CHECK(place_of_error({"rollout: { roles: [ legacy ] }"}) == "1 rollout.roles[0]");
}

TEST_CASE("rollout: without images there is nothing to roll out", "[spec][rollout]") {
  std::string text = text_of({});
  for (const std::string line : {"    image: gpu\n", "images: { gpu: { recipe: debian-12 } }\n"})
    text.replace(text.find(line), line.size(), "");
  text.replace(text.find("    disks: { os:"),
               text.find("\n", text.find("    disks: { os:")) - text.find("    disks: { os:"),
               "    disks: {}");
  const ParsedSpec spec = parse_spec(text);
  const bool said = std::any_of(spec.errors.begin(), spec.errors.end(),
                                [](const SpecError& e) { return e.path == "rollout" && e.line == 1; });
  CHECK(said);
}

TEST_CASE("rollout: a canary needs a BMC, and serves nothing", "[spec][rollout]") {
  Cluster c{"rollout: {}"};
  c.gpu_power = "{ driver: ssh }";
  CHECK(place_of_error(c) == "1 rollout");
  c.rollout = "rollout:\n  roles: [ gpu ]";
  CHECK(place_of_error(c) == "2 rollout.roles");
  Cluster all_serve{"rollout: {}"};
  all_serve.gpu_disks = kDisk;
  all_serve.storage = "storage: { data: { engine: ceph, disks: fast, copies: 3, mount: /data } }";
  CHECK(place_of_error(all_serve) == "1 rollout");
}

TEST_CASE("rollout: storage that can miss none of its nodes is refused", "[spec][rollout]") {
  Cluster c{"rollout: {}"};
  c.gpu_disks = kDisk;
  c.storage = "storage: { data: { engine: moosefs, disks: fast, copies: 1, mount: /data } }";
  CHECK(place_of_error(c) == "1 rollout");
}
