// What measured drives must reach according to their models: the floor that neither a constant nor the other
// drives of the same run can give, since those may all be slow. Internal to controller/report. Thread: pure
// functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/report/expected.h"
#include "controller/report/verdict.h"
#include "controller/spec/spec.h"

namespace muster {

// What a profile writes after `derive:`, and the metrics that it may be written for.
inline constexpr const char* kDriveModels = "drive_models";
bool is_known_of_drives(const std::string& metric);

// Models and links of drives, by node and serial.
struct DriveFound {
  std::string model = {}, link = {};  // link: as trained, "16.0 GT/s x4"; empty: not reported
};
using DrivesFound = std::map<std::string, std::map<std::string, DriveFound>>;
// From the inventories, and from the drives that were measured in this run (expand()ed steps).
DrivesFound drives_found(const std::vector<MeasuredStep>& steps,
                         const std::map<std::string, const HardwareFacts*>& facts);

// For one drive: the table's figure, limited by its PCIe link. For a file system: the sum over the drives
// under it (detail.drives), less what its array (detail.level) keeps for redundancy. Random reads are limited
// by the number in flight (detail.random_jobs). No value where a drive's model is not in the table, or for
// writes with parity.
Derived drive_value(const MeasuredStep& step, const std::string& metric, const std::vector<DriveModel>& table,
                    const DrivesFound& found);

}  // namespace muster
