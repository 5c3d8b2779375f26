#include "cli/shown_preview.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/name_ranges.h"
#include "base/plural.h"
#include "base/split.h"
#include "base/wrapped.h"
#include "cli/terminal.h"

namespace muster::cli {
namespace {

constexpr size_t kPipeWidth = 80;
// What the controller does when a spec changes (Core::create in controller/daemon.cc).
constexpr const char* kStoringAlone =
    "Storing it takes effect on the controller at once, before any plan: DHCP answers for the machines of "
    "this spec, and starts with the first spec that manages it; limits of events apply; records of provider "
    "installs that the spec no longer has are deleted.";

class PreviewText {
 public:
  PreviewText(TimeMs now, size_t width) : now_(now), width_(width) {}

  std::string of(const Json& preview) {
    about(preview);
    images(list_at(preview, "images"));
    secrets(list_at(preview, "secrets"));
    const Json& plans = list_at(preview, "plans");
    for (size_t i = 0; i < plans.size(); ++i) plan(plans[i], i > 0);
    live(list_at(preview, "live"));
    destroys(plans);
    warnings(list_at(preview, "warnings"));
    end(preview);
    return std::move(out_);
  }

 private:
  void line(const std::string& text) {
    for (const std::string& one : wrapped(text, width_)) out_ += one + "\n";
  }
  void title(const std::string& text) {
    out_ += "\n";
    line(text);
  }
  void diff(const std::string& text, const std::string& indent) {
    for (const std::string& one : split_lines(clean_lines(text))) out_ += indent + one + "\n";
  }

  void about(const Json& preview) {
    const int64_t stored = integer_at(preview, "revision");
    const std::string cluster = "Cluster " + clean_at(preview, "cluster");
    if (is_true_at(preview, "unchanged"))
      line(fmt::format("{}: revision {}, which is stored", cluster, stored));
    else
      line(fmt::format("{}: this would be revision {}; {}", cluster, integer_at(preview, "coming"),
                       stored > 0 ? fmt::format("revision {} is stored", stored) : "none is stored yet"));
    if (const int64_t run = integer_at(preview, "run"); run > 0)
      line(fmt::format("Run {} is under way: no spec can be stored before it has ended (`muster watch`).",
                       run));
    // A first spec is new as a whole.
    if (stored > 0 && !text_at(preview, "diff").empty()) {
      out_ += "\n";
      diff(text_at(preview, "diff"), "");
    }
    if (const auto removed = name_list(list_at(preview, "removed")); !removed.empty())
      line(fmt::format("No longer declared: {}. Nothing is done to them.", names_in_ranges(removed)));
  }

  void images(const Json& due) {
    if (due.empty()) return;
    title("Images to be built:");
    for (const Json& image : due) {
      const std::string error = clean_at(image, "error");
      line(fmt::format("  {}: {}", clean_at(image, "name"),
                       error.empty() ? clean_at(image, "why") : "CANNOT BE BUILT: " + error));
    }
  }

  void secrets(const Json& unset) {
    if (unset.empty()) return;
    title("Secrets that are not set (`muster secret set NAME`):");
    for (const Json& secret : unset) {
      const auto nodes = name_list(list_at(secret, "nodes"));
      const auto receivers = name_list(list_at(secret, "receivers"));
      line(fmt::format("  {}: of {}{}{}", clean_at(secret, "name"), names_in_ranges(nodes),
                       !nodes.empty() && !receivers.empty() ? ", " : "",
                       receivers.empty() ? "" : "receivers " + some_of(receivers)));
    }
  }

  void plan(const Json& planned, bool later) {
    const Json& refusals = list_at(planned, "refusals");
    if (const std::string error = text_at(planned, "error"); !error.empty()) {
      title("The nodes after that CANNOT BE PLANNED:");
      for (const std::string& one : split_lines(clean_lines(error))) line("  " + one);
      return;
    }
    if (!refusals.empty()) {
      title(later ? "The nodes after that are REFUSED:" : "REFUSED:");
      for (const Json& refusal : refusals)
        line(fmt::format("  {}: {} [{}]", clean_at(refusal, "node"), clean_at(refusal, "message"),
                         clean_at(refusal, "rule")));
      return;
    }
    const Json& nodes = list_at(planned, "nodes");
    if (nodes.empty())
      title("Nothing to do on the nodes.");
    else
      title(fmt::format("{}: {} on {}", later ? "Then" : "Plan", clean_at(planned, "kind"),
                        counted(nodes.size(), "node")));
    for (const auto& [change, names] : same_changes(nodes)) change_of(*change, names);
    names_line("unchanged", list_at(planned, "unchanged"));
    names_line("left out", list_at(planned, "left_out"));
    for (const Json& note : list_at(planned, "notes"))
      if (note.is_string()) line("  note: " + clean(note.get<std::string>()));
  }

  void names_line(const char* what, const Json& list) {
    if (const auto names = name_list(list); !names.empty())
      line(fmt::format("  {}: {}", what, names_in_ranges(names)));
  }

