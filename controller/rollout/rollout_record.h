// A rollout as it lies in the store (RolloutRow::text): the standing approval, how far the rollout under it
// is, and what its report needs later. The newest record is the one there is. Pure.
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
  std::map<std::string, std::string> left =
      {};  // node -> why it waits or is left, when that was looked at last
};

// A run of a batch is found again by what its row says of who approved it: "rollout 3/2, approved by NAME".
std::string run_tag(int64_t rollout, int64_t batch);
// Whether RunRow::approved_by has this tag.
bool has_tag(const std::string& approved_by, const std::string& tag);

// "approved", "canary", "batches", "paused", "stopped", "done".
std::string state_of(const Record& record);
// Why nothing further begins under its approval; "": it may.
std::string spent(const Record& record);

std::string to_text(const Record& record);
Result<Record> record_from_text(const std::string& text);  // corrupt

}  // namespace muster::rollout
