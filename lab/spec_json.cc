// LabSpec as DIR/lab.json. What is optional is missing in the file of a lab that an older version started.
#include "base/record.h"
#include "lab/lab_spec.h"

namespace muster::lab {

MUSTER_RECORD(LabPort, lenient, network, mac, cabled, opt(counting))
MUSTER_RECORD(LabDrive, lenient, name, size_bytes, serial, boot)
MUSTER_RECORD(LabNode, lenient, name, number, mac, address, bmc_address, profile, opt(ipmi), opt(server),
              memory_mib, smp, in_spec, uuid, serial, drives, opt(ports), opt(gpus), opt(gpu_model))
MUSTER_RECORD(DriveTemplate, lenient, name, size_bytes, serial_prefix, count)
MUSTER_RECORD(LabSpec, lenient, cluster, provisioning_cidr, controller, user, secrets, nodes, drives, profile,
              opt(ipmi), opt(provider_api), memory_mib, smp, opt(storage_nic), opt(rails), opt(gpus),
              opt(gpu_model), opt(time_scale))

Json ports_json(const std::vector<LabPort>& ports) { return record::written(ports); }

Json to_json(const LabSpec& spec) { return record_json(spec); }

Result<LabSpec> lab_spec_from_json(const Json& json) {
  auto spec = read_record<LabSpec>(json, "lab.json");
  if (!spec.ok()) return fail(Code::corrupt, spec.error().message);
  return spec;
}

}  // namespace muster::lab
