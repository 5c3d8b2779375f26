// The identities of a section's Ceph cluster: made from names and serials, so that a disk is recognised by
// its content alone, even when all systems were reinstalled. Pure.
#pragma once

#include <string>

namespace muster {

// UUIDs: of the cluster, and of the object store on one of its disks.
std::string ceph_fsid(const std::string& cluster, const std::string& storage);
std::string ceph_osd_uuid(const std::string& fsid, const std::string& serial);

}  // namespace muster
