// FetchedPrograms: the programs of an order on a host with an agent that is a service, from the controller's
// boot HTTP server into /usr/lib/muster, where images have them too.
//
// Owned by the function that carries out one order. What is there with the digest that the order names is
// used as it is; else the file is replaced as a whole, so that one that runs goes on. Nothing is taken for
// its name: size and digest are those of the order, which came over mutual TLS. Thread: the worker's.
#pragma once

#include <memory>

#include "agent/carried_programs.h"
#include "agent/image/blobs.h"
#include "base/os.h"

namespace muster {

// `files` outlives it.
std::unique_ptr<CarriedPrograms> fetched_programs(const Files& files, MakeSource source,
                                                  WriteOptions options = {});

}  // namespace muster
