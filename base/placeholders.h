// Placeholders: UUIDs, serial numbers and network addresses that vendors left at a default, so that many
// machines share them. The only list of these, each value with its source; used by drivers, facts, the
// planner, discovery and the check for the controller host. Thread safety: stateless functions.
#pragma once

#include <string>

namespace muster {

// True for a placeholder UUID in this byte order; base/machine_uuid.h checks both orders. A text that is not
// a UUID is a placeholder only if it is listed ("Not Settable").
bool is_placeholder_uuid(const std::string& uuid);

// True if a serial number (of a machine, board or drive) is unique: not empty, not "To be filled by O.E.M.",
// not one repeated character, not a counting sequence, not one of QEMU's defaults.
bool names_one_thing(const std::string& serial);

// True for an address that a port can have ("52:54:00:20:00:01", any case): six bytes, not all zeros, and not
// a group address (multicast, broadcast).
bool is_station_address(const std::string& mac);
// True if the address is also unique to its port, as far as visible: assigned by the vendor, not locally
// administered (those count only if declared), and not known to exist on many ports.
bool names_one_port(const std::string& mac);

// True for a driver of USB network adapters, whose addresses do not identify the machine
// (host/rails.h); for inventories of older agents.
bool is_usb_driver(const std::string& driver);

}  // namespace muster
