// NFS: one server with an array of its drives; the other nodes are clients. The data is lost with the server.
#include "base/disk_source.h"
#include "controller/engines/engine.h"

namespace muster {
namespace {

RightMount nfs_mount(const MountedSection& of) {
  if (of.served_here) return {of.section.fs, kDiskSource};
  return {"nfs4", of.leader_address + ":" + of.section.mount};
}

}  // namespace

const StorageEngine kNfs = {.name = "nfs",
                            .playbook = "storage-nfs",
                            .reach = Reach::shared,
                            .without = {"copies"},
                            .one_server = true,
                            .leader_word = "server",
                            .serving_module = "nfs_server",
                            .mount = nfs_mount};

}  // namespace muster
