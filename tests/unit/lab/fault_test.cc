#include "lab/fault.h"

#include "lab/outages.h"
#include "lab/rack.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"

using namespace muster;
using namespace muster::lab;

namespace {

using StringList = std::vector<std::string>;

Result<Break> broken(const StringList& words, Break flags = {}) {
  TRY_(take_words(flags, words));
  return flags;
}
std::optional<Code> refusal(const StringList& words, Break flags = {}) {
  auto taken = broken(words, std::move(flags));
  if (taken) return std::nullopt;
  return taken.error().code;
}

// Records what the lab runs; a command that holds `refused` fails.
class Recorder : public Process {
 public:
  Result<Output> run(const Command& command) override {
    std::string line;
    for (const auto& word : command.argv) line += (line.empty() ? "" : " ") + word;
    lines.push_back(line);
    return Output{!refused.empty() && line.find(refused) != std::string::npos ? 1 : 0, "", "no"};
  }
  StringList taken() { return std::exchange(lines, {}); }
  StringList lines;
  std::string refused;
};

// A rack whose machines are never mounted: what is said to the network, on a clock of its own.
struct Bench {
  Bench() {
    const auto spec = lab_spec_from_yaml(R"(cluster: t
network: { provisioning: { cidr: 10.20.0.0/24 } }
nodes: [ { name: "n[1-3]", power: { address: "10.20.1.1{n}" } } ]
lab: { storage_nic: true, rails: 1, nodes: { n3: { rails: 0 } } }
)");
    REQUIRE(spec.ok());
    rack = std::make_unique<Rack>(
        RackOptions{LabDir("/tmp/nolab"), {}, 443, [this] { return reactor.steady(); }}, *spec, process,
        reactor);
  }
  Result<Json> cut(const std::string& network, int64_t seconds, bool heal = false) {
    Break request;
    request.network_switch = network;
    request.seconds = seconds;
    request.heal = heal;
    return rack->carry_out(request);
  }
  Json back_in(const std::string& network) {
    const Json status = rack->status();
    for (const auto& one : status["networks"])
      if (one["name"] == network) return one["back_in_s"];
    return "no such network";
  }
  ManualReactor reactor;
  Recorder process;
  std::unique_ptr<Rack> rack;
};

}  // namespace

TEST_CASE("lab break takes a machine, a fault and the one argument the fault needs") {
  CHECK(broken({"n1", "net-cut", "60"})->seconds == 60);
  CHECK(broken({"n1", "shape", "10mbit"})->rate == "10mbit");
  CHECK(broken({"n1", "slow-drive", "fast1"})->drive == "fast1");
  CHECK(broken({"n1", "kill"})->fault == "kill");
  CHECK(broken({"n1", "pcie-error", "fast1"})->drive == "fast1");
  CHECK(broken({"n1", "port-errors", "12"})->count == 12);
  CHECK(broken({"n1", "port-errors"})->count == 0);
  CHECK(broken({"n1", "pull-cable"})->fault == "pull-cable");
  for (const auto* count : {"0", "-1", "x", "1001", "10000", "1s", ""})
    CHECK(refusal({"n1", "port-errors", count}) == Code::invalid);
  CHECK(refusal({"n1", "pull-cable", "60"}) == Code::invalid);
  CHECK(broken({"n1", "post", "12m"})->seconds == 720);
  CHECK(broken({"n1", "post", "12 min"})->seconds == 720);
  CHECK(broken({"n1", "post", "90s"})->seconds == 90);
  CHECK(broken({"n1", "post", "90"})->seconds == 90);
  Break heal;
  heal.heal = true;
  CHECK(broken({"n1", "post"}, heal)->heal);
  CHECK(broken({"n1", "crash-once"})->fault == "crash-once");
  CHECK(broken({"n1", "panic-first-boot"})->fault == "panic-first-boot");
  for (const auto& words :
       {StringList{}, StringList{"n1"}, StringList{"n1", "post"}, StringList{"n1", "post", "long"},
        StringList{"n1", "post", "0"}, StringList{"n1", "post", "25h"}, StringList{"n1", "post", "500ms"},
        StringList{"n1", "net-cut", "1m"}, StringList{"n1", "crash-once", "60"},
        StringList{"n1", "panic-first-boot", "2"}, StringList{"n1", "kill", "now"},
        StringList{"n1", "net-cut", "1", "2"}})
    CHECK(refusal(words) == Code::invalid);
}

