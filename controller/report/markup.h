// Escaping for HTML and XML, and the plots of the HTML report. Internal to controller/report.
//
// Every string that did not come from a literal in these files goes through escape(): it makes valid UTF-8,
// drops control characters that XML forbids, and escapes & < > " '. Its result is safe in text and in quoted
// attributes of both. Thread: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "controller/report/report.h"

namespace muster::markup {

std::string escape(std::string_view text);
// One line of valid UTF-8 for a terminal: controls, escapes and direction overrides become '?'. A terminal
// must not obey a disk's serial number.
std::string plain(std::string_view text);
// [a-z0-9-] only: for id="" and href="#", distinct names stay distinct.
std::string anchor(std::string_view text);
// "12.3 s", "3 min 10 s"
std::string duration(DurationMs ms);
std::string size(uint64_t bytes);  // "3.84 TB"
std::string short_digest(const std::string& digest);

// What a check's name adds to its title: "triad" of "stream/triad_mbps", "" of "dgemm/gflops" and
// "hardware/gpus".
std::string metric_label(const std::string& check_name);

std::string timeline(const Report& report);  // Gantt: phases per node
std::string heat_map(const Report& report);  // link bandwidth by pair
std::string bars(const Report& report);      // measured against expected, one block per check
std::string scaling(const Report& report);   // the scaling study: scaling_plot.cc
std::string drift(const Report& report);     // what differs among like nodes: drift_table.cc

}  // namespace muster::markup
