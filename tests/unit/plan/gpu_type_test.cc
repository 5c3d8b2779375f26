#include "controller/plan/gpu_type.h"

#include "tests/catch.h"

using namespace muster;

TEST_CASE("a GPU's type is the product, whether the driver, PCI or the spec names it", "[plan][standin]") {
  const std::pair<const char*, const char*> known[] = {
      {"NVIDIA H100 80GB HBM3", "h100"},
      {"NVIDIA H100 80GB HBM3 (SIMULATED GPU)", "h100"},
      {"NVIDIA H100 PCIe", "h100"},
      {"NVIDIA H100 NVL", "h100"},
      {"10de:2330", "h100"},
      {"*H100*", "h100"},
      {"NVIDIA A100-SXM4-80GB", "a100"},
      {"NVIDIA H200", "h200"},
      {"NVIDIA GH200 480GB", "gh200"},
      {"NVIDIA L40S", "l40s"},
      {"Tesla V100-SXM2-16GB", "v100"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx_6000_ada"},
      {"10de:26b1", "rtx_6000_ada"},
      {"NVIDIA RTX A6000", "rtx_a6000"},
      {"NVIDIA GeForce RTX 3080 Ti", "geforce_rtx_3080_ti"},
  };
  for (const auto& [model, type] : known) {
    CAPTURE(model);
    CHECK(gpu_type(model) == type);
  }
  for (const char* model : {"", "*", "NVIDIA*", "*HBM3*", "*80GB*", "*100*", "H?00", "A1*0", "[AH]100",
                            "NVIDIA H100*HBM3*", "10de:ffff"}) {
    CAPTURE(model);
    CHECK(gpu_type(model).empty());
  }
}

TEST_CASE("GPUs of a node have a type when all agree, and what is declared counts more", "[plan][standin]") {
  GpuFacts h100, a100, unknown;
  h100.model = "NVIDIA H100 80GB HBM3";
  a100.model = "NVIDIA A100-SXM4-80GB";
  unknown.model = "10de:ffff";
  CHECK(gpu_type_of("", {h100, h100}) == "h100");
  CHECK(gpu_type_of("", {h100, a100}).empty());
  CHECK(gpu_type_of("", {h100, unknown}).empty());
  CHECK(gpu_type_of("", {}).empty());
  CHECK(gpu_type_of("*H100*", {unknown}) == "h100");
  CHECK(gpu_type_of("NVIDIA*", {h100}) == "h100");
}
