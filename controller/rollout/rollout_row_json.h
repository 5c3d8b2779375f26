// The JSON text of a rollout's row, as it is stored. Pure functions, no I/O.
#pragma once

#include <string>

#include "controller/rollout/rollout_row.h"

namespace muster::rollout {

// Returns JSON on one line. Equal rows give equal text.
std::string to_text(const Row& row);
// Reads the text. Code::corrupt: it was not written by to_text(), or was written by a later version.
Result<Row> row_from_text(const std::string& text);

std::string_view to_string(Stage stage);
std::string_view to_string(StopReason reason);

}  // namespace muster::rollout
