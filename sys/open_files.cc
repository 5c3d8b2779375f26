#include "sys/open_files.h"

#include <sys/resource.h>

#include <atomic>

#include "sys/os.h"

namespace muster {
namespace {

// The soft limit before it was raised; 0: it was not.
std::atomic<uint64_t> began_with{0};

}  // namespace

uint64_t raise_open_files() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  if (before >= limit.rlim_max) return before;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return before;
  uint64_t none = 0;
  began_with.compare_exchange_strong(none, before);
  return limit.rlim_cur;
}

void restore_open_files() {
  const uint64_t before = began_with.load(std::memory_order_relaxed);
  rlimit limit = {};
  if (before == 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = before < limit.rlim_max ? before : limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t open_files_now() { return Files("/").list("/proc/self/fd").size(); }

}  // namespace muster
