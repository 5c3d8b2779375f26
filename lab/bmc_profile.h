// BmcProfile: the features and peculiarities of one kind of BMC.
//
// Values come from captures of real machines (NVIDIA/libredfish tests/mockups, MIT): DGX H100 (AMI),
// Supermicro SYS-821GE-TNHR, Dell R750 iDRAC9, HPE DL385 Gen10+ v2, GB200 NVL72; behaviour that captures
// cannot show (rejected requests, time windows, tasks) from issue trackers of Redfish clients. Times are
// shortened for the lab if only the order of events matters. Thread safety: constants.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"

namespace muster::lab {

enum class EtagRule {
  none,      // no ETag sent, If-Match ignored
  optional,  // wrong If-Match: 412; without: fine
  required,  // without If-Match: 428
};

struct BmcProfile {
  std::string name;
  std::string vendor;  // service root; empty: absent
  std::string manufacturer, product;
  std::string system_id, manager_id, chassis_id;
  std::string second_system;          // a baseboard without a Reset action; empty: none
  std::string second_away_while_off;  // message id of the 503 for it while the host is off; empty: it is
                                      // always available
  std::vector<std::string> reset_types;
  bool action_info_only = false;  // allowed values only in the @Redfish.ActionInfo resource
  std::vector<std::string> boot_targets;
  std::vector<std::string> boot_enabled = {"Disabled", "Once", "Continuous"};
  std::vector<std::string> boot_modes = {"UEFI"};  // empty: the property does not exist
  bool mode_writable = true;                       // false: readable, 400 on writes
  std::string settings_id;         // boot override lives in Systems/<id>/<settings_id>; empty: in the system
  bool full_boot_request = false;  // Target, Enabled and Mode must be in the same request
  bool reads_back_uefi_boot_next = false;  // shows UefiBootNext after Pxe was accepted
  EtagRule etag = EtagRule::none;
  bool refuse_same_state = false;     // On while on, ForceOff while off: 409
  bool reset_as_task = false;         // 202 with a task monitor that is removed after task_lifetime
  bool transitional_states = false;   // PoweringOn / PoweringOff during a change
  DurationMs power_lag = 0;           // how long the old power state is still reported
  DurationMs conflict_after_off = 0;  // On is refused with 409 this long after a power-off
  DurationMs post_time = 0;           // after power-on the boot override is rejected for this time
  DurationMs task_lifetime = 0;
  bool basic = true;             // false: sessions only
  bool session_location = true;  // false: a login is answered without a Location header
  int lock_after = 0;            // consecutive failed logins that lock the account; 0: never
  DurationMs lock_time = 5 * kMinute;
  int session_limit = 8;
  DurationMs session_idle = 300 * kSecond;
};

const std::vector<BmcProfile>& bmc_profiles();
const BmcProfile* find_profile(const std::string& name);  // nullptr if there is none

}  // namespace muster::lab
