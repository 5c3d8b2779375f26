// Power: the port to a node's BMC (or its substitute). Drivers: controller/power/<name>.cc, listed in
// controller/all_drivers.cc. They implement only the protocol; controller/power/wrap.h adds retries, limits
// and logs.
// Every call blocks, has a deadline, and runs in a worker thread. Orders are idempotent: an order for the
// present state is Ok. Codes: `unavailable` nothing was done, retry is safe (503, connection refused);
// `timeout` outcome unknown, read state() first; `denied` wrong password, or certificate differs from the
// pinned one; `invalid` the BMC cannot do this. A single rejection of the password does not mean that it is
// wrong (controller/power/logins.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/machine_uuid.h"
#include "base/names.h"
#include "base/result.h"
#include "base/time.h"

namespace muster {

class Logins;   // controller/power/logins.h
struct Waiter;  // controller/power/waiter.h

enum class PowerState { on, off, unknown };  // unknown: in transition or unreadable
std::string_view to_string(PowerState state);

struct PowerTarget {
  NodeName node;
  std::string address;         // "10.20.1.11" or "10.20.1.11:8443"
  std::string user, password;  // resolved secret; never logged
  // Pinned identity of the BMC. redfish: its certificate ("sha256:..."), ipmi: its GUID ("guid:..."),
  // sakura-phy: the server ("server:..."). Empty: pinned on first use (reported through on_pin).
  std::string pin_sha256;
  std::function<void(const std::string& fingerprint)> on_pin = {};
  // Called when the BMC rejected user and password: each further try may lock the account.
  std::function<void()> on_refused = {};
  // Results of other logins with this user and password; null: unknown.
  std::shared_ptr<Logins> logins = {};
  std::shared_ptr<const Waiter> waiter = {};  // null: the monotonic clock
  // SMBIOS UUID bound to this node, empty if never seen: acting on a different machine is refused.
  std::string expected_uuid;
  // If `expected_uuid` is empty: all machines bound to other nodes; acting on one of them is refused.
  std::shared_ptr<const Machines> machines = {};
  int cipher_suite = 0;      // ipmi; 0: 17, or 3 if the BMC does not accept that
  bool as_operator = false;  // ipmi: requests privilege OPERATOR, not ADMINISTRATOR
  std::string program = {};  // command: file name of the program
  std::string api = {};      // sakura-phy: "10.20.1.250:443", a substitute for the provider's API
  // sakura-phy: the controller's folder STATE, for data that must survive a restart; "": not kept.
  std::string state = {};
  // sakura-phy: the other nodes, by the ids, nicknames and pins of their servers. A server belongs to one
  // node: a name that leads to one of these is refused.
  std::map<std::string, std::string> servers_of_others = {};
  // sakura-phy: addresses and names, in lower case, of the machine that muster runs on. No order is sent to a
  // server that the provider lists under one of them.
  std::set<std::string> own_names = {};
  // How long a reading that fails is tried again; none: as long as the call may take.
  std::optional<DurationMs> retries_for = {};
  // A rejected login is not tried again, in no other way either, and a connection comes about within seconds.
  bool one_login = false;
};

class Power {
 public:
  virtual ~Power() = default;
  virtual Result<PowerState> state(DurationMs deadline) = 0;
  // If the BMC responds that it cannot switch on yet, as some do for a minute after a power-off, the call
  // takes at least a minute and a half, which may be longer than `deadline`.
  virtual Status on(DurationMs deadline) = 0;
  virtual Status off(DurationMs deadline, bool graceful) = 0;  // Ok only when a settled Off was read back
  // Makes only the next boot a network boot. Read back before Ok.
  virtual Status boot_once_network(DurationMs deadline) = 0;
  // Ok if this driver supports network boots; changes nothing. Called before a machine is switched off.
  virtual Status can_boot_network(DurationMs) { return Ok{}; }
  // Returns vendor, model, UUID, serial number and capabilities, for `muster power` and logs.
  virtual Result<Json> describe(DurationMs deadline) = 0;
};

// Switches off, sets the boot override, switches on. It uses this order because HPE refuses the override
// during the power-on self test, and a machine in a boot loop never leaves it. If the override fails, the
// machine stays off, and the error states that. `call`: the time limit of each part.
Status boot_from_network(Power& power, DurationMs call);

class Reinstall;  // controller/ports/reinstall.h

// In what else drivers differ: controller/power/describe/.
struct PowerDriver {
  std::string name;
  std::string help;
  std::function<Result<std::unique_ptr<Power>>(PowerTarget)> make;
  // Set for a driver whose provider installs operating systems; else null.
  std::function<Result<std::unique_ptr<Reinstall>>(PowerTarget)> reinstall = {};
};
// Defined in controller/all_drivers.cc.
const std::vector<PowerDriver>& power_drivers();

}  // namespace muster
