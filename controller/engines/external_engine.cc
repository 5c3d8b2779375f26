// Storage that the site serves: mounted, never created; write tests only if the spec declares it writable.
#include "controller/engines/engine.h"

namespace muster {

const StorageEngine kExternal = {.name = "external",
                                 .playbook = "storage-external",
                                 .reach = Reach::of_a_site,
                                 .without = {"disks", "server", "level", "fs", "copies"}};

}  // namespace muster
