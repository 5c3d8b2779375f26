// A group over MPI, for the playbooks whose subject it is: the same loads as over TCP
// (kernels/together/loads.h).
//
// MPI's C interface only, which libmpi.so.40 of Debian 12 and 13 has. An error in MPI ends all ranks: lost()
// is always empty, and within() changes nothing. Thread: the one that called MPI_Init.
#pragma once

#include <memory>

#include "kernels/together/group.h"

namespace muster::mpi {

// All ranks, by the names of their hosts. All of them make the call.
std::unique_ptr<together::Group> world();

}  // namespace muster::mpi
