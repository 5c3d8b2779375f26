#include "controller/boot/service/kexec_order.h"

#include <fmt/format.h>

#include "base/kernel_line.h"
#include "base/wire.h"
#include "controller/current/current_spec.h"
#include "controller/image/ram.h"
#include "controller/spec/own_variables.h"

namespace muster {

std::string ram_kernel_options(const std::string& own, const Spec& cluster, const NodeSpec* node) {
  const std::string declared = declared_variable(cluster, node, own_variable::kKernelOptions);
  return (own.empty() ? "" : own + " ") +
         panic_argument(own + " " + declared);  // if it is given twice, the last one wins
}

Result<Json> kexec_order(const Spec& cluster, const NodeSpec& node, const BootDecision& decision,
                         const std::string& image_folder) {
  wire::KexecJob job{decision.base_url,
                     decision.kernel,
                     "",
                     decision.initrd,
                     "",
                     ram_arguments(decision),
                     node.mac,
                     cluster.network.gateway,
                     fmt::format("{}/{}", node.address, prefix_length(cluster.network.provisioning.cidr))};
  if (const std::string wrong = wrong_ram_arguments(decision); !wrong.empty())
    return fail(Code::invalid, node.name + ": " + wrong);
  TRY(const RamInfo ram, packed_ram_system(image_folder));
  job.kernel_sha256 = ram.kernel_sha256;
  job.initrd_sha256 = ram.initrd_sha256;
  return wire::to_json(job);
}

}  // namespace muster
