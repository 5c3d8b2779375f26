// The read rates of the drives under a file system, measured in the same run: the floor that needs no
// constant. Internal to controller/report. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/report/expected.h"
#include "controller/report/verdict.h"

namespace muster {

// node -> serial -> MB/s with all drives of that kind read in parallel, if measured; else read alone.
using RawReads = std::map<std::string, std::map<std::string, double>>;
// Takes expand()ed steps; only successful measurements count.
RawReads raw_reads(const std::vector<MeasuredStep>& steps);

// Returns how many times the rate of one drive an array of n drives reads at least; 0: unknown.
double data_drives(const std::string& level, double n);

// Returns the sum over the drives that the measurement of a file system names (detail.drives), less what its
// array (detail.level) keeps for redundancy. No value if one of them was not measured, or for writes with
// parity, whose cost depends on the processor.
Derived array_reads(const MeasuredStep& step, const std::string& metric, const RawReads& raw);

}  // namespace muster
