// How `muster lab ssh` logs in to a machine.
#include <cstdlib>

#include "lab/lab.h"
#include "lab/lab_dir.h"
#include "tests/catch.h"

using namespace muster::lab;

TEST_CASE("lab ssh: the environment's options stand before the machine, and the command behind it") {
  using Words = std::vector<std::string>;
  const LabDir dir("/lab");
  const auto tail = [](const Words& argv, size_t words) { return Words(argv.end() - words, argv.end()); };
  unsetenv("MUSTER_LAB_SSH_OPTIONS");
  const Words plain = ssh_argv(dir, "ops@10.0.0.1", {"uptime", "-p"});
  CHECK(tail(plain, 3) == Words{"ops@10.0.0.1", "uptime", "-p"});
  setenv("MUSTER_LAB_SSH_OPTIONS", "  -o ControlMaster=auto  -o ControlPath=/run/%h ", 1);
  const Words more = ssh_argv(dir, "ops@10.0.0.1", {"uptime", "-p"});
  unsetenv("MUSTER_LAB_SSH_OPTIONS");
  CHECK(more.size() == plain.size() + 4);
  CHECK(tail(more, 7) ==
        Words{"-o", "ControlMaster=auto", "-o", "ControlPath=/run/%h", "ops@10.0.0.1", "uptime", "-p"});
}
