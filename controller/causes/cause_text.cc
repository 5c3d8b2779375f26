#include "controller/causes/cause_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace muster {
namespace {

constexpr size_t kLongestNames = 60;

struct KindText {
  CauseKind kind;
  const char *one, *many;  // "gpu03 is silent", "3 nodes are silent"
  const char* state;       // of `muster status --state`
};
constexpr KindText kKindTexts[] = {
    {CauseKind::node_silent, "is silent", "are silent", "silent"},
    {CauseKind::node_failed, "failed", "failed", "quarantined"},
    {CauseKind::node_degraded, "is degraded", "are degraded", "degraded"},
    {CauseKind::node_waits, "waits for a person", "wait for a person", "waiting"},
};

// Null for kinds that are not about nodes.
const KindText* text_of(CauseKind kind) {
  for (const KindText& text : kKindTexts)
    if (text.kind == kind) return &text;
  return nullptr;
}

std::string nodes_with(const Cause& cause, size_t of) {
  const size_t nodes = cause.nodes.size();
  const std::string& value = cause.common_value;
  const std::string some = fmt::format("{} of {} nodes", nodes, of);
  if (cause.common == "switch") return some + " behind switch " + value;
  if (cause.common == "rack") return some + " in rack " + value;
  if (cause.common == "image") return some + " with image " + value;
  if (cause.common == "firmware") return some + " with firmware " + value;
  if (cause.common == "model") return some + " of model " + value;
  if (cause.common == "cluster") return some;
  return fmt::format("{} nodes", nodes);
}

// Behind the verb, where what they have in common is no property of the nodes.
std::string because(const Cause& cause) {
  if (cause.common == "part") return ", and the same part is at fault: " + cause.common_value;
  if (cause.common == "step") return " at step " + cause.common_value;
  return cause.common == "reason" ? " for the same reason" : "";
}

std::string next_of_nodes(const Cause& cause, const KindText& text) {
  if (cause.kind == CauseKind::node_failed) return "muster logs " + cause.nodes.front();
  if (cause.kind == CauseKind::node_degraded) return "muster report";
  return with_names(cause.kind == CauseKind::node_waits ? "muster power done " : "muster power state ", cause,
                    fmt::format("muster status --state {}", text.state));
}

std::string next_of_cluster(CauseKind kind, const std::string& image) {
  switch (kind) {
    case CauseKind::rollout_stopped:
      return "muster rollout status";
    case CauseKind::window_bad:
      return "muster rollout report";
    case CauseKind::image_build:
      return fmt::format("muster image build {} --rebuild", image);
    case CauseKind::receiver:
      return "muster notify test";
    default:
      return "journalctl -u musterd -n 50";
  }
}

std::string next_of(const Cause& cause, const std::vector<const Problem*>& problems) {
  const std::string& given = problems.front()->next;
  const bool one_for_all = std::all_of(problems.begin(), problems.end(),
                                       [&](const Problem* problem) { return problem->next == given; });
  if (one_for_all && !given.empty()) return given;
  const KindText* text = text_of(cause.kind);
  if (text && !cause.nodes.empty()) return next_of_nodes(cause, *text);
  return next_of_cluster(cause.kind, problems.front()->image);
}

}  // namespace

bool is_of_nodes(CauseKind kind) { return text_of(kind) != nullptr; }

std::string with_names(const std::string& command, const Cause& cause, const std::string& without_names) {
  const std::string names = nodes_of(cause);
  return names.size() > kLongestNames ? without_names : command + names;
}

std::string model_value(const std::string& vendor, const std::string& product) {
  return vendor + (vendor.empty() || product.empty() ? "" : " ") + product;
}

std::string on_one_line(const std::string& text) { return printable(text); }

void describe(Cause& cause, size_t of, const std::vector<const Problem*>& problems) {
  cause.next = on_one_line(next_of(cause, problems));
  const KindText* text = text_of(cause.kind);
  const bool one = cause.nodes.size() == 1;
  if (text && one && of == 0)
    cause.what = fmt::format("{} {}", cause.nodes.front(), text->one);
  else if (text && !cause.nodes.empty())
    cause.what = fmt::format("{} {}{}", nodes_with(cause, of), one ? text->one : text->many, because(cause));
  else
    cause.what = std::exchange(cause.detail, "");
  if (!text && problems.size() > 1 && cause.nodes.size() != problems.size())
    cause.what += fmt::format(" (and {} more like it)", problems.size() - 1);
  if (cause.what.empty()) cause.what = cause_kind_word(cause.kind);
  cause.what = on_one_line(cause.what);
}

}  // namespace muster
