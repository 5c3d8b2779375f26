// BeeGFS: a parallel file system without redundancy, striped across an array on each node.
#include "controller/engines/engine.h"

namespace muster {
namespace {

RightMount beegfs_mount(const MountedSection&) { return {"beegfs", "beegfs_nodev"}; }

}  // namespace

const StorageEngine kBeegfs = {
    .name = "beegfs",
    .playbook = "storage-beegfs",
    .reach = Reach::shared,
    .without = {"copies", "server"},
    .leader_word = "master",
    .drains = false,
    .caution = "has no redundancy: if a node or a drive is lost, files of all nodes are lost",
    .mount = beegfs_mount};

}  // namespace muster
