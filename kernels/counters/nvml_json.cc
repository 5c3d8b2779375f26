// Separate from nvml.cc, since muster-accept is statically linked: it only parses the output of
// muster-accept-nvml, without the dynamic loader.
#include "base/record.h"
#include "kernels/counters/nvml.h"

namespace muster::kernels {

MUSTER_RECORD(NvmlHolder, gpu, pid, sparse(mib))
MUSTER_RECORD(NvmlReading, driver, counts, models, notes, sparse(holders))

Json to_json(const NvmlReading& reading) { return record_json(reading); }

Result<NvmlReading> nvml_from_json(const Json& json) { return read_record<NvmlReading>(json, "nvml"); }

}  // namespace muster::kernels
