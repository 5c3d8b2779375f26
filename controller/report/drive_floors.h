// The floors that measured drives must reach according to their models. Neither a constant nor a comparison
// with other drives of the same run can provide such a floor, since all of those may be slow. Internal to
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
