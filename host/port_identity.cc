#include "host/port_identity.h"

#include "base/lower.h"
#include "base/placeholders.h"
#include "base/split.h"

namespace muster {
namespace {

// The interface's own link shows the path from the root complex, with the interface's name at the end; the
// device's links show the kind of device.
bool is_on_usb(const Files& files, const std::string& folder) {
  const std::string way = files.read_link(folder).value_or("");
  if (way.substr(0, way.rfind('/') + 1).find("/usb") != std::string::npos) return true;
  return last_component(files.read_link(folder + "/device/subsystem").value_or("")) == "usb" ||
         is_usb_driver(last_component(files.read_link(folder + "/device/driver").value_or("")));
}

}  // namespace

PortAddress port_address(const Files& files, const std::string& folder) {
  PortAddress out;
  out.mac = lower(files.read_line(folder + "/address"));
  const std::string own = lower(files.read_line(folder + "/bonding_slave/perm_hwaddr"));
  if (is_station_address(own)) out.mac = own;
  if (is_on_usb(files, folder))
    out.kind = "usb";
  else if (files.exists(folder + "/device/physfn"))
    out.kind = "virtual-function";
  return out;
}

}  // namespace muster
