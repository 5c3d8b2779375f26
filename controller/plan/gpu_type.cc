#include "controller/plan/gpu_type.h"

#include <algorithm>
#include <cctype>

#include "base/gpu_models.h"
#include "base/lower.h"

namespace muster {
namespace {

// True for words that name the manufacturer, the memory size or the form factor.
bool has_no_type(const std::string& word) {
  static const char* const kWords[] = {"nvidia", "tesla", "quadro", "pcie", "nvl",      "generation", "hbm2",
                                       "hbm2e",  "hbm3",  "hbm3e",  "gpu",  "graphics", "simulated"};
  if (std::any_of(std::begin(kWords), std::end(kWords), [&](const char* w) { return word == w; }))
    return true;
  if (word.starts_with("sxm")) return true;
  return word.size() > 2 && word.compare(word.size() - 2, 2, "gb") == 0 &&
         std::all_of(word.begin(), word.end() - 2, [](unsigned char c) { return std::isdigit(c); });
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// True for a pattern with a wildcard inside a word: "H?00", "A1*0".
bool is_vague(const std::string& model) {
  if (model.find_first_of("?[") != std::string::npos) return true;
  for (size_t i = 1; i + 1 < model.size(); ++i)
    if (model[i] == '*' && is_word(model[i - 1]) && is_word(model[i + 1])) return true;
  return false;
}

}  // namespace

std::string gpu_type(const std::string& model) {
  // The RAM system has no driver and reports PCI ids only; they must map to the same type as the model that
  // the installed system reports, or Slurm's configuration would change with every second run.
  if (model.starts_with("10de:")) return gpu_type_of_device(model);
  if (const GpuModel* known = find_gpu_model(model)) return known->type;
  if (is_vague(model)) return "";
  std::string out, word;
  for (const char c : lower(model) + " ") {
    if (is_word(c)) {
      word += c;
      continue;
    }
    if (!word.empty() && !has_no_type(word)) out += (out.empty() ? "" : "_") + word;
    word.clear();
  }
  // "*NVIDIA*" names no product, as it has no digit; Slurm would read a type such as "100" as a count.
  const bool product = !out.empty() && out.find_first_of("0123456789") != std::string::npos &&
                       std::isalpha(static_cast<unsigned char>(out[0]));
  return product && out.size() <= 24 ? out : "";
}

std::string gpu_type_of(const std::string& declared_model, const std::vector<GpuFacts>& found) {
  if (const std::string declared = gpu_type(declared_model); !declared.empty()) return declared;
  std::string out;
  for (const auto& gpu : found) {
    const std::string type = gpu_type(gpu.model);
    if (type.empty() || (!out.empty() && type != out)) return "";
    out = type;
  }
  return out;
}

}  // namespace muster
