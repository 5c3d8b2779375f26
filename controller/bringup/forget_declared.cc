#include "controller/bringup/forget_declared.h"

#include "controller/link/discovery.h"
#include "sys/log.h"

namespace muster {

void forget_declared(CurrentSpec& spec, Store& store, Executor& executor, LinkHub& link) {
  const auto names = store.node_names();
  if (!names.ok()) return;
  for (const auto& name : *names) {
    const std::string mac = mac_of_unknown(name);
    if (mac.empty() || node_of_mac(spec, mac).empty() || !executor.forget(NodeName(name))) continue;
    store.write({DeleteNode{NodeName(name)}}, [name, &link](Status written) {
      if (!written.ok())
        log::error("cannot delete the node's old row", {{"node", name}, {"error", written.error().message}});
      link.hang_up(NodeName(name));
    });
  }
}

}  // namespace muster
