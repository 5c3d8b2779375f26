// Parts of the inventory that a measurement of all such parts did not see: whole drives, and the PCIe links
// of GPUs and NVMe drives. They were there before the test. Internal to controller/report. Thread safety:
// stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/report/verdict.h"

namespace muster {

// Gives each of them a part of its own in the step's result, which failed. Counts only where another part of
// the same model was seen: the measurement may leave out kinds of parts that the inventory has (a zoned
// drive, a GPU whose link a hypervisor hides).
void add_vanished(std::vector<MeasuredStep>& steps, const std::map<std::string, const HardwareFacts*>& facts);

}  // namespace muster
