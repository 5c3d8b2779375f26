// FetchedPrograms: the programs of an order on a host with an agent that is a service, from the controller's
// boot HTTP server into /usr/lib/muster, where images have them too.
//
// Owned by the function that carries out one order. An existing file with the order's digest is used as it
// is; otherwise the file is replaced as a whole, so that a running program continues. A name alone is not
// trusted: size and digest come from the order, which was received over mutual TLS. Thread: the worker's.
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
