// Which machine a host is, for hosts that muster did not install: its product UUID, which only root can read,
// and the parts that tell machines apart. So the history of a name goes on with the same machine only, and
// two names of one machine are found.
//
// What many machines have in common does not count (base/placeholders.h): UUIDs and serial numbers that a
// maker left at its default, addresses of ports on USB or of virtual functions. A machine-id is an
// installation's, and an image that was copied carries it along: it counts only where there is nothing else.
// Thread: values and pure functions.
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
// ports and machine-id; "" where nothing is known. A part that was exchanged changes the second form: whether
// it is another machine is for compare_machines() to say.
std::string machine_identity(const MachineParts& parts);

enum class SameMachine {
  yes,
  no,
  copied,   // only the machine-id is known of both, and it is equal: one machine, or copies of one image
  unknown,  // nothing that is known of both tells
};
struct MachineChange {
  SameMachine same = SameMachine::unknown;
  // What differs, for people: "GPU GPU-1f... is gone", "drive S64H... is new", "the product UUID is another".
  std::vector<std::string> changed;
};
// UUIDs decide where both are known, unless two parts or more are known of both and none is shared: boards
// whose makers gave one UUID to many. Else the same machine is the one that shares at least half of the parts
// of the one that has more of them, of the kinds that are known of both, and not drives alone.
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

// For the history that the parts are kept with.
Json to_json(const MachineParts& parts);
// Code::invalid on another shape; an unknown key is let through.
Result<MachineParts> machine_parts_from_json(const Json& json);

}  // namespace muster
