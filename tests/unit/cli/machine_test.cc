#include "cli/machine_text.h"

#include "base/facts.h"
#include "base/standin.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::cli;

namespace {

Json found() {
  HardwareFacts facts;
  facts.system = {"ACME", "R1", "SN04", "uuid-04"};
  facts.cpus = {64, 2, "EPYC"};
  facts.memory_bytes = 512ull << 30;
  DiskFacts os, data;
  os.serial = "OS1";
  os.size_bytes = 480'000'000'000;
  os.content = "blank";
  data.serial = "D1";
  data.model = "evil\x1b[2Jmodel";
  data.size_bytes = 3'800'000'000'000;
  facts.disks = {data, data, os};
  return to_json(facts);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the list of nodes has the undeclared machines below it", "[cli]") {
  Json nodes = {{"nodes", Json::array({{{"name", "node01"}, {"role", "cpu"}, {"state", "accepted"}}})},
                {"unknown_machines", Json::array()},
                {"discover_until", 0}};
  CHECK_FALSE(has(render_nodes(nodes), "Undeclared machines"));
  nodes["discover_until"] = 1'700'000'000'000;
  CHECK(has(render_nodes(nodes), "no undeclared machine has booted"));
  nodes["unknown_machines"] =
      Json::array({{{"name", "unknown-52:54:00:20:00:04"}, {"time", 1'700'000'000'000}, {"facts", found()}},
                   {{"name", "unknown-52:54:00:20:00:05"}, {"time", 1'700'000'000'000}}});
  const std::string text = render_nodes(nodes);
  CHECK(has(text, "node01"));
  CHECK(has(text, "discovery is on until 2023-11-14"));
  CHECK(has(text, "SN04    64    512.0 GiB  0     3: 3.8 TB x2, 480 GB"));
  CHECK(has(text, "booted from the network; no inventory"));
  nodes["discover_until"] = 0;
  CHECK(has(render_nodes(nodes), "muster node discover on"));
}

TEST_CASE("a machine is shown with its parts, and what they say cannot steer the terminal", "[cli]") {
  const std::string text = render_machine({{"name", "unknown-52:54:00:20:00:04"},
                                           {"state", "unadmitted"},
                                           {"mac", "52:54:00:20:00:04"},
                                           {"facts", found()}});
  CHECK(has(text, "unadmitted"));
  CHECK(has(text, "64 in 2 sockets, EPYC"));
  CHECK(has(text, "512.0 GiB"));
  CHECK(has(text, "OS1"));
  CHECK(has(text, "blank"));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(has(render_machine({{"name", "node01"}, {"state", "unknown"}, {"facts", nullptr}}), "never"));
}

TEST_CASE("GPUs that a lab stands in for are called so, by number and each of them", "[cli][standin]") {
  HardwareFacts facts;
  facts.gpus = standin_facts({2}, "abcd");
  const Json node = {{"name", "node01"}, {"state", "accepted"}, {"facts", to_json(facts)}};
  std::string text = render_machine(node);
  int said = 0;
  for (size_t at; (at = text.find(kSimulatedGpu)) != std::string::npos; ++said) text.erase(0, at + 1);
  CHECK(said == 3);
  for (auto& gpu : facts.gpus) gpu.simulated = false, gpu.model = "H100";
  CHECK_FALSE(has(render_machine({{"name", "node01"}, {"facts", to_json(facts)}}), kSimulatedGpu));
}
