// BootFacts (base/facts.h): the root slots of the disk that this system of muster's runs from. `running` is
// empty where it runs from none. The ESP is mounted for reading where it is not mounted. Thread: blocking.
#pragma once

#include "base/facts.h"
#include "base/os.h"

namespace muster {

BootFacts slot_facts(const Files& files);

}  // namespace muster
