// A together::Group over MPI, for the playbooks that test MPI itself: it runs the same loads as the TCP group
// (kernels/together/loads.h).
//
// Uses only MPI's C interface, provided by libmpi.so.40 in Debian 12 and 13. An MPI error ends all ranks, so
// lost() is always empty and within() has no effect. Used only by the thread that called MPI_Init.
#pragma once

#include <memory>

#include "kernels/together/group.h"

namespace muster::mpi {

// Returns the group of all ranks, each named after its host. Collective: every rank must call it.
std::unique_ptr<together::Group> world();

}  // namespace muster::mpi
