// The acceptance profiles we ship: they parse, name modules the agent has, and expect metrics that can be
// judged.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/core/step.h"
#include "base/standin.h"
#include "controller/report/verdict.h"
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;

TEST_CASE("every acceptance profile is one that can be run and judged") {
  size_t profiles = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/playbooks/acceptance")) {
    CAPTURE(entry.path().string());
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    const auto parsed = parse_playbook(text.str());
    for (const auto& error : parsed.errors) FAIL_CHECK(to_string(error, entry.path().filename().string()));
    CHECK(parsed.playbook.name == entry.path().stem().string());
    size_t expectations = 0;
    for (const auto& step : parsed.playbook.steps) {
      CAPTURE(step.name);
      const StepModule* module = find_step_module(step.module);
      REQUIRE(module != nullptr);
      CHECK(module->measure);  // acceptance measures, it changes nothing
      Json params = step.params;
      params.erase("peers_live");
      params.erase("peers_in_plan");
      for (const auto& [key, value] : params.items())
        CHECK(std::any_of(module->parameters.begin(), module->parameters.end(),
                          [&name = key](const Json& p) { return p["name"] == name; }));
      CHECK(check_expectations(step.expect).ok());
      // Whole disks are only ever read: nothing a profile says to `drives` is about anything but time.
      const Json options = params.value("options", Json::object());
      if (params.value("kernel", "") == "drives")
        for (const auto& [key, value] : options.items())
          CHECK((key == "seconds" || key == "streams" || key == "parallel-seconds"));
      expectations += step.expect.size();
    }
    CHECK(expectations >= 5);
    ++profiles;
  }
  CHECK(profiles >= 2);
}

TEST_CASE("RDMA is measured by itself, where it is declared, and its port errors are rates with limits") {
  for (const std::string name : {"standard", "burn", "lab"}) {
    CAPTURE(name);
    std::ifstream in(source_dir() + "/playbooks/acceptance/" + name + ".yaml");
    std::stringstream text;
    text << in.rdbuf();
    const auto steps = parse_playbook(text.str()).playbook.steps;
    const auto rdma =
        std::find_if(steps.begin(), steps.end(), [](const auto& s) { return s.module == "accept_rdma"; });
    REQUIRE(rdma != steps.end());
    CHECK(rdma->mandatory);
    CHECK(rdma->when == "{{#has_rdma_peers}}yes{{/has_rdma_peers}}");
    for (const auto& other : steps)  // traffic of another test at the same time would be measured with it
      CHECK((other.name == "rdma" || other.phase != "cluster" || other.stage != rdma->stage));
    const auto counters = std::find_if(steps.begin(), steps.end(),
                                       [](const auto& s) { return s.expect.contains("rdma_symbol_errors"); });
    CHECK((counters != steps.end()) == (name != "lab"));
    if (counters != steps.end()) CHECK(counters->stage > rdma->stage);
  }
}

TEST_CASE("the profiles that accept new nodes look for silent corruption; the short one does not") {
  const auto runs_sdc = [](const std::string& name) {
    std::ifstream in(source_dir() + "/playbooks/acceptance/" + name + ".yaml");
    std::stringstream text;
    text << in.rdbuf();
    const auto steps = parse_playbook(text.str()).playbook.steps;
    return std::any_of(steps.begin(), steps.end(),
                       [](const auto& s) { return s.params.value("kernel", "") == "sdc" && s.mandatory; });
  };
  CHECK(runs_sdc("standard"));
  CHECK(runs_sdc("burn"));
  CHECK_FALSE(runs_sdc("quick"));
}

TEST_CASE(
    "a lost lane stops a node in every profile that looks at lanes, and file systems have no constant "
    "floor") {
  for (const std::string name : {"quick", "standard", "burn", "lab"}) {
    CAPTURE(name);
    std::ifstream in(source_dir() + "/playbooks/acceptance/" + name + ".yaml");
    std::stringstream text;
    text << in.rdbuf();
    int looked = 0;
    for (const auto& step : parse_playbook(text.str()).playbook.steps) {
      if (step.params.value("kernel", "") == "pcie") {
        CHECK(step.mandatory);
        CHECK(step.expect["lanes_lost"]["max"] == 0);
        ++looked;
      }
      if (step.name == "local storage" && name != "lab")
        for (const char* metric : {"write_mbps", "read_mbps"}) {
          CHECK(step.expect[metric].contains("of_raw_reads"));
          CHECK_FALSE(step.expect[metric].contains("min"));
        }
    }
    CHECK(looked == 1);
  }
}

TEST_CASE("faults of GPUs stop a node in every profile that looks at GPUs, their speeds in none") {
  for (const std::string name : {"quick", "standard", "burn"}) {
    CAPTURE(name);
    std::ifstream in(source_dir() + "/playbooks/acceptance/" + name + ".yaml");
    std::stringstream text;
    text << in.rdbuf();
    int looked = 0, together = 0;
    for (const auto& step : parse_playbook(text.str()).playbook.steps) {
      // Those of one node, and those of all GPUs of all nodes; perftest compares no data.
      if (!step.name.starts_with("gpu ") && (!loads_gpus(step.params) || step.module == "accept_rdma"))
        continue;
      CAPTURE(step.name);
      ++looked;
      together += step.module == "accept_group";
      const auto blocks = [&](const char* aspect) {
        return std::count(step.blocks.begin(), step.blocks.end(), aspect) > 0;
      };
      CHECK_FALSE(step.mandatory);
      CHECK(blocks("data"));
      // Those that need nothing but our own programs and the driver say whether there are any at all.
      CHECK(blocks("run") == (step.name == "gpu memory" || step.name == "gpu counters"));
      CHECK(blocks("ceilings") == (step.name == "gpu memory" || step.name == "gpu counters"));
    }
    // Only this one may be missing on a node that is accepted, since it needs a perftest that nothing brings.
    for (const auto& step : parse_playbook(text.str()).playbook.steps)
      if (loads_gpus(step.params) && !step.mandatory && step.blocks.empty())
        CHECK(step.name == "rdma from gpu memory");
    CHECK(looked >= 3);
    CHECK(together == (name == "quick" ? 0 : 2));
  }
}
