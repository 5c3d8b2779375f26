#include "sys/core_files.h"

#include <sys/prctl.h>
#include <sys/resource.h>

namespace muster {

void forbid_core_files() {
  const rlimit none = {0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
  (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

}  // namespace muster
