// The table of GPU models: which names find a row, and that its figures can be right.
#include "base/gpu_models.h"

#include <map>
#include <set>

#include "controller/plan/gpu_type.h"
#include "tests/catch.h"

using namespace muster;

TEST_CASE("a GPU model is found by its exact product name, whatever a driver puts around it",
          "[gpu-models]") {
  const auto name_of = [](const char* name) {
    const GpuModel* found = find_gpu_model(name);
    return std::string(found ? found->name : "");
  };
  for (const char* name : {"NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB", "NVIDIA NVIDIA A100-SXM4-40GB",
                           " NVIDIA A100-SXM4-40GB  ", "10de:20b0"})
    CHECK(name_of(name) == "A100-SXM4-40GB");
  CHECK(name_of("NVIDIA H200") == "H200");
  CHECK(name_of("NVIDIA H200 NVL") == "H200 NVL");
  CHECK(name_of("Tesla T4") == name_of("NVIDIA T4"));
  CHECK(name_of("Tesla T4") == "Tesla T4");
  CHECK(name_of("NVIDIA H20-3e") == "H20-3e");
  for (const char* name :
       {"", "NVIDIA", "NVIDIA H2", "NVIDIA H200 NVL2", "NVIDIA H100", "nvidia h200", "NVIDIA Graphics Device",
        "AMD Instinct MI300X", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "GRID A100-40C", "NVIDIA L40S-48Q",
        "NVIDIA H100 80GB HBM3 (SIMULATED GPU)", "10de:", "10de:ffff", "10de:2342", "*H100*"}) {
    CAPTURE(name);
    CHECK(name_of(name).empty());
  }
}

TEST_CASE("an instance and a virtual GPU are no whole GPU, and no product is taken for one", "[gpu-models]") {
  for (const char* name : {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "MIG 1g.10gb"})
    CHECK(part_of_gpu(name) == "a MIG instance");
  for (const char* name :
       {"GRID A100X-40C", "NVIDIA L40S-48Q", "NVIDIA A40-4A", "GRID T4-16Q", "GRID A100-3-20C"})
    CHECK(part_of_gpu(name) == "a virtual GPU");
  for (const auto& model : gpu_models()) {
    CAPTURE(model.name);
    CHECK(part_of_gpu(model.name).empty());
    CHECK(part_of_gpu(std::string("NVIDIA ") + model.name).empty());
  }
}

TEST_CASE("each row of the GPU table is found by its name alone, and its type is the name's",
          "[gpu-models]") {
  CHECK(gpu_models().size() > 40);
  std::map<std::string, std::string> types;
  for (const auto& model : gpu_models()) {
    CAPTURE(model.name);
    CHECK(find_gpu_model(model.name) == &model);
    CHECK(gpu_type(std::string("NVIDIA ") + model.name) == model.type);
    CHECK((model.nvlink >= 0 && model.nvlink <= 5));
    CHECK((!model.board || model.nvlink > 0));
    const std::string device = std::string("10de:") + model.pci;
    CHECK(gpu_type(device) == model.type);
    CHECK(types.emplace(device, model.type).first->second == model.type);
  }
}

TEST_CASE("each figure of the GPU table has a source, and no GPU beats its data sheet", "[gpu-models]") {
  CHECK(gpu_figures().size() > 25);
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& figure : gpu_figures()) {
    CAPTURE(figure.model, figure.quantity);
    CHECK(seen.emplace(figure.model, figure.quantity).second);
    CHECK(find_gpu_figure(figure.model, figure.quantity) == &figure);
    CHECK(figure.value > 0);
    CHECK_FALSE(std::string(figure.source).empty());
    if (figure.peak > 0) CHECK(figure.value <= figure.peak);
    if (figure.peak > 0)
      CHECK(figure.value >= 0.6 * figure.peak);  // nor stays this far below it when healthy
  }
}

TEST_CASE("without a figure, the reason is which part of the table is missing", "[gpu-models]") {
  CHECK(find_gpu_figure("NVIDIA H200", "gpu_copy_gbps")->value == 4010);
  CHECK_FALSE(find_gpu_figure("NVIDIA H200 NVL", "gpu_copy_gbps"));
  CHECK(no_gpu_figure("NVIDIA H200 NVL", "gpu_copy_gbps") ==
        "the GPU table has no public figure of gpu_copy_gbps for NVIDIA H200 NVL");
  CHECK(no_gpu_figure("AMD Instinct MI300X", "x") == "the GPU table does not have AMD Instinct MI300X");
  CHECK(no_gpu_figure("GRID A100X-40C", "x") ==
        "GRID A100X-40C is a virtual GPU, and the GPU table has whole GPUs only");
  CHECK(no_gpu_figure("", "x") == "the driver does not report the GPU's model");
}
