// Which machine a host is, for hosts that muster did not install: its product UUID, which only root can read,
// and the parts that identify a machine. So the history of a name continues with the same machine only, and
// two names of one machine are found.
//
// What many machines have in common does not count (base/placeholders.h): UUIDs and serial numbers that a
// maker left at its default, addresses of ports on USB or of virtual functions. A machine-id belongs to an
// installation and is copied with an image: it counts only if nothing else is known. Thread: values and pure
// functions.
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

// A short text that is equal for equal parts: "uuid:4c4c4544-...", else "parts:sha256:..." over GPUs, drives,
// ports and machine-id; "" where nothing is known. A replaced part changes the second form:
// compare_machines() decides whether it is a different machine.
std::string machine_identity(const MachineParts& parts);

enum class SameMachine {
  yes,
  no,
  copied,   // only the machine-id is known of both, and it is equal: one machine, or copies of one image
  unknown,  // nothing known of both decides
};
struct MachineChange {
  SameMachine same = SameMachine::unknown;
  // What differs, for people: "GPU GPU-1f... is gone", "drive S64H... is new", "the product UUID has
  // changed".
  std::vector<std::string> changed;
};
// UUIDs decide where both are known, unless two parts or more are known of both and none is shared: some
// makers give one UUID to many boards. Otherwise two machines are the same if they share at least half of the
// larger one's parts, of the kinds known of both, and not drives alone.
MachineChange compare_machines(const MachineParts& before, const MachineParts& now);

struct NamedMachine {
  std::string name;
  MachineParts parts;
};
struct OneMachine {
  std::vector<std::string> names;  // of one machine, by name; two at least
  bool sure = true;                // false: SameMachine::copied
};
// Names that lead to one machine; by the first name. Takes n log n for n names.
std::vector<OneMachine> names_of_one_machine(const std::vector<NamedMachine>& machines);

// For the history, in which the parts are stored.
Json to_json(const MachineParts& parts);
// Code::invalid for a different shape; unknown keys are ignored.
Result<MachineParts> machine_parts_from_json(const Json& json);

}  // namespace muster
