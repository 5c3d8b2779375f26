// Collects BootFacts (base/facts.h): the root slots of the disk that this system runs from. `running` is
// empty if that is not one of muster's slots. Mounts the ESP read-only if needed. Thread: blocking.
#pragma once

#include "base/facts.h"
#include "sys/os.h"

namespace muster {

BootFacts slot_facts(const Files& files);

}  // namespace muster
