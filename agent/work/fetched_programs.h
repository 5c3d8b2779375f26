// FetchedPrograms: fetches the programs of an order from the controller's boot HTTP server into
// /usr/lib/muster (where images have them too), on a host whose agent is a service.
//
// Owned by the function that carries out one order. An existing file with the order's digest is used;
// otherwise the file is replaced as a whole, so that a running program continues. Size and digest come from
// the order, which was received over mutual TLS: a name alone is not trusted. Thread: the worker's.
#pragma once

#include <memory>

#include "agent/image/blobs.h"
#include "agent/work/carried_programs.h"
#include "sys/os.h"

namespace muster {

// `files` must outlive the result.
std::unique_ptr<CarriedPrograms> fetched_programs(const Files& files, MakeSource source,
                                                  WriteOptions options = {});

}  // namespace muster
