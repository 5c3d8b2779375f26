// In place of cli/adopt_verb.cc and cli/adopt_host.cc in a muster that has no libssh (cmake/portable.cmake).
#include "cli/adopt_verb.h"

namespace muster::cli {

void adopt(Context& context, const Adopting&) {
  complain(context, fail(Code::unavailable,
                         "this muster was built without libssh, which `--adopt` needs: install the package "
                         "muster, and run the command where it is"));
}

}  // namespace muster::cli
