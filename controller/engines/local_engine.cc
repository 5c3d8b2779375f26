// An array or a file system on a node's own drives; no other node sees it.
#include "controller/engines/engine.h"

namespace muster {

const StorageEngine kLocal = {
    .name = "local", .playbook = "storage-local", .reach = Reach::own, .without = {"copies", "server"}};

}  // namespace muster