TEST_CASE("lab break --switch takes seconds alone") {
  Break flags;
  flags.network_switch = "rail0";
  CHECK(broken({"30"}, flags)->seconds == 30);
  CHECK(broken({}, flags)->seconds == 0);
  CHECK(refusal({"n1", "net-cut"}, flags) == Code::invalid);
  CHECK(refusal({"n1"}, flags) == Code::invalid);
}

TEST_CASE("a fault crosses the control socket whole, and the help tells of each") {
  Break b;
  b.node = "n1";
  b.fault = "net-cut";
  b.network = "rail0";
  b.network_switch = "storage";
  b.seconds = 5;
  b.count = 7;
  b.heal = true;
  const auto again = break_from_json(to_json(b));
  REQUIRE(again.ok());
  CHECK(to_json(*again) == to_json(b));
  CHECK(shown_name(b) == "net-cut rail0");
  b.network = "provisioning";
  CHECK(shown_name(b) == "net-cut");
  for (const auto* fault : {"post", "crash-once", "panic-first-boot", "net-cut", "bmc-503", "port-errors",
                            "pull-cable", "pcie-error"})
    CHECK(fault_list().count(fault) == 1);
}

TEST_CASE("a tap comes back when the last of its reasons is over") {
  Outages outages;
  const SteadyMs t{1000};
  CHECK(outages.begin("n1 net-cut", {"tap1"}, t + 10) == StringList{"tap1"});
  CHECK(outages.begin("switch", {"tap1", "tap2"}, t + 20) == StringList{"tap2"});
  CHECK(outages.due(t + 9).empty());
  CHECK(outages.due(t + 10) == StringList{"n1 net-cut"});
  CHECK(outages.end("n1 net-cut").empty());
  CHECK(outages.join("switch", "tap3"));
  CHECK_FALSE(outages.join("n1 net-cut", "tap3"));
  CHECK(outages.end("switch") == StringList{"tap1", "tap2", "tap3"});
  CHECK(outages.end("switch").empty());
}

TEST_CASE("of an outage that is requested again the new end counts") {
  Outages outages;
  const SteadyMs t{1000};
  outages.begin("switch", {"tap1"}, t + 10);
  CHECK(outages.begin("switch", {"tap1"}, t + 100).empty());
  CHECK(outages.due(t + 50).empty());
  CHECK(outages.until("switch") == t + 100);
}

TEST_CASE("a switch takes the ports of its network away, and gives them back by itself") {
  Bench b;
  REQUIRE(b.cut("rail0", 30).ok());
  CHECK(b.process.taken() == StringList{"ip link set tap1-rail0 down", "ip link set tap2-rail0 down"});
  CHECK(b.back_in("rail0") == 30);
  CHECK(b.back_in("provisioning").is_null());
  REQUIRE(b.cut("provisioning", 60).ok());
  CHECK(b.process.taken() ==
        StringList{"ip link set tap1 down", "ip link set tap2 down", "ip link set tap3 down"});
  b.reactor.advance(29 * kSecond);
  CHECK(b.process.taken().empty());
  b.reactor.advance(2 * kSecond);
  CHECK(b.process.taken() == StringList{"ip link set tap1-rail0 up", "ip link set tap2-rail0 up"});
  CHECK(b.back_in("rail0").is_null());
  REQUIRE(b.cut("provisioning", 0, true).ok());
  CHECK(b.process.taken().size() == 3);
  b.reactor.advance(kMinute);
  CHECK(b.process.taken().empty());
}

TEST_CASE("a switch that the lab has not, or that cannot be taken away, is refused and nothing is down") {
  Bench b;
  CHECK(b.cut("rail7", 30).error().code == Code::not_found);
  CHECK(b.process.taken().empty());
  b.process.refused = "tap2-rail0 down";
  CHECK_FALSE(b.cut("rail0", 30).ok());
  CHECK(b.back_in("rail0").is_null());
  CHECK(b.process.taken().back() == "ip link set tap2-rail0 up");
}
