#include "sys/thread_umask.h"

#include <sys/stat.h>

#include <string>
#include <thread>

#include "sys/os.h"
#include "tests/catch.h"

using namespace muster;

TEST_CASE("a thread has a umask of its own, with its children and threads; the process keeps its") {
  const mode_t before = ::umask(0077);
  std::string child, own_thread, afterwards;
  const auto shown = [] {
    const auto out = make_process()->run({.argv = {"sh", "-c", "umask"}});
    return out.ok() ? out->out : out.error().message;
  };
  std::thread([&] {
    {
      const ThreadUmask usual(0022);
      child = shown();
      std::thread([&] { own_thread = shown(); }).join();
    }
    afterwards = shown();
  }).join();
  const mode_t of_process = ::umask(before);
  CHECK(child == "0022\n");
  CHECK(own_thread == "0022\n");
  CHECK(afterwards == "0077\n");
  CHECK(of_process == 0077);
}
