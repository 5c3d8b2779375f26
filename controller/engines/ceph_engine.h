// The UUIDs of a section's Ceph cluster. They are derived from names and serial numbers, so that a disk is
// recognised by its content alone, even after all systems were reinstalled. Stateless functions, no I/O.
#pragma once

#include <string>

namespace muster {

// Return the UUIDs of the Ceph cluster, and of the object store (OSD) on one of its disks.
std::string ceph_fsid(const std::string& cluster, const std::string& storage);
std::string ceph_osd_uuid(const std::string& fsid, const std::string& serial);

}  // namespace muster
