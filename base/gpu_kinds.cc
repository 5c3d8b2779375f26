// Sources: NVIDIA's data sheets (HBM and generation of NVLink per product). Names as nvidia-smi prints them.
#include "base/gpu_kinds.h"

#include <algorithm>
#include <string_view>

#include "base/split.h"

namespace muster {
namespace {

struct Chip {
  std::string_view name;
  int nvlink;  // 0: not looked up
};
constexpr Chip kHbm[] = {{"P100", 1}, {"V100", 2}, {"A100", 3},  {"A800", 3}, {"A30", 3},
                         {"H100", 4}, {"H200", 4}, {"H800", 4},  {"H20", 4},  {"GH200", 4},
                         {"B200", 5}, {"B300", 5}, {"GB200", 5}, {"GB300", 5}};
constexpr std::string_view kBoards[] = {"H100 80GB HBM3", "H200",  "H20",  "B200",
                                        "B300 SXM6 AC",   "GB200", "GB300"};
constexpr std::string_view kBoardsOfA100 = "A100-SXM";  // of 40, 64 and 80 GB

const Chip* chip_of(const std::string& model) {
  for (const auto& word : split(model, " -"))
    for (const Chip& chip : kHbm)
      if (word == chip.name) return &chip;
  return nullptr;
}

}  // namespace

bool has_hbm(const std::string& model) { return chip_of(model) != nullptr; }

int nvlink_generation(const std::string& model) {
  const Chip* chip = chip_of(model);
  return chip ? chip->nvlink : 0;
}

bool uses_every_link(const std::string& model) {
  constexpr std::string_view kMaker = "NVIDIA ";
  const std::string_view name =
      model.starts_with(kMaker) ? std::string_view(model).substr(kMaker.size()) : model;
  return name.starts_with(kBoardsOfA100) ||
         std::find(std::begin(kBoards), std::end(kBoards), name) != std::end(kBoards);
}

}  // namespace muster
