// The program of the unit that writes a slot, after the agent that listened to it is gone.
#include "agent/image/slot_child.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <sstream>

#include "tests/catch.h"

using namespace muster;

TEST_CASE("a writer without a reader ends at once", "[in-place]") {
  constexpr int kCameBack = 7;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGPIPE, SIG_IGN);  // as systemd has it for its units
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[1]);
    std::istringstream order("{}");
    std::cin.rdbuf(order.rdbuf());
    (void)write_slot_child();
    ::_exit(kCameBack);
  }
  ::close(ends[1]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
}
