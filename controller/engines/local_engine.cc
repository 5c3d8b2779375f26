// Local storage: an array or a file system on a node's own drives, which no other node mounts.
#include "controller/engines/engine.h"

namespace muster {

const StorageEngine kLocal = {
    .name = "local", .playbook = "storage-local", .reach = Reach::own, .without = {"copies", "server"}};

}  // namespace muster
