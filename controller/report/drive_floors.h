// The floors that measured drives must reach according to their models. Neither a constant nor a comparison
// with other drives of the same run can provide such a floor, since all of those may be slow. A file system's
// floor needs no table: the read rates of its drives, measured in the same run. Internal to
// controller/report. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/report/expected.h"
#include "controller/report/verdict.h"
#include "controller/spec/spec.h"

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

// The value of `derive:` in a profile, and whether a metric may have it.
inline constexpr const char* kDriveModels = "drive_models";
bool is_known_of_drives(const std::string& metric);

// Models and links of drives, by node and serial.
struct DriveFound {
  std::string model = {}, link = {};  // link: as trained, "16.0 GT/s x4"; empty: not reported
};
using DrivesFound = std::map<std::string, std::map<std::string, DriveFound>>;
// Returns the drives of the inventories, and the drives that were measured in this run (expand()ed steps).
DrivesFound drives_found(const std::vector<MeasuredStep>& steps,
                         const std::map<std::string, const HardwareFacts*>& facts);

// Returns the floor. For one drive: the table's value, limited by its PCIe link. For a file system: the sum
// of its drives (detail.drives), less what its array (detail.level) keeps for redundancy. Random reads are
// limited by the number in flight (detail.random_jobs). No value if a drive's model is not in the table, or
// for writes with parity.
Derived drive_value(const MeasuredStep& step, const std::string& metric, const std::vector<DriveModel>& table,
                    const DrivesFound& found);

}  // namespace muster
