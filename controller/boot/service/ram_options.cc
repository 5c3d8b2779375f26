#include "controller/boot/service/ram_options.h"

#include "base/kernel_line.h"

namespace muster {

std::string ram_kernel_options(const std::string& own, const Spec& cluster, const NodeSpec* node) {
  const std::string declared = declared_variable(cluster, node, "kernel_options");
  return (own.empty() ? "" : own + " ") +
         panic_argument(own + " " + declared);  // if it is given twice, the last one wins
}

}  // namespace muster
