// The one way in which the agent restarts or stops an installed system through systemd.
#pragma once

#include <string>

#include "sys/os.h"

namespace muster {

// From systemd 255 on, `systemctl reboot` starts a kernel that was loaded with `kexec -l`, or the system in
// /run/nextroot, without firmware and boot loader: an entry for one boot would not be read. Earlier versions
// ignore these variables. `--force` and reboot.target are not affected.
inline Command systemctl_now(const std::string& verb) {
  Command out;
  out.argv = {"systemctl", "--no-block", verb};
  out.env = {{"SYSTEMCTL_SKIP_AUTO_KEXEC", "1"}, {"SYSTEMCTL_SKIP_AUTO_SOFT_REBOOT", "1"}};
  return out;
}

}  // namespace muster
