// Escaping for HTML and XML, and the plots of the HTML report. Internal to controller/report.
//
// Every string that is not a literal of these files must pass through escape(), which makes it valid UTF-8,
// replaces characters that control a display (base/printable.h) and those that XML forbids, and escapes & < >
// " '. The result is safe in text and in quoted attributes of both. Thread safety: stateless functions.
#pragma once

#include <string>
#include <string_view>

#include "controller/report/report.h"

namespace muster::markup {

std::string escape(std::string_view text);
// Returns one line of valid UTF-8 for a terminal: control characters, escapes and direction overrides become
// '?', so that a disk's serial number cannot control the terminal.
std::string plain(std::string_view text);
// Returns text of [a-z0-9-] for id="" and href="#"; different names give different anchors.
std::string anchor(std::string_view text);
// "12.3 s", "3 min 10 s"
std::string duration(DurationMs ms);
std::string size(uint64_t bytes);  // "3.84 TB"

// Returns what a check's name adds to its title: "triad" for "stream/triad_mbps", "" for "dgemm/gflops" and
// "hardware/gpus".
std::string metric_label(const std::string& check_name);

std::string timeline(const Report& report);  // Gantt: phases per node
std::string heat_map(const Report& report);  // link bandwidth by pair
std::string bars(const Report& report);      // measured against expected, one block per check
std::string scaling(
    const Report& report);  // the scaling study: efficiency against number of nodes; energy as a table
std::string drift(const Report& report);  // differences among nodes that should be alike: drift_table.cc

}  // namespace muster::markup
