// A rollout's row as stored. Pure.
#pragma once

#include <string>

#include "controller/rollout/rollout_row.h"

namespace muster::rollout {

// JSON on one line. Equal rows are equal text.
std::string to_text(const Row& row);
// corrupt: it is not what to_text() writes, or of a later version.
Result<Row> row_from_text(const std::string& text);

std::string_view to_string(Stage stage);
std::string_view to_string(StopReason reason);

}  // namespace muster::rollout
