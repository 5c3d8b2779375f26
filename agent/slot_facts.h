// BootFacts (base/facts.h): the root slots of the disk that this system runs from. `running` is empty if it
// does not run from one of muster's slots. The ESP is mounted for reading if necessary. Thread: blocking.
#pragma once

#include "base/facts.h"
#include "base/os.h"

namespace muster {

BootFacts slot_facts(const Files& files);

}  // namespace muster
