// A rollout as stored (RolloutRow::text): the current approval, the progress of the rollout under it, and
// what its report needs later. Only the newest record is in effect. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/rollout/approval.h"
#include "controller/rollout/rollout_row.h"

namespace muster::rollout {

// A batch that had a run.
struct BatchRun {
  int64_t number = 0, run = 0;
  bool canary = false;
  std::map<std::string, std::string> images = {};  // node -> digest that it was to get
};

struct Record {
  int64_t id = 0;
  Approval approval;
  std::optional<Row> row;         // none: approved, and not started yet
  TimeMs started = 0, ended = 0;  // first start; when it was done or stopped (0: it is not)
  int64_t night = 0;              // starts so far, of this approval
  TimeMs window_until = 0;        // of the last start
  std::string why_paused;         // while Row::paused
  std::vector<BatchRun> runs = {};
  std::map<std::string, std::string> before = {};  // node -> image that it had, of those that were taken
  std::map<std::string, std::string> left = {};  // node -> why it waits or is left out, as of the last check
};

// A batch's run is found again by the approver in its row: "rollout 3/2, approved by NAME".
std::string run_tag(int64_t rollout, int64_t batch);
// Whether RunRow::approved_by has this tag.
bool has_tag(const std::string& approved_by, const std::string& tag);

// "approved", "canary", "batches", "paused", "stopped", "done".
std::string state_of(const Record& record);
// Why nothing more can start under its approval; "": it can.
std::string spent(const Record& record);

std::string to_text(const Record& record);
Result<Record> record_from_text(const std::string& text);  // corrupt

}  // namespace muster::rollout
