// The one table of GPU models: how drivers and PCI name them, how they are linked, and what a healthy one
// reaches, each figure with its public source.
//
// A model matches exactly, apart from what drivers of different ages put around the product's name
// ("NVIDIA ", "Tesla ", blanks): H200 NVL is not H200. An instance (MIG) and a virtual GPU are no whole GPU
// and match nothing. What has no public figure for a load of several seconds at the power limit is left out,
// and a check without a figure is not judged. Thread safety: stateless functions; the table is constant.
#pragma once

#include <span>
#include <string>

namespace muster {

struct GpuModel {
  const char* name = "";  // as NVML prints it, without "NVIDIA "
  const char* type = "";  // for the scheduler: Gres=gpu:h100:8
  const char* pci = "";   // device id of vendor 10de, "2330"; models that share one also share the type
  int nvlink = 0;         // generation; 0: the model has none
  bool board = false;  // SXM or GB: on a board of four or eight, every NVLink leads to a GPU or an NVSwitch
  bool hbm = false;    // its memory has ECC in every product, and there is no reason to switch it off
};

struct GpuFigure {
  const char* model = "";     // GpuModel::name
  const char* quantity = "";  // "gpu_bf16_tflops"; units as in the name
  double value = 0;           // what healthy GPUs reach
  double peak = 0;            // data sheet, dense; 0: none
  const char* source = "";
};

// The quantity of a GPU's PCI Express link: its lanes times the GT/s of each.
inline constexpr const char* kGpuLinkFigure = "gpu_link_gts";

std::span<const GpuModel> gpu_models();
std::span<const GpuFigure> gpu_figures();

// Takes a driver's name ("NVIDIA H100 80GB HBM3") or, before a driver is loaded, a PCI id ("10de:2330"),
// which finds a model only if no other model of the table has the id. Null: not in the table.
const GpuModel* find_gpu_model(const std::string& name);
// The scheduler's type of a device ("10de:2330"), from the first model with this id; "" if unknown.
std::string gpu_type_of_device(const std::string& pci);
// "a MIG instance", "a virtual GPU"; "" for the name of anything else.
std::string part_of_gpu(const std::string& name);

const GpuFigure* find_gpu_figure(const std::string& model, const std::string& quantity);
// Why find_gpu_figure() is null: "the GPU table does not have NVIDIA X".
std::string no_gpu_figure(const std::string& model, const std::string& quantity);

}  // namespace muster
