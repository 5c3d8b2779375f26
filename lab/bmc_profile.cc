#include "lab/bmc_profile.h"

namespace muster::lab {
namespace {

BmcProfile generic() {
  BmcProfile p;
  p.name = "generic";
  p.manufacturer = "QEMU";
  p.product = "muster lab BMC (SIMULATED)";
  p.system_id = "1";
  p.manager_id = "1";
  p.chassis_id = "1";
  p.reset_types = {"On", "ForceOff", "GracefulShutdown", "ForceRestart", "ForceOn"};
  p.boot_targets = {"None", "Pxe", "Hdd", "Cd", "UefiHttp"};
  p.etag = EtagRule::optional;
  p.power_lag = 1 * kSecond;
  return p;
}

BmcProfile dgx_h100() {
  BmcProfile p;
  p.name = "dgx-h100";
  p.vendor = "AMI";
  p.manufacturer = "NVIDIA";
  p.product = "AMI Redfish Server";
  p.system_id = "DGX";
  p.manager_id = "BMC";
  p.chassis_id = "DGX";
  p.second_system = "HGX_Baseboard_0";
  p.second_away_while_off = "Ami.1.0.HMCCommuicationFailed";  // spelt so
  p.reset_types = {"ForceOff", "ForceRestart", "GracefulShutdown", "On"};
  p.action_info_only = true;
  p.boot_targets = {"None",       "Pxe",       "Floppy",    "Cd",          "Usb",
                    "Hdd",        "BiosSetup", "Utilities", "Diags",       "UefiShell",
                    "UefiTarget", "SDCard",    "UefiHttp",  "RemoteDrive", "UefiBootNext"};
  p.settings_id = "SD";
  p.full_boot_request = true;
  p.etag = EtagRule::required;
  p.transitional_states = true;
  p.power_lag = 3 * kSecond;
  p.session_idle = 30 * kSecond;
  p.lock_after = 5;
  return p;
}

// One tray of a GB200 NVL72. That its baseboard is unavailable while the host is off is taken from the
// DGX H100, which has the same HMC.
BmcProfile gb200() {
  BmcProfile p;
  p.name = "gb200";
  p.vendor = "NVIDIA";
  p.manufacturer = "NVIDIA";
  p.product = "GB200 NVL";
  p.system_id = "System_0";
  p.manager_id = "BMC_0";
  p.chassis_id = "Chassis_0";
  p.second_system = "HGX_Baseboard_0";
  p.second_away_while_off = "ServiceTemporarilyUnavailable";
  p.reset_types = {"On",  "ForceOff",  "ForceOn", "ForceRestart", "GracefulRestart", "GracefulShutdown",
                   "Nmi", "PowerCycle"};
  p.action_info_only = true;
  p.boot_targets = {"None", "Pxe", "Hdd", "Cd", "Diags", "BiosSetup", "Usb"};
  p.boot_modes = {};
  p.settings_id = "Settings";
  p.etag = EtagRule::optional;
  p.power_lag = 3 * kSecond;
  return p;
}

BmcProfile hpe() {
  BmcProfile p;
  p.name = "hpe";
  p.vendor = "HPE";
  p.manufacturer = "HPE";
  p.product = "ProLiant DL385 Gen10 Plus v2";
  p.system_id = "1";
  p.manager_id = "1";
  p.chassis_id = "1";
  p.reset_types = {"On",  "ForceOff",        "GracefulShutdown", "ForceRestart",
                   "Nmi", "PushPowerButton", "GracefulRestart"};
  p.boot_targets = {"None",  "Cd",        "Hdd", "Usb",       "SDCard",   "Utilities",
                    "Diags", "BiosSetup", "Pxe", "UefiShell", "UefiHttp", "UefiTarget"};
  p.mode_writable = false;
  p.etag = EtagRule::optional;
  p.power_lag = 2 * kSecond;
  p.post_time = 20 * kSecond;
  return p;
}

BmcProfile supermicro() {
  BmcProfile p;
  p.name = "supermicro";
  p.vendor = "Supermicro";
  p.manufacturer = "Supermicro";
  p.product = "SYS-821GE-TNHR";
  p.system_id = "1";
  p.manager_id = "1";
  p.chassis_id = "1";
  p.reset_types = {"On",           "ForceOff", "GracefulShutdown", "GracefulRestart",
                   "ForceRestart", "Nmi",      "ForceOn",          "PowerCycle"};
  p.action_info_only = true;
  p.boot_targets = {"None", "Pxe",       "Floppy", "Cd",           "Usb",
                    "Hdd",  "BiosSetup", "UsbCd",  "UefiBootNext", "UefiHttp"};
  p.boot_modes = {"Legacy", "UEFI"};
  p.reads_back_uefi_boot_next = true;
  p.etag = EtagRule::optional;
  p.reset_as_task = true;
  p.task_lifetime = 4 * kSecond;
  p.power_lag = 2 * kSecond;
  p.session_limit = 4;
  p.lock_after = 3;
  return p;
}

BmcProfile dell() {
  BmcProfile p;
  p.name = "dell";
  p.vendor = "Dell";
  p.manufacturer = "Dell Inc.";
  p.product = "Integrated Dell Remote Access Controller";
  p.system_id = "System.Embedded.1";
  p.manager_id = "iDRAC.Embedded.1";
  p.chassis_id = "System.Embedded.1";
  p.reset_types = {
      "On",  "ForceOff",  "ForceRestart", "GracefulRestart", "GracefulShutdown", "PushPowerButton",
      "Nmi", "PowerCycle"};
  p.boot_targets = {"None",      "Pxe",       "Floppy",     "Cd",     "Hdd",
                    "BiosSetup", "Utilities", "UefiTarget", "SDCard", "UefiHttp"};
  p.etag = EtagRule::optional;
  p.refuse_same_state = true;
  p.conflict_after_off = 5 * kSecond;
  p.power_lag = 2 * kSecond;
  p.session_limit = 6;
  p.session_idle = 1800 * kSecond;
  return p;
}

}  // namespace

const std::vector<BmcProfile>& bmc_profiles() {
  static const std::vector<BmcProfile> profiles = {generic(), dgx_h100(), supermicro(),
                                                   dell(),    hpe(),      gb200()};
  return profiles;
}

const BmcProfile* find_profile(const std::string& name) {
  for (const auto& profile : bmc_profiles())
    if (profile.name == name) return &profile;
  return nullptr;
}

}  // namespace muster::lab
