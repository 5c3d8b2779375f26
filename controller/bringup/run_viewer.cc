#include "controller/bringup/run_viewer.h"

#include <set>
#include <utility>

#include "base/json_dump.h"
#include "controller/bringup/run_view.h"
#include "controller/plan/shared_text.h"

namespace muster {

struct RunViewer::Kept {
  Kept(int64_t of, std::shared_ptr<const Plan> by)
      : run(of),
        plan(std::move(by)),
        records(*plan),
        nodes(plan->nodes.size()),
        actions(plan->actions.size()) {}
  Status bring_up_to_date(RunArchive& archive);
  void write_node(size_t at) { nodes[at] = dump_json(run_node_json(*plan, records, plan->nodes[at])); }
  void write_action(size_t at) {
    const Action& action = plan->actions[at];
    actions[at] = is_shown(action, records) ? dump_json(run_action_json(action, records)) : "";
  }

  const int64_t run;
  const std::shared_ptr<const Plan> plan;
  RunRecords records;
  int64_t seq = 0;                   // of the last row that is in the texts below
  std::vector<std::string> nodes;    // the plan's, each as JSON
  std::vector<std::string> actions;  // "": not shown
  bool written = false;
};

namespace {

std::string list_of(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const auto& item : items) {
    if (item.empty()) continue;
    if (out.size() > 1) out += ',';
    out += item;
  }
  return out + "]";
}

}  // namespace

Status RunViewer::Kept::bring_up_to_date(RunArchive& archive) {
  TRY(const auto rows, archive.journal_turns(run, seq));
  std::set<std::string> changed;
  for (const auto& row : rows) {
    TRY_(records.apply(row));
    seq = row.seq;
    changed.insert(row.node);
  }
  const bool all = !std::exchange(written, true);
  for (size_t i = 0; i < nodes.size(); ++i)
    if (all || changed.count(plan->nodes[i])) write_node(i);
  for (size_t i = 0; i < actions.size(); ++i)
    if (all || changed.count(plan->actions[i].node)) write_action(i);
  return Ok{};
}

Result<std::string> RunViewer::view(RunArchive& archive, const RunRow& row,
                                    std::shared_ptr<const Plan> plan) {
  // If this fails, the cached view is discarded, since it may include only some of the rows.
  auto kept = std::exchange(kept_, nullptr);
  if (!kept || kept->run != row.id || kept->plan != plan)
    kept = std::make_shared<Kept>(row.id, std::move(plan));
  TRY_(kept->bring_up_to_date(archive));
  kept_ = kept;
  const TextAround others = text_around(run_head_json(row, *kept->plan), "nodes");
  return "{\"actions\":" + list_of(kept->actions) + "," + others.before.substr(1) + list_of(kept->nodes) +
         others.after;
}

void RunViewer::forget(int64_t run) {
  if (kept_ && kept_->run == run) kept_.reset();
}

}  // namespace muster