  // In the order of the plan; of nodes with the same change the one that was seen longest ago.
  using Changes = std::vector<std::pair<const Json*, std::vector<std::string>>>;
  static Changes same_changes(const Json& nodes) {
    Changes out;
    std::map<std::string, size_t> places;
    for (const Json& node : nodes) {
      Json rest = node;
      rest.erase("node");
      rest.erase("facts_time");
      const auto [place, fresh] = places.emplace(dump_json(rest), out.size());
      if (fresh) out.push_back({&node, {}});
      auto& [first, names] = out[place->second];
      if (integer_at(node, "facts_time") < integer_at(*first, "facts_time")) first = &node;
      names.push_back(clean_at(node, "node"));
    }
    return out;
  }

  void change_of(const Json& change, const std::vector<std::string>& names) {
    const TimeMs seen = integer_at(change, "facts_time");
    line(fmt::format(
        "  {}: {}, because {}{}{}", names_in_ranges(names), clean_at(change, "work"), clean_at(change, "why"),
        is_true_at(change, "accepted_again") ? "; accepted again" : "",
        seen > 0 ? fmt::format("; as seen {} ago", to_human(std::max<TimeMs>(now_ - seen, 0))) : ""));
    const std::string work = clean_at(change, "work");
    if (!is_true_at(change, "compared") && (work == "configure" || work == "re-image"))
      line(
          "    which of its steps change is not known: the stored spec gives no plan for it, or there are "
          "too "
          "many nodes");
    if (!is_true_at(change, "compared")) return;
    const Json& steps = list_at(change, "steps");
    if (steps.empty()) line("    no step differs from those under the stored spec");
    for (const Json& step : steps) {
      line(fmt::format("    {}: {} ({})", clean_at(step, "change"), clean_at(step, "step"),
                       clean_at(step, "module")));
      diff(text_at(step, "diff"), "      ");
    }
  }

  void live(const Json& nodes) {
    if (nodes.empty()) return;
    title("As the agents find it now:");
    for (const auto& [found, names] : same_changes(nodes)) {
      const std::string who = names_in_ranges(names), error = clean_at(*found, "error");
      const Json& steps = list_at(*found, "steps");
      if (!error.empty()) line(fmt::format("  {}: NOT CHECKED: {}", who, error));
      if (!error.empty() && steps.empty()) continue;
      line(fmt::format("  {}: {} as declared, {} not", who,
                       counted(static_cast<size_t>(integer_at(*found, "as_declared")), "step"),
                       steps.size()));
      for (const Json& step : steps) {
        line(fmt::format("    {}: {}", clean_at(step, "step"), clean_at(step, "message")));
        diff(text_at(step, "diff"), "      ");
      }
    }
  }

  void destroys(const Json& plans) {
    bool any = false, planned = false, unknown = false;
    for (const Json& plan : plans) {
      planned = planned || !list_at(plan, "nodes").empty();
      unknown = unknown || !list_at(plan, "refusals").empty() || !text_at(plan, "error").empty();
      for (const Json& lost : list_at(plan, "destroys")) {
        if (!std::exchange(any, true)) title("WILL BE DESTROYED:");
        line("  " + loss(lost));
      }
    }
    if (planned && !any && !unknown) title("Nothing will be destroyed by what can be planned now.");
  }

  static std::string loss(const Json& lost) {
    const std::string node = clean_at(lost, "node");
    if (is_true_at(lost, "every_disk"))
      return fmt::format("{}: all data on all of its disks ({}): {}", node, clean_at(lost, "content"),
                         clean_at(lost, "why"));
    return fmt::format("{} {}: serial {}, {}, {}; now: {}; for: {}", node, clean_at(lost, "group"),
                       clean_at(lost, "serial"), clean_at(lost, "model"),
                       human_bytes(static_cast<double>(integer_at(lost, "size_bytes"))),
                       clean_at(lost, "content"), clean_at(lost, "why"));
  }

  void warnings(const Json& found) {
    if (found.empty()) return;
    title("Warnings, as of `muster spec check`:");
    for (const Json& one : found) line("  " + warning_line(one));
  }

  void end(const Json& preview) {
    title("Nothing is stored, built or done yet.");
    if (!is_true_at(preview, "unchanged")) line(kStoringAlone);
    if (list_at(preview, "images").empty()) return;
    line(
        "The plan follows from images once they are built: `muster up` shows it again before it carries it "
        "out.");
  }

  const TimeMs now_;
  const size_t width_;
  std::string out_ = {};
};

}  // namespace

std::string warning_line(const Json& warning) {
  const std::string path = clean_at(warning, "path");
  return fmt::format("{}:{}:{}: {}{} [{}]", clean_at(warning, "file"), integer_at(warning, "line"),
                     integer_at(warning, "column"), path.empty() ? "" : path + ": ",
                     clean_at(warning, "message"), clean_at(warning, "code"));
}

std::string render_spec_preview(const Json& preview, TimeMs now, size_t width) {
  return PreviewText(now, width).of(preview);
}

size_t text_width() {
  const size_t width = terminal_width();
  return width == 0 ? kPipeWidth : width;
}

}  // namespace muster::cli
