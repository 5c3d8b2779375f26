// What looks like an identity and is none: UUIDs, serial numbers and network addresses that a maker left at
// its default, so that many machines have the same. The one list of them: drivers, facts, the planner,
// discovery and the check for the controller's own machine go by it, and each value has its source there.
//
// Thread: pure functions.
#pragma once

#include <string>

namespace muster {

// Of a UUID in this spelling; base/machine_uuid.h looks at both byte orders. A text that is no UUID at all is
// one only where it is listed ("Not Settable").
bool is_placeholder_uuid(const std::string& uuid);

// Whether a serial number (of a machine, a board, a drive) tells one from another: not empty, not "To be
// filled by O.E.M.", not one character over and over, not counted up, not QEMU's own.
bool names_one_thing(const std::string& serial);

// An address that a station can have ("52:54:00:20:00:01", any case): neither zeros, nor for a group
// (multicast, broadcast), nor anything else than six bytes.
bool is_station_address(const std::string& mac);
// Moreover the port's alone, as far as it tells: given by its maker, not made up by software (the bit for
// locally administered ones; those count only where they are declared), nor one that is known to be on
// many ports.
bool names_one_port(const std::string& mac);

}  // namespace muster
