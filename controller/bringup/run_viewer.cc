#include "controller/bringup/run_viewer.h"

#include <set>
#include <utility>

#include "base/json_dump.h"
#include "controller/bringup/run_view.h"

namespace muster {

struct RunViewer::Kept {
  Kept(int64_t of, std::shared_ptr<const Plan> by)
      : run(of),
        plan(std::move(by)),
        records(*plan),
        nodes(plan->nodes.size()),
        actions(plan->actions.size()) {}
  void write(size_t node);

  const int64_t run;
  const std::shared_ptr<const Plan> plan;
  RunRecords records;
  int64_t seq = 0;                   // of the last row that is in them
  std::vector<std::string> nodes;    // the plan's, each as JSON
  std::vector<std::string> actions;  // "": not shown
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

void RunViewer::Kept::write(size_t node) {
  const std::string& name = plan->nodes[node];
  nodes[node] = dump_json(run_node_json(*plan, records, name));
  for (const Action* action : records.node(name).actions)
    actions[static_cast<size_t>(action - plan->actions.data())] =
        is_shown(*action, records) ? dump_json(run_action_json(*action, records)) : "";
}

Status RunViewer::bring_up_to_date(RunArchive& archive) {
  TRY(const auto rows, archive.journal_turns(kept_->run, kept_->seq));
  std::set<std::string> changed;
  for (const auto& row : rows) {
    TRY_(kept_->records.apply(row));
    kept_->seq = row.seq;
    changed.insert(row.node);
  }
  for (size_t i = 0; i < kept_->plan->nodes.size(); ++i)
    if (kept_->nodes[i].empty() || changed.count(kept_->plan->nodes[i])) kept_->write(i);
  return Ok{};
}

Result<std::string> RunViewer::view(RunArchive& archive, const RunRow& row,
                                    std::shared_ptr<const Plan> plan) {
  if (!kept_ || kept_->run != row.id || kept_->plan != plan)
    kept_ = std::make_shared<Kept>(row.id, std::move(plan));
  if (auto done = bring_up_to_date(archive); !done.ok()) {
    kept_.reset();  // some of the rows may be in it
    return done.error();
  }
  const std::string head = dump_json(run_head_json(row, *kept_->plan));
  return "{\"nodes\":" + list_of(kept_->nodes) + ",\"actions\":" + list_of(kept_->actions) + "," +
         head.substr(1);
}

}  // namespace muster
