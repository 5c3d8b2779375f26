// Identifies the machine behind a host name, for hosts that muster did not install, by its product UUID,
// which only root can read, and by its parts. So the history of a name continues only for the same machine,
// and two names for one machine are detected.
//
// Values that many machines have in common are ignored (base/placeholders.h): UUIDs and serial numbers left
// at the manufacturer's default, addresses of USB ports and of virtual functions. A machine-id belongs to an
// installation and is copied with an image, so it is used only if nothing else is known. Thread safety:
// stateless functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "base/result.h"

namespace muster {

struct MachineParts {
  std::string uuid;              // SMBIOS product UUID, lower case; empty: unknown, or a placeholder
  std::set<std::string> gpus;    // UUIDs
  std::set<std::string> drives;  // serial numbers of NVMe drives
  std::set<std::string> ports;   // MACs of physical ports, lower case
  std::string machine_id;        // /etc/machine-id, 32 hexadecimal digits; empty: unknown
};

MachineParts machine_parts(const HardwareFacts& facts, const std::string& machine_id);

// Returns a short text that is equal for equal parts: "uuid:4c4c4544-...", else "parts:sha256:..." of GPUs,
// drives, ports and machine-id; "" if nothing is known. A replaced part changes the second form:
// compare_machines() decides whether it is a different machine.
std::string machine_identity(const MachineParts& parts);

enum class SameMachine {
  yes,
  no,
  copied,   // equal machine-ids and nothing else known of both: one machine, or two with copies of one image
  unknown,  // nothing is known of both machines that could decide
};
struct MachineChange {
  SameMachine same = SameMachine::unknown;
  // What differs, as text: "GPU GPU-1f... is missing", "the product UUID has changed".
  std::vector<std::string> changed;
};
// Compares two machines. UUIDs decide if both are known, unless two or more parts are known of both and none
// is shared: some manufacturers give many boards the same UUID. Otherwise they are the same machine if they
// share at least half the parts of the machine with more (of the kinds known of both), and not only drives.
MachineChange compare_machines(const MachineParts& before, const MachineParts& now);

struct NamedMachine {
  std::string name;
  MachineParts parts;
  std::string boot_id = {};  // of its running kernel; empty: unknown
};
struct OneMachine {
  std::vector<std::string> names;  // names of one machine, sorted; at least two
  bool sure = true;                // false: SameMachine::copied
};
// Returns the groups of names that lead to the same machine, sorted by first name, among machines that run at
// the same time. Boot ids decide if both are known: one kernel has one, whatever else two machines have in
// common (boards of a batch with one UUID, copies of an image). Otherwise compare_machines(). O(n log n).
std::vector<OneMachine> names_of_one_machine(const std::vector<NamedMachine>& machines);

Json to_json(const MachineParts& parts);
// Code::invalid if it is malformed; unknown keys are ignored.
Result<MachineParts> machine_parts_from_json(const Json& json);

}  // namespace muster
