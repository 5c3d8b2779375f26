// A server that is left in the background for an agent ends when the agent does; and the program that reads
// NVIDIA's driver may lie anywhere. Both with the real programs of this build.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/json.h"
#include "kernels/common/program.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

constexpr int kPatienceMs = 60'000;

// A process that does nothing, as long as it is let.
class Waiting {
 public:
  Waiting() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  ~Waiting() { end(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

// Any process, until it has ended.
class Watched {
 public:
  explicit Watched(pid_t pid) : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  ~Watched() {
    if (fd_ >= 0) ::close(fd_);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  bool there() const { return fd_ >= 0; }
  bool ended_within(int ms) const {
    pollfd watched{fd_, POLLIN, 0};
    return ::poll(&watched, 1, ms) == 1;
  }

 private:
  int fd_;
};

Json run_accept(std::vector<std::string> words, std::map<std::string, std::string> env = {}) {
  words.insert(words.begin(), build_dir() + "/muster-accept");
  const auto output = make_process()->run({.argv = words, .env = std::move(env)});
  REQUIRE(output.ok());
  const auto json = parse_json(output->out);
  CAPTURE(output->out, output->err);
  REQUIRE(json.ok());
  return *json;
}

}  // namespace

TEST_CASE("a server in the background ends with the process that it is for", "[carried]") {
  Waiting agent;
  const Json served = run_accept({"link-serve", "--bind", "127.0.0.1", "--port", "0", "--seconds", "300",
                                  "--detach", "--with", std::to_string(agent.pid())});
  REQUIRE(served["outcome"] == "measured");
  const Watched server(served["detail"]["pid"].get<pid_t>());
  REQUIRE(server.there());
  CHECK_FALSE(server.ended_within(0));
  agent.end();
  CHECK(server.ended_within(kPatienceMs));
}

TEST_CASE("a server whose process is gone already does not stay", "[carried]") {
  Waiting agent;
  const std::string gone = std::to_string(agent.pid());
  agent.end();
  CHECK(kernels::end_with(std::stoi(gone)).error().code == Code::not_found);
  CHECK(kernels::end_with(0).error().code == Code::not_found);
  const Json served = run_accept(
      {"link-serve", "--bind", "127.0.0.1", "--port", "0", "--seconds", "300", "--detach", "--with", gone});
  const Watched server(served["detail"]["pid"].get<pid_t>());
  CHECK((!server.there() || server.ended_within(kPatienceMs)));
}

TEST_CASE("counters are read by the driver's program that is named", "[carried][nvml]") {
  TempDir dir;
  dir.write("driver",
            "#!/bin/sh\necho '{\"driver\": \"550\", \"counts\": {\"gpu_present\": {\"GPU 7\": 1}}, "
            "\"models\": {}, \"notes\": []}'\n");
  std::filesystem::permissions(dir.path("driver"), std::filesystem::perms::owner_all);
  const Json saved = run_accept({"counters", "--save", dir.path("c.json"), "--nvml", dir.path("driver")});
  CAPTURE(saved.dump());
  CHECK(saved["outcome"] == "measured");
  CHECK(dir.read("c.json").find("GPU 7") != std::string::npos);
  const Json without =
      run_accept({"counters", "--gpus", "--since", dir.path("c.json"), "--nvml", dir.path("none")});
  CHECK(without["outcome"] == "unavailable");
  CHECK(without["detail"]["missing"] == "muster-accept-nvml");
}
