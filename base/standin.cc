#include "base/standin.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/json_at.h"

namespace muster {

std::string wrong_standin_model(const std::string& model) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && std::strchr(" ._-", c) != nullptr);
  };
  const bool right = !model.empty() && model.size() <= 48 && std::all_of(model.begin(), model.end(), plain) &&
                     model.front() != ' ' && model.back() != ' ';
  return right
             ? ""
             : "a model of up to 48 letters, digits, blanks, '.', '_' and '-', such as NVIDIA H100 80GB HBM3";
}

std::string standin_text(const StandinGpus& gpus) {
  return fmt::format("{}{} {}", kStandinPrefix, gpus.count, gpus.model);
}

std::optional<StandinGpus> standin_from_text(const std::string& text) {
  const std::string prefix = kStandinPrefix;
  if (!text.starts_with(prefix)) return std::nullopt;
  StandinGpus out;
  const char* end_of_text = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + prefix.size(), end_of_text, out.count);
  if (error != std::errc() || end == end_of_text || *end != ' ') return std::nullopt;
  out.model.assign(end + 1, end_of_text);
  if (out.count < 1 || out.count > kMostStandinGpus || !wrong_standin_model(out.model).empty())
    return std::nullopt;
  return out;
}

std::string standin_pci(int index) { return fmt::format("0000:{:02x}:00.0", 0xe0 + index); }

std::vector<GpuFacts> standin_facts(const StandinGpus& gpus, const std::string& machine) {
  std::vector<GpuFacts> out;
  for (int i = 0; i < gpus.count; ++i) {
    GpuFacts gpu;
    gpu.model = fmt::format("{} ({})", gpus.model, kSimulatedGpu);
    gpu.uuid = fmt::format("GPU-SIMULATED-{}-{}", machine, i);
    gpu.pci = standin_pci(i);
    gpu.simulated = true;
    out.push_back(std::move(gpu));
  }
  return out;
}

int simulated_gpus(const HardwareFacts& facts) {
  return static_cast<int>(
      std::count_if(facts.gpus.begin(), facts.gpus.end(), [](const GpuFacts& gpu) { return gpu.simulated; }));
}

bool loads_gpus(const Json& params) {
  const std::string load = text_at(params, "load");
  return text_at(params, "kernel").starts_with("gpu-") || load == "nccl" || load == "gpu-training" ||
         is_true_at(params, "gpu_memory");
}

}  // namespace muster
