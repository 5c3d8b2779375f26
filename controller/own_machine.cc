#include "controller/own_machine.h"

#include <algorithm>

namespace muster {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

OwnMachine read_own_machine(const std::string& sys) {
  const Files files(sys);
  OwnMachine own;
  own.uuid = lower(files.read_line("/class/dmi/id/product_uuid"));
  for (const auto& name : files.list("/class/net")) {
    const std::string port = "/class/net/" + name;
    if (!files.exists(port + "/device")) continue;
    // A port of a bond shows the bond's address, and keeps its own beside it.
    for (const char* file : {"/address", "/bonding_slave/perm_hwaddr"})
      if (const std::string mac = lower(files.read_line(port + file));
          mac.size() == 17 && mac != "00:00:00:00:00:00")
        own.macs.insert(mac);
  }
  return own;
}

}  // namespace muster
