// What the site serves: mounted, never made, and tested only where the spec says that it may be written to.
#include "controller/engines/engine.h"

namespace muster {

const StorageEngine kExternal = {.name = "external",
                                 .playbook = "storage-external",
                                 .reach = Reach::of_a_site,
                                 .without = {"disks", "server", "level", "fs", "copies"}};

}  // namespace muster
