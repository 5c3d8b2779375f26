// Placeholders: UUIDs, serial numbers and network addresses that a vendor left at its default, so that many
// machines have the same. The one list of them, each value with its source: used by drivers, facts, the
// planner, discovery and the check for the controller host.
//
// Thread: pure functions.
#pragma once

#include <string>

namespace muster {

// Of a UUID in this spelling; base/machine_uuid.h checks both byte orders. A text that is not a UUID is a
// placeholder only if it is listed ("Not Settable").
bool is_placeholder_uuid(const std::string& uuid);

// Whether a serial number (of a machine, a board, a drive) is unique: not empty, not "To be filled by
// O.E.M.", not one repeated character, not counted up, not QEMU's own.
bool names_one_thing(const std::string& serial);

// An address that a station can have ("52:54:00:20:00:01", any case): six bytes, not all zeros, and not for a
// group (multicast, broadcast).
bool is_station_address(const std::string& mac);
// And unique to the port, as far as visible: assigned by its vendor, not by software (the bit for locally
// administered ones; those count only if declared), nor one known on many ports.
bool names_one_port(const std::string& mac);

}  // namespace muster
