// Where a host's agent was reached: through sudo, which does not pass on what sshd has set.
#include "agent/measuring/own_addresses.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

struct Processes {
  TempDir dir;
  void add(int pid, int parent, const std::string& environment) {
    const std::string folder = "proc/" + std::to_string(pid);
    std::filesystem::create_directories(dir.path(folder));
    dir.write(folder + "/stat", std::to_string(pid) + " (sh) S " + std::to_string(parent) + " 1 1 0 -1\n");
    dir.write(folder + "/environ", environment);
  }
  std::string server(int pid) const { return ssh_server_address(Files(dir.path("")), pid); }
};

std::string connection(const std::string& words) {
  return std::string("PATH=/bin\0", 10) + "SSH_CONNECTION=" + words + std::string("\0X=1", 4);
}

}  // namespace

TEST_CASE("own addresses: the server's end of the connection, from the nearest process that has it",
          "[hosts]") {
  Processes all;
  all.add(1, 0, "");
  all.add(10, 1, connection("10.0.0.254 50000 10.0.0.11 22"));
  all.add(11, 10, "SUDO_USER=ops");
  all.add(12, 11, "SUDO_USER=ops");
  all.add(20, 1, connection("broken"));
  all.add(30, 31, "");
  all.add(31, 30, "");  // no circle without end
  CHECK(all.server(10) == "10.0.0.11");
  CHECK(all.server(12) == "10.0.0.11");
  CHECK(all.server(1) == "");
  CHECK(all.server(20) == "");
  CHECK(all.server(30) == "");
  CHECK(all.server(99) == "");
}

TEST_CASE("own addresses: with prefixes, and none of loopback", "[hosts]") {
  for (const std::string& address : own_addresses()) {
    INFO(address);
    CHECK(address.find('/') != std::string::npos);
    CHECK_FALSE(address.starts_with("127."));
  }
}
