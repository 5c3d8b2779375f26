// What the drives under a file system read by themselves, in the same run: the floor that needs no constant.
// Internal to controller/report. Thread: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/report/expected.h"
#include "controller/report/verdict.h"

namespace muster {

// node -> serial -> MB/s: side by side with the others of its kind where that was measured, else alone.
using RawReads = std::map<std::string, std::map<std::string, double>>;
// Of expand()ed steps; only of measurements that came to a result.
RawReads raw_reads(const std::vector<MeasuredStep>& steps);

// How many of n drives' worth the data of an array of this level can be read from for certain; 0: not known.
double data_drives(const std::string& level, double n);

// The sum over the drives that the measurement of a file system names (detail.drives), less what its array
// (detail.level) keeps for redundancy. No value where one of them was not measured, or for writes with
// parity, whose cost depends on the processor.
Derived array_reads(const MeasuredStep& step, const std::string& metric, const RawReads& raw);

}  // namespace muster
