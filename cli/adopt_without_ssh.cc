// In place of cli/adopt_verb.cc and cli/adopt_host.cc in a muster that has no libssh (cmake/portable.cmake).
#include "cli/adopt_verb.h"

namespace muster::cli {

void adopt(Context& context, const Adopting&) {
  complain(context, fail(Code::unavailable,
                         "`--adopt` needs libssh, which this build of muster does not include: run the "
                         "command on a host that has the package `muster` installed"));
}

}  // namespace muster::cli
