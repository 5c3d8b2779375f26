#include "kernels/counters/gpu_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/counter_table.h"
#include "base/gpu_models.h"

namespace muster::kernels {
namespace {

constexpr size_t kNotesShown = 20;
constexpr size_t kFewestAlike = 3;  // with two GPUs it is unknown which one is right
constexpr const char* kNoLinks = "no GPU in this node reports this counter";
constexpr size_t kSmallestBoard = 4;
// nvmlClocksEventReason: HwSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown, SwThermalSlowdown.
struct Held {
  const char* metric;
  uint64_t bit;
  const char* time;  // null: the hardware does not time it
};
constexpr Held kHeld[] = {{"gpu_hw_slowdown", 0x08, nullptr},
                          {"gpu_hw_thermal", 0x40, "gpu_thermal_ns"},
                          {"gpu_power_brake", 0x80, "gpu_power_brake_ns"},
                          {"gpu_sw_thermal", 0x20, "gpu_sw_thermal_ns"}};
constexpr uint64_t kFirstOfGpu = 1, kOfImexDomain = 5;

using Parts = std::map<std::string, uint64_t>;
// The name by value: with a reference to a temporary, GCC 14 wrongly warns that the result refers to it.
const Parts& parts_of(const NvmlCounts& counts, std::string_view metric) {
  static const Parts none;
  const auto found = counts.find(std::string(metric));
  return found == counts.end() ? none : found->second;
}
std::optional<uint64_t> gpu_count_of(const NvmlCounts& counts, const std::string& metric,
                                     const std::string& part) {
  const Parts& parts = parts_of(counts, metric);
  const auto found = parts.find(part);
  return found == parts.end() ? std::nullopt : std::optional<uint64_t>(found->second);
}

std::string gpu_of(const std::string& link) { return link.substr(0, link.find(" link ")); }

class Movement {
 public:
  Movement(const NvmlReading& now, const NvmlCounts& before, Measurement& out)
      : now_(now), before_(before), out_(out) {
    for (const char* key : {"absent", "moved"})
      if (!out_.detail.contains(key))
        out_.detail[key] = std::string(key) == "absent" ? Json::array() : Json::object();
  }

  void link_errors(const char* metric) {
    const Parts &now = parts_of(now_.counts, metric), &before = parts_of(before_, metric);
    uint64_t sum = 0;
    std::string gap;
    for (const auto& [part, count] : now) {
      const auto earlier = before.find(part);
      if (earlier == before.end())
        gap = part + " did not report this counter before the load";
      else
        sum += note(metric, part, rise_from(earlier->second, count));
    }
    for (const auto& [part, count] : before)
      if (!now.count(part)) gap = part + " no longer reports this counter";
    if (!now.empty() || !before.empty()) return report(metric, sum, gap, "");
    if (!lacks_by_design(metric)) return report(metric, sum, no_links(), "");
    not_applicable(metric);
  }

