#include "controller/report/pcie_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/gpu_models.h"
#include "controller/report/held_rate.h"
#include "controller/report/measured.h"

namespace muster {
namespace {

constexpr const char* kLinkUnit = "GT/s";
constexpr double kCardLanes = 16;  // of all cards in the table of figures

// One end, or both together: lanes and the rate of each.
struct LinkEnd {
  double lanes = 0, speed = 0;
  double gts() const { return lanes * speed; }
  std::string words() const { return fmt::format("x{:g} at {:g} GT/s", lanes, speed); }
};

struct PcieLink {
  const MeasuredStep* step = nullptr;
  std::string part = {}, model = {}, machine = {};
  LinkEnd device = {}, slot = {}, both = {};
  bool is_of(const char* kind) const { return part.starts_with(kind); }  // "GPU", "switch"
  std::string kind() const { return part.substr(0, part.rfind(' ')); }
};
using PcieLinks =
    std::map<std::tuple<std::string, std::string, std::string>, PcieLink>;  // node, group, place

LinkEnd end_in(const Json& detail, const char* key) {
  const auto number = [&](const char* name) {
    const Json& value = field(field(detail, key), name);
    return value.is_number() ? value.get<double>() : 0;
  };
  return {number("width"), number("speed")};
}

// "0x10de:0x2330" -> "10de:2330"
std::string device_id(std::string like) {
  for (size_t at; (at = like.find("0x")) != std::string::npos;) like.erase(at, 2);
  return like;
}

PcieLinks read_links(const std::vector<MeasuredStep>& steps,
                     const std::map<std::string, const HardwareFacts*>& facts) {
  constexpr std::string_view kBegin = "PCIe link of ";
  PcieLinks out;
  for (const auto& step : steps) {
    const Json& detail = field(step.result, "detail");
    if (step.lab || text_of(field(step.result, "check")) != "pcie") continue;
    if (field(detail, "emulated_slot") == true) continue;
    PcieLink link{&step};
    link.part = text_of(field(detail, "part"));
    link.model = text_of(field(detail, "model"));
    link.device = end_in(detail, "device");
    link.slot = end_in(detail, "port");
    link.both = {std::min(link.device.lanes, link.slot.lanes), std::min(link.device.speed, link.slot.speed)};
    if (!link.part.starts_with(kBegin) || link.both.gts() <= 0) continue;
    link.part.erase(0, kBegin.size());
    if (const auto found = facts.find(step.node); found != facts.end() && found->second)
      link.machine = machine_kind(*found->second);
    out[{step.node, step.group, step.subject}] = std::move(link);
  }
  return out;
}

// What a part that can do `part` has in this slot.
double through(const LinkEnd& part, const LinkEnd& slot) {
  return std::min(part.lanes, slot.lanes) * std::min(part.speed, slot.speed);
}

// A switch is set up with lanes as its place needs them, and a card may be in a shorter slot than another of
// its model; GPUs of one model are wired alike.
void raise_by_sibling(const PcieLink& link, const PcieLink& other, HeldRate& held) {
  if (link.is_of("switch")) return;
  const double most = link.is_of("GPU") ? other.both.gts() : through(other.both, link.slot);
  held.raise(most, fmt::format("{} of the same node can do {}", other.part, other.both.words()), "this run");
}

HeldRate held_to_others(const PcieLink& link, const PcieLinks& all) {
  HeldRate out;
  for (const auto& [key, other] : all) {
    const auto& [node, group, place] = key;
    if (&other == &link || group != link.step->group || link.model.empty() || other.model != link.model)
      continue;
    if (node == link.step->node)
      raise_by_sibling(link, other, out);
    else if (place == link.step->subject && !link.machine.empty() && other.machine == link.machine)
      out.raise(other.both.gts(),
                fmt::format("the same place of {}, a like machine, can do {}", node, other.both.words()),
                "this run");
  }
  return out;
}

Check link_check(const PcieLink& link, const PcieLinks& all) {
  Check check;
  check.name = link.step->group + "/link_rate";
  check.title = link.step->title.empty() ? link.step->group : link.step->title;
  check.subject = link.step->subject;
  check.like = link.model;
  check.unit = kLinkUnit;
  check.mandatory = link.step->mandatory;
  check.measured = link.both.gts();
  check.measured_text = fmt::format("{} ({})", amount(link.both.gts(), kLinkUnit), link.both.words());
  const std::string id = device_id(link.step->like);
  const GpuFigure* figure = find_gpu_figure(id, kGpuLinkFigure);
  HeldRate held = held_to_others(link, all);
  if (figure) {
    // A card may be newer than its slot; a board is made for its GPUs.
    const bool board = find_gpu_model(id)->board;
    held.raise(board ? figure->value : through({kCardLanes, figure->value / kCardLanes}, link.slot),
               fmt::format("{} has {:g} GT/s over all lanes", figure->model, figure->value), figure->source);
  }
  const bool low = link.both.gts() < held.value, known = figure || link.both.gts() >= link.device.gts();
  if (!low && !known)
    return unjudged(
        std::move(check),
        fmt::format(
            "the slot of {} can do {}, less than the device ({}): whether that is by design is not known",
            link.part, link.slot.words(), link.device.words()),
        "slot of " + link.kind() + (link.model.empty() ? "" : " " + link.model));
  held.raise(link.both.gts(), "its device can do no more", "its registers, as the kernel reports them");
  pass_held_to(held, kLinkUnit, check);
  if (!low) return check;
  check.verdict = Verdict::degraded;
  check.reason = fmt::format("the two ends of {} can do {} together, less than {}: {}", link.part,
                             check.measured_text, amount(held.value, kLinkUnit), held.because);
  check.faulty_parts = {"PCIe link of " + link.part};
  return check;
}

}  // namespace

void judge_pcie_links(const std::vector<MeasuredStep>& steps,
                      const std::map<std::string, const HardwareFacts*>& facts,
                      std::map<std::string, std::vector<Check>>& checks) {
  const PcieLinks links = read_links(steps, facts);
  for (const auto& [key, link] : links) checks[link.step->node].push_back(link_check(link, links));
}

}  // namespace muster
