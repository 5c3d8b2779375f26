#include "base/gpu_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/split.h"

namespace muster {
namespace {

// Microsoft's fleet of A100 (NDm A100 v4, 80 GB). The 40 GB model has the same chip and power limit.
constexpr const char* kFleet = "superbench-results v0.4.0, 729 nodes";
constexpr const char* kGuideA100 = "Azure AI-benchmarking-guide ND_A100_v4";
constexpr const char* kGuideH100 = "Azure AI-benchmarking-guide ND_H100_v5";
constexpr const char* kGuideH200 = "Azure AI-benchmarking-guide ND_H200_v5";
constexpr const char* kMl = "stas00/ml-engineering, network";
// Measured on one card of each model, for 3 to 5 s at its power limit of 700 W.
constexpr const char* kOwn = "muster's own run, bench/results/2026-11-27-NVIDIA-*.json";
constexpr const char* kTorch = "zzc0721/torch-performance-test-data issue 77, edge 8192";

constexpr const char* kH100System = "MLPerf Inference v3.1, system XE9680_H100_SXM_80GBx8: PCIe Gen5 x16";
constexpr const char* kH200System = "MLPerf Inference v4.1, system H200-SXM-141GBx8: PCIe Gen5 x16";
constexpr const char* kB200System = "MLPerf Inference v6.0, system nebius_b200_n1: PCIe Gen5 x16";
constexpr const char* kL40Sheet = "data sheet of L40 and L40S: PCIe Gen4 x16, 64 GB/s both ways";
constexpr const char* kCards =
    "a dealer's list (Source Code, GPU cards): PCI Express 4.0 x16, and 5.0 x16 of RTX PRO";

// Names and ids: the list of supported GPUs in NVIDIA/open-gpu-kernel-modules README.md and, for newer
// models, pci.ids. NVLink: NVIDIA's data sheets.
//
// Left out on purpose: products of B200, L4, L40S, RTX PRO 6000, H100 PCIe and A100 PCIe. What is published
// (ml-engineering's MAMF table, torch-performance-test-data) is from the best shape or the first
// milliseconds, before the power limit holds: H100 SXM reaches 794 there and 695 in a load of seconds. GB200
// reaches 2877 TFLOP/s in fp8 products of edge 8192 after 10,000 warm-ups (Azure AI-benchmarking-guide
// ND_GB200_v6), where that table has 3432 for B200.
constexpr bool kBoard = true, kCard = false, kHbm = true, kGddr = false;

constexpr GpuModel kModels[] = {
    {"Tesla P100-SXM2-16GB", "p100", "15f9", 1, kCard, kHbm},
    {"Tesla P100-PCIE-16GB", "p100", "15f8", 0, kCard, kHbm},
    {"Tesla V100-SXM2-16GB", "v100", "1db1", 2, kCard, kHbm},
    {"Tesla V100-SXM2-32GB", "v100", "1db5", 2, kCard, kHbm},
    {"Tesla V100-PCIE-16GB", "v100", "1db4", 0, kCard, kHbm},
    {"Tesla V100-PCIE-32GB", "v100", "1db6", 0, kCard, kHbm},
    {"Tesla T4", "t4", "1eb8", 0, kCard, kGddr},
    {"A100-SXM4-40GB", "a100", "20b0", 3, kBoard, kHbm},
    {"A100-SXM4-80GB", "a100", "20b2", 3, kBoard, kHbm},
    {"A100-SXM-64GB", "a100", "20b3", 3, kBoard, kHbm},
    {"A100-PCIE-40GB", "a100", "20f1", 3, kCard, kHbm},
    {"A100 80GB PCIe", "a100", "20b5", 3, kCard, kHbm},
    // A800 and H800 have fewer links than their boards have places for.
    {"A800-SXM4-40GB", "a800", "20bd", 3, kCard, kHbm},
    {"A800-SXM4-80GB", "a800", "20f3", 3, kCard, kHbm},
    {"A800 80GB PCIe", "a800", "20f5", 3, kCard, kHbm},
    {"A30", "a30", "20b7", 3, kCard, kHbm},
    {"RTX A6000", "rtx_a6000", "2230", 3, kCard, kGddr},
    {"A40", "a40", "2235", 3, kCard, kGddr},
    {"A10", "a10", "2236", 0, kCard, kGddr},
    {"A10G", "a10g", "2237", 0, kCard, kGddr},
    {"RTX 6000 Ada Generation", "rtx_6000_ada", "26b1", 0, kCard, kGddr},
    {"L40", "l40", "26b5", 0, kCard, kGddr},
    {"L40S", "l40s", "26b9", 0, kCard, kGddr},
    {"L20", "l20", "26ba", 0, kCard, kGddr},
    {"L4", "l4", "27b8", 0, kCard, kGddr},
    {"H100 80GB HBM3", "h100", "2330", 4, kBoard, kHbm},
    {"H100 NVL", "h100", "2321", 4, kCard, kHbm},
    {"H100 PCIe", "h100", "2331", 4, kCard, kHbm},
    {"H800", "h800", "2324", 4, kCard, kHbm},
    {"H800 NVL", "h800", "233a", 4, kCard, kHbm},
    {"H800 PCIe", "h800", "2322", 4, kCard, kHbm},
    {"H20", "h20", "2329", 4, kBoard, kHbm},
    {"H20-3e", "h20_3e", "232c", 4, kBoard, kHbm},
    {"H200", "h200", "2335", 4, kBoard, kHbm},
    {"H200 NVL", "h200", "233b", 4, kCard, kHbm},
    {"GH200 120GB", "gh200", "2342", 4, kCard, kHbm},
    {"GH200 480GB", "gh200", "2342", 4, kCard, kHbm},
    {"GH200 144G HBM3e", "gh200", "2348", 4, kCard, kHbm},
    {"B200", "b200", "2901", 5, kBoard, kHbm},
    {"GB200", "gb200", "2941", 5, kBoard, kHbm},
    {"B300 SXM6 AC", "b300", "3182", 5, kBoard, kHbm},
    {"GB300", "gb300", "31c2", 5, kBoard, kHbm},
    {"RTX PRO 6000 Blackwell Workstation Edition", "rtx_pro_6000", "2bb1", 0, kCard, kGddr},
    {"RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx_pro_6000", "2bb4", 0, kCard, kGddr},
    {"RTX PRO 6000 Blackwell Server Edition", "rtx_pro_6000", "2bb5", 0, kCard, kGddr},
};

constexpr GpuFigure kFigures[] = {
    {"H100 80GB HBM3", kGpuLinkFigure, 512, 0, kH100System},
    {"H200", kGpuLinkFigure, 512, 0, kH200System},
    {"B200", kGpuLinkFigure, 512, 0, kB200System},
    {"L40", kGpuLinkFigure, 256, 0, kL40Sheet},
    {"L40S", kGpuLinkFigure, 256, 0, kL40Sheet},
    {"L4", kGpuLinkFigure, 256, 0, kCards},
    {"RTX PRO 6000 Blackwell Max-Q Workstation Edition", kGpuLinkFigure, 512, 0, kCards},
    {"A100-SXM4-40GB", "gpu_bf16_tflops", 261, 312, kFleet},
    {"A100-SXM4-40GB", "gpu_tf32_tflops", 127, 156, kFleet},
    {"A100-SXM4-40GB", "gpu_fp64_tflops", 18.95, 19.5, kFleet},
    {"A100-SXM4-40GB", "gpu_int8_tops", 467, 624, kFleet},
    {"A100-SXM4-40GB", "gpu_h2d_gbps", 25.9, 31.5, kFleet},
    {"A100-SXM4-40GB", "gpu_d2h_gbps", 25.9, 31.5, kFleet},
    {"A100-SXM4-40GB", "gpu_p2p_gbps", 274, 300, "nvbandwidth README"},
    {"A100-SXM4-40GB", "gpu_node_allreduce_gbps", 231, 300, kFleet},
    {"A100-SXM4-80GB", "gpu_bf16_tflops", 261, 312, kFleet},
    {"A100-SXM4-80GB", "gpu_tf32_tflops", 127, 156, kFleet},
    {"A100-SXM4-80GB", "gpu_fp64_tflops", 18.95, 19.5, kFleet},
    {"A100-SXM4-80GB", "gpu_int8_tops", 467, 624, kFleet},
    {"A100-SXM4-80GB", "gpu_copy_gbps", 1610, 2039, kGuideA100},
    {"A100-SXM4-80GB", "gpu_triad_gbps", 1700, 2039, kGuideA100},
    {"A100-SXM4-80GB", "gpu_h2d_gbps", 25.9, 31.5, kFleet},
    {"A100-SXM4-80GB", "gpu_d2h_gbps", 25.9, 31.5, kFleet},
    {"A100-SXM4-80GB", "gpu_p2p_gbps", 274, 300, "nvbandwidth README"},
    {"A100-SXM4-80GB", "gpu_node_allreduce_gbps", 231, 300, kFleet},
    {"H100 80GB HBM3", "gpu_bf16_tflops", 695, 989, kOwn},
    {"H100 80GB HBM3", "gpu_fp8_tflops", 1245, 1979, kOwn},
    {"H100 80GB HBM3", "gpu_tf32_tflops", 345, 494.5, kOwn},
    {"H100 80GB HBM3", "gpu_copy_gbps", 2900, 3350, kGuideH100},
    {"H100 80GB HBM3", "gpu_triad_gbps", 2970, 3350, kGuideH100},
    {"H100 80GB HBM3", "gpu_h2d_gbps", 51, 63, "vpbenchmarking; nvbandwidth issue 24"},
    {"H100 80GB HBM3", "gpu_d2h_gbps", 46.8, 63, "vpbenchmarking; nvbandwidth issue 24"},
    {"H100 80GB HBM3", "gpu_p2p_gbps", 376, 450, "vpbenchmarking"},
    {"H100 80GB HBM3", "gpu_node_allreduce_gbps", 476, 0, "nccl-tests issue 290, NVLS"},
    {"H100 80GB HBM3", "gpu_node_ring_gbps", 366, 450, "nccl-tests issue 290, ring"},
    // Its products do not reach the power limit.
    {"H20", "gpu_bf16_tflops", 138.6, 148, kTorch},
    {"H20", "gpu_tf32_tflops", 71.8, 74, kTorch},
    {"H200", "gpu_bf16_tflops", 695, 989, kOwn},
    {"H200", "gpu_fp8_tflops", 1245, 1979, kOwn},
    {"H200", "gpu_copy_gbps", 4010, 4800, kGuideH200},
    {"H200", "gpu_triad_gbps", 4150, 4800, kGuideH200},
    {"H200", "gpu_h2d_gbps", 55.1, 63, kMl},
    {"H200", "gpu_d2h_gbps", 55.1, 63, kMl},
    {"H200", "gpu_p2p_gbps", 396, 450, kMl},
    {"H200", "gpu_node_allreduce_gbps", 480, 0, "Azure AI-benchmarking-guide ND_H200_v5, NVLS, 8 GiB"},
    {"H200", "gpu_node_ring_gbps", 367.6, 450, kMl},
    {"B200", "gpu_node_allreduce_gbps", 838, 0, "NVIDIA/nccl issues, NVLS"},
    {"B200", "gpu_node_ring_gbps", 682, 900, "NVIDIA/nccl issues, ring"},
    {"GB200", "gpu_node_ring_gbps", 679, 900, "Azure AI-benchmarking-guide ND_GB200_v6, ring of 4, 8 GiB"},
};

// "NVIDIA NVIDIA A100-SXM4-80GB " -> "A100-SXM4-80GB". Drivers before 450 print "Tesla ", and none of them
// "NVIDIA ".
std::string product_of(const std::string& name) {
  std::string out;
  for (const auto& word : split_words(name, " \t"))
    if (!out.empty() || (word != "NVIDIA" && word != "Tesla")) out += (out.empty() ? "" : " ") + word;
  return out;
}

bool all_digits(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

bool is_device(const std::string& name) { return name.starts_with("10de:"); }

bool has_device(const GpuModel& model, const std::string& pci) { return pci.substr(5) == model.pci; }

}  // namespace

std::span<const GpuModel> gpu_models() { return kModels; }
std::span<const GpuFigure> gpu_figures() { return kFigures; }

const GpuModel* find_gpu_model(const std::string& name) {
  const std::string product = product_of(name);
  const GpuModel* found = nullptr;
  for (const auto& model : kModels) {
    const bool same = is_device(name) ? has_device(model, name) : product_of(model.name) == product;
    if (!same) continue;
    if (found) return nullptr;
    found = &model;
  }
  return found;
}

std::string gpu_type_of_device(const std::string& pci) {
  for (const auto& model : kModels)
    if (is_device(pci) && has_device(model, pci)) return model.type;
  return "";
}

// NVIDIA's names: "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "GRID A100X-40C", "NVIDIA L40S-48Q".
std::string part_of_gpu(const std::string& name) {
  const auto words = split_words(name, " \t");
  if (std::find(words.begin(), words.end(), "MIG") != words.end()) return "a MIG instance";
  if (words.empty()) return "";
  const std::string& last = words.back();
  const size_t dash = last.rfind('-');
  const bool profile = dash != std::string::npos &&
                       std::string_view("ABCQ").find(last.back()) != std::string_view::npos &&
                       all_digits(last.substr(dash + 1, last.size() - dash - 2));
  return profile || std::find(words.begin(), words.end(), "GRID") != words.end() ? "a virtual GPU" : "";
}

const GpuFigure* find_gpu_figure(const std::string& model, const std::string& quantity) {
  const GpuModel* found = find_gpu_model(model);
  if (!found) return nullptr;
  for (const auto& figure : kFigures)
    if (std::string_view(figure.model) == found->name && quantity == figure.quantity) return &figure;
  return nullptr;
}

std::string no_gpu_figure(const std::string& model, const std::string& quantity) {
  if (model.empty()) return "the driver does not report the GPU's model";
  if (const std::string part = part_of_gpu(model); !part.empty())
    return fmt::format("{} is {}, and the GPU table has whole GPUs only", model, part);
  if (!find_gpu_model(model)) return fmt::format("the GPU table does not have {}", model);
  return fmt::format("the GPU table has no public figure of {} for {}", quantity, model);
}

}  // namespace muster
