// Stand-ins for GPUs in a lab's spec, on QEMU's command line, and the fault that breaks one.
#include <algorithm>

#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "lab/fault.h"
#include "lab/lab_spec.h"
#include "lab/qemu_args.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::lab;

namespace {

std::string spec_with(const std::string& lab) {
  return "cluster: t\nnetwork: { provisioning: { cidr: 10.20.0.0/24 } }\n"
         "nodes: [ { name: \"gpu[01-03]\", power: { address: \"10.20.1.1{n}\" } } ]\nlab: " +
         lab + "\n";
}

std::vector<std::string> oem_strings_of(const LabNode& node) {
  std::vector<std::string> out;
  for (const auto& arg : qemu_args(LabDir("/tmp/somelab"), node, {}, BootFirst::disk))
    if (arg.starts_with("type=11,")) out.push_back(arg);
  return out;
}

}  // namespace

TEST_CASE("a lab's machine says in SMBIOS which GPUs it stands in for, and without any says nothing",
          "[lab][standin]") {
  const auto spec = lab_spec_from_yaml(
      spec_with("{ gpus: 2, nodes: { gpu02: { gpus: 0 }, gpu03: { gpus: 8, gpu_model: A100-SXM4-80GB } } }"));
  REQUIRE(spec.ok());
  CHECK(oem_strings_of(spec->nodes[0]) ==
        std::vector<std::string>{"type=11,value=muster-lab-gpus/1 2 NVIDIA H100 80GB HBM3"});
  CHECK(oem_strings_of(spec->nodes[1]).empty());
  CHECK(oem_strings_of(spec->nodes[2]) ==
        std::vector<std::string>{"type=11,value=muster-lab-gpus/1 8 A100-SXM4-80GB"});
  CHECK(make_extra_node(*spec, "late")->gpus == 2);
  const auto again = lab_spec_from_json(to_json(*spec));
  REQUIRE(again.ok());
  CHECK(to_json(*again) == to_json(*spec));

  Json before = to_json(*spec);  // as an older muster wrote it
  before.erase("gpus");
  for (auto& node : before["nodes"]) node.erase("gpus");
  CHECK(lab_spec_from_json(before)->nodes[0].gpus == 0);
}

TEST_CASE("what a lab's stand-ins cannot be is refused, by the lab and by `spec check`",
          "[lab][standin][spec]") {
  const auto errors = [](const std::string& lab) {
    std::vector<std::string> paths;
    for (const auto& error : parse_spec("lab: " + lab + "\n").errors)
      if (error.path.starts_with("lab")) paths.push_back(error.path);
    return paths;
  };
  for (const auto* lab :
       {"{ gpus: 17 }", "{ gpus: -1 }", "{ gpus: two }", "{ gpu_model: \"A,type=1\" }", "{ gpu_model: \"\" }",
        "{ gpu_model: \" A\" }", "{ nodes: { gpu01: { gpus: 17 } } }"}) {
    CAPTURE(lab);
    const auto refused = lab_spec_from_yaml(spec_with(lab));
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message.find("line 4, column ") == 0);
    CHECK(errors(lab).size() == 1);
  }
  CHECK(errors("{ gpus: 16, gpu_model: NVIDIA H100 80GB HBM3, nodes: { gpu01: { gpus: 0, gpu_model: L4 } } }")
            .empty());
}

TEST_CASE("lab break gpu-xid takes the number of a stand-in", "[lab][standin]") {
  const auto taken = [](const std::vector<std::string>& words) {
    Break out;
    const auto done = take_words(out, words);
    return done.ok() ? out.gpu : -2;
  };
  CHECK(taken({"n1", "gpu-xid", "1"}) == 1);
  CHECK(taken({"n1", "gpu-xid", "0"}) == 0);
  for (const char* word : {"", "-1", "x", "1x", "100"}) CHECK(taken({"n1", "gpu-xid", word}) == -2);
  CHECK(taken({"n1", "gpu-xid"}) == -2);
  Break b;
  b.node = "n1";
  b.fault = "gpu-xid";
  b.gpu = 1;
  CHECK(break_from_json(to_json(b))->gpu == 1);
  CHECK(shown_name(b) == "gpu-xid 1");
  CHECK(fault_list().count("gpu-xid") == 1);
}
