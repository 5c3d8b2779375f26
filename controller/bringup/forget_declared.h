// Undeclared machines that the spec declares now. Thread: the reactor's.
#pragma once

#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/link/link_hub.h"
#include "controller/ports/store.h"

namespace muster {

// A machine that the spec now declares has a name of its own: its row as an undeclared machine is deleted,
// its certificate revoked, and its waiting request ended.
void forget_declared(CurrentSpec& spec, Store& store, Executor& executor, LinkHub& link);

}  // namespace muster
