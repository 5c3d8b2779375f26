// Module probe over sockets of this machine: what it takes for an answer of the other one.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/core/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

using namespace muster;

namespace {

// A port of the loopback address, which listens or is merely held, so that nothing else takes it.
class Port {
 public:
  explicit Port(bool listens) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    if (listens) REQUIRE(listen(fd_, 1) == 0);
    number = ntohs(at.sin_port);
  }
  ~Port() { close(fd_); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  int number = 0;

 private:
  int fd_;
};

bool fits(const std::string& host, int port, const char* expected) {
  tests::FakeMachine machine;
  StepContext context = machine.context();
  const auto result = find_step_module("probe")->check(
      context, {{"host", host}, {"port", port}, {"expect", expected}, {"deadline_seconds", 0}});
  REQUIRE(result.ok());
  return result->holds == Holds::yes;
}

}  // namespace

TEST_CASE("probe: what the other machine answers", "[probe]") {
  const Port open(true), shut(false);
  CHECK(fits("127.0.0.1", open.number, "open"));
  CHECK_FALSE(fits("127.0.0.1", open.number, "closed"));
  CHECK(fits("127.0.0.1", shut.number, "refused"));
  CHECK(fits("127.0.0.1", shut.number, "closed"));
  CHECK_FALSE(fits("127.0.0.1", shut.number, "filtered"));
}

TEST_CASE("probe: where nothing can be sent from here nothing is learnt, least of all that a port is closed",
          "[probe]") {
  // The kernel has no way for TCP to a group of machines, whatever its routes are.
  for (const char* expected : {"open", "closed", "refused", "filtered"}) {
    CAPTURE(expected);
    CHECK_FALSE(fits("224.0.0.1", 9, expected));
  }
}

TEST_CASE("ssh_probe: a busy node has a minute for its banner, and the program is not killed before that",
          "[agent]") {
  struct Requested : Process {
    Result<Output> run(const Command& command) override {
      argv = command.argv;
      deadline = command.deadline;
      Output out;
      out.exit_code = 255;
      out.err = "muster-probe@10.20.0.12: Permission denied (publickey).";
      return out;
    }
    std::vector<std::string> argv;
    DurationMs deadline = 0;
  } process;
  tests::FakeMachine machine;
  const StepContext whole = machine.context();
  StepContext requested{whole.files, process, whole.node};
  const auto result =
      find_step_module("ssh_probe")
          ->check(requested, {{"host", "10.20.0.12"}, {"offered", Json::array({"publickey"})}});
  REQUIRE(result.ok());
  CHECK(result->holds == Holds::yes);
  const std::string option = "ConnectTimeout=";
  DurationMs connect = 0;
  for (const auto& word : process.argv)
    if (word.starts_with(option)) connect = std::stoi(word.substr(option.size())) * kSecond;
  CHECK(connect >= kMinute);
  CHECK(process.deadline >= 2 * connect);  // the connection, and the banner after it
}