  void links() {
    std::map<std::string, double> active;  // by GPU
    uint64_t inactive = 0;
    for (const auto& [part, up] : parts_of(now_.counts, "nvlink_active")) {
      active[gpu_of(part)] += static_cast<double>(up);
      if (up == 0 && should_be_active(part)) inactive += note("nvlink_inactive", part, 1);
    }
    std::string gap = active.empty() ? no_links() : "";
    for (const auto& [gpu, present] : parts_of(now_.counts, "gpu_present"))
      if (is_on_a_board(gpu) && !active.count(gpu))
        gap = gpu + " reports no link, although its board connects every link";
    for (const auto& [part, up] : parts_of(before_, "nvlink_active"))
      if (!gpu_count_of(now_.counts, "nvlink_active", part)) gap = part + " no longer reports its state";
    report("nvlink_inactive", inactive, gap, "links");
    if (active.empty()) return;
    const auto fewest = std::min_element(active.begin(), active.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
    out_.metrics["nvlink_active"] = {fewest->second, "links"};
  }

  void held(const Held& what) {
    uint64_t gpus = 0;
    std::string gap;
    for (const auto& [gpu, present] : parts_of(now_.counts, "gpu_present")) {
      const auto was = gpu_count_of(before_, "gpu_reasons", gpu),
                 is = gpu_count_of(now_.counts, "gpu_reasons", gpu);
      uint64_t time = 0;
      if (what.time) {
        const auto earlier = gpu_count_of(before_, what.time, gpu),
                   later = gpu_count_of(now_.counts, what.time, gpu);
        if (earlier && later) time = rise_from(*earlier, *later);
      }
      const bool seen = ((was.value_or(0) | is.value_or(0)) & what.bit) != 0;
      if (seen || time > 0) gpus += note(what.metric, gpu, 1);
      if (!is) gap = gpu + " does not report why its clocks are low";
    }
    report(what.metric, gpus, parts_of(now_.counts, "gpu_present").empty() ? "no GPU answers" : gap, "GPUs");
  }

  // GPUs in whose state something is wrong, by what they report now.
  template <typename IsWrong>
  void state(const char* metric, const char* count, const IsWrong& is_wrong) {
    uint64_t gpus = 0;
    bool any = false;
    for (const auto& [gpu, value] : parts_of(now_.counts, count)) {
      any = true;
      if (is_wrong(gpu, value)) gpus += note(metric, gpu, 1);
    }
    if (!any && is_noted(count)) return report(metric, 0, "the driver returned an error", "GPUs");
    if (!any) return not_applicable(metric);
    out_.metrics[metric] = {static_cast<double>(gpus), "GPUs"};
  }

  // Where ECC can be switched off, it is on: always with HBM, else if any GPU of the model here has it on.
  bool ecc_is_off(const std::string& gpu, uint64_t on) const {
    if (on != 0) return false;
    const std::string model = model_of(gpu);
    if (const GpuModel* known = find_gpu_model(model); known && known->hbm) return true;
    const Parts& all = parts_of(now_.counts, "gpu_ecc_on");
    return std::any_of(all.begin(), all.end(), [&](const auto& other) {
      return other.second != 0 && model_of(other.first) == model;
    });
  }

  bool needs_recovery(const std::string& gpu, uint64_t action) {
    if (action > kLastOfGpu)
      actions_.push_back(fmt::format("{}: recovery action {}{}", gpu, action,
                                     action == kOfImexDomain ? ", of its IMEX domain" : ", unknown"));
    return action >= kFirstOfGpu && action <= kLastOfGpu;
  }

  void lost() {
    uint64_t gpus = 0;
    for (const auto& [gpu, present] : parts_of(before_, "gpu_present"))
      if (!gpu_count_of(now_.counts, "gpu_present", gpu)) gpus += note("gpus_lost", gpu, 1);
    report("gpus_lost", gpus, "", "GPUs");
  }

  void describe() {
    Json notes = Json::array();
    for (const auto& text : now_.notes)
      if (notes.size() < kNotesShown) notes.push_back(text);
    if (now_.notes.size() > kNotesShown)
      notes.push_back(fmt::format("and {} more", now_.notes.size() - kNotesShown));
    for (const auto& action : actions_) notes.push_back(action);
    out_.detail["nvml"] = {{"driver", now_.driver}, {"gpus", now_.models}, {"notes", notes}};
  }

 private:
  std::string no_links() const {
    if (parts_of(now_.counts, "gpu_present").empty()) return "no GPU answers";
    return kNoLinks;
  }
  std::string model_of(const std::string& gpu) const {
    const auto model = now_.models.find(gpu);
    return model == now_.models.end() ? std::string() : model->second;
  }
  // The bare name tells the rules that there is no such counter.
  void not_applicable(const char* metric) { out_.detail["absent"].push_back(metric); }
  // True if these GPUs have links but not this counter: A100 has all of kNvmlLinkErrors, Hopper none for the
  // checksum of data, Blackwell none at all. Of a model whose NVLink is unknown, what the driver does not
  // support; an error of the driver is another case.
  bool lacks_by_design(const std::string& metric) const {
    const auto is_it = [&](const char* one) { return metric == one; };
    const bool of_five = std::any_of(std::begin(kNvmlLink5Errors), std::end(kNvmlLink5Errors), is_it);
    if (of_five) return !is_noted(metric);
    if (parts_of(now_.counts, "nvlink_active").empty()) return false;
    return std::all_of(now_.models.begin(), now_.models.end(), [&](const auto& gpu) {
      const GpuModel* known = find_gpu_model(gpu.second);
      const int generation = known ? known->nvlink : 0;
      if (generation > 0) return generation >= 5 || (generation == 4 && metric == "nvlink_crc_data");
      return !is_noted(metric) && !is_noted("NVLink error counters");
    });
  }
  // True if the driver failed to report it, other than by not supporting it.
  bool is_noted(const std::string& count) const {
    return std::any_of(now_.notes.begin(), now_.notes.end(),
                       [&](const std::string& text) { return text.find(count) != std::string::npos; });
  }
  uint64_t note(const char* metric, const std::string& part, uint64_t by) {
    if (by > 0) out_.detail["moved"][part][metric] = by;
    return by;
  }
  // A sum that lacks a part cannot prove health, but errors in it do prove a fault.
  void report(const char* metric, uint64_t sum, const std::string& gap, const char* unit) {
    if (!gap.empty()) out_.detail["absent"].push_back(fmt::format("{}: {}", metric, gap));
    // A GPU without NVLink has no such counter, which the bare name tells the rules. A GPU that has NVLink
    // but does not report the counter is a different case.
    if (gap == kNoLinks && !should_have_links()) out_.detail["absent"].push_back(metric);
    if (gap.empty() || sum > 0) out_.metrics[metric] = {static_cast<double>(sum), unit};
  }
  // True if the GPU is on a board of four or more GPUs that uses every link.
  bool is_on_a_board(const std::string& gpu) const {
    const auto model = now_.models.find(gpu);
    const GpuModel* known = model == now_.models.end() ? nullptr : find_gpu_model(model->second);
    if (!known || !known->board) return false;
    const auto alike = std::count_if(now_.models.begin(), now_.models.end(),
                                     [&](const auto& other) { return other.second == model->second; });
    return static_cast<size_t>(alike) >= kSmallestBoard;
  }
  bool should_have_links() const {
    for (const auto& note : now_.notes)
      if (note.find("nvlink_active") != std::string::npos && note.find("this driver") == std::string::npos)
        return true;
    return std::any_of(now_.models.begin(), now_.models.end(),
                       [&](const auto& one) { return is_on_a_board(one.first); });
  }
  bool should_be_active(const std::string& part) const {
    if (gpu_count_of(before_, "nvlink_active", part).value_or(0) > 0) return true;
    const std::string gpu = gpu_of(part), link = part.substr(gpu.size());
    const auto model = now_.models.find(gpu);
    if (model == now_.models.end()) return false;
    size_t alike = 0, up = 0;
    for (const auto& [other, name] : now_.models)
      if (name == model->second)
        ++alike, up += gpu_count_of(now_.counts, "nvlink_active", other + link).value_or(0) > 0;
    if (is_on_a_board(gpu)) return true;
    return alike >= kFewestAlike && 2 * up > alike;
  }

  const NvmlReading& now_;
  const NvmlCounts& before_;
  Measurement& out_;
  std::vector<std::string> actions_ = {};
};

}  // namespace

void add_gpu_counters(const NvmlReading& now, const NvmlCounts& before, Measurement& out) {
  Movement movement(now, before, out);
  for (const char* metric : kNvmlLinkErrors) movement.link_errors(metric);
  for (const char* metric : kNvmlLink5Errors) movement.link_errors(metric);
  movement.links();
  for (const Held& what : kHeld) movement.held(what);
  movement.state("gpu_ecc_off", "gpu_ecc_on",
                 [&](const auto& gpu, uint64_t on) { return movement.ecc_is_off(gpu, on); });
  movement.state("gpu_recovery", "gpu_recovery_action",
                 [&](const auto& gpu, uint64_t action) { return movement.needs_recovery(gpu, action); });
  movement.state("gpu_repair", "gpu_repair_pending", [](const auto&, uint64_t bits) { return bits != 0; });
  movement.state("gpu_sram", "gpu_sram_exceeded",
                 [](const auto&, uint64_t too_many) { return too_many != 0; });
  movement.lost();
  movement.describe();
}

}  // namespace muster::kernels
