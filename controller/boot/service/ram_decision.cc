#include "controller/boot/service/ram_decision.h"

#include <fmt/format.h>

#include "controller/boot/service/kexec_order.h"
#include "controller/spec/own_variables.h"

namespace muster {

BootDecision ram_decision(const RamSource& from, const std::string& name, const std::string& token) {
  const std::string image = from.node ? from.node->image : discovery_image(from.cluster);
  BootDecision decision;
  decision.ram = true;
  decision.base_url = fmt::format("http://{}:{}", from.address, from.options.boot_port);
  decision.kernel = "/ram/" + image + "/vmlinuz";
  decision.initrd = "/ram/" + image + "/initrd";
  decision.console =
      declared_variable(from.cluster, from.node, own_variable::kConsole, from.cluster.lab ? "ttyS0" : "");
  decision.url = fmt::format("https://{}:{}", from.address, from.options.tls_port);
  decision.pin = from.ca_fingerprint.substr(from.ca_fingerprint.find(':') + 1);
  decision.token = token;
  decision.node = name;
  decision.extra = ram_kernel_options(from.options.kernel_options, from.cluster, from.node);
  return decision;
}

std::string discovery_image(const Spec& spec) {
  for (const auto& node : spec.nodes)
    if (!node.image.empty()) return node.image;
  return "";
}

}  // namespace muster
