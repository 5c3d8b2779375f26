// The muster row of bench/push.sh: one order, many hosts at once, over SSH and with nothing on the hosts
// before. muster-bench-push AGENT ORDER PRIVATE-KEY HOST-KEY ADDRESSES
// One thread per host opens a connection, hands the agent and the order over and reads what it did
// (controller/ssh/ssh.h, run_agent_unseen). A line per host; exit 1 when any host's steps did not all hold at
// the end.
#include <fmt/format.h>

#include <mutex>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "controller/ssh/ssh.h"
#include "sys/os.h"

namespace muster {
namespace {

constexpr DurationMs kConnect = 30 * kSecond, kApply = 10 * kMinute;

struct Work {
  std::string agent, order;
  SshTarget target;  // but the address
};

// The agent's last line: {"counts": {"already": N, "applied": N}, ...}.
Result<std::string> apply_on(const Work& work, const std::string& address) {
  SshTarget target = work.target;
  target.address = address;
  TRY(const auto session, ssh_connect(target, kConnect));
  TRY(std::string said, run_agent_unseen(*session, work.agent, "apply", work.order, kApply));
  while (!said.empty() && said.back() == '\n') said.pop_back();
  TRY(const Json last, parse_json(said.substr(said.rfind('\n') + 1)));
  const Json counts = last.value("counts", Json::object());
  const int already = counts.value("already", 0), applied = counts.value("applied", 0);
  const std::string line =
      fmt::format("{} already={} applied={} ms={}", address, already, applied, last.value("ms", 0));
  if (already + applied != 30) return fail(Code::failed, line + ": not all steps hold");
  return line;
}

Result<Work> work_from(char** argv) {
  const Files files;
  Work work;
  TRY(work.agent, files.read(argv[1]));
  TRY(work.order, files.read(argv[2]));
  TRY(work.target.private_key, files.read(argv[3]));
  work.target.host_key = argv[4];
  return work;
}

int push(const Work& work, const std::string& addresses) {
  std::mutex one_line;
  int failed = 0;
  std::vector<std::thread> threads;
  std::istringstream lines(addresses);
  for (std::string address; std::getline(lines, address);)
    threads.emplace_back([&, address] {
      const auto line = apply_on(work, address);
      const std::lock_guard lock(one_line);
      fmt::print("{}\n", line.ok() ? *line : address + ": " + line.error().message);
      failed += line.ok() ? 0 : 1;
    });
  for (auto& thread : threads) thread.join();
  return failed == 0 && !threads.empty() ? 0 : 1;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "usage: muster-bench-push AGENT ORDER PRIVATE-KEY HOST-KEY ADDRESSES\n");
    return 2;
  }
  const auto work = muster::work_from(argv);
  const auto addresses = muster::Files().read(argv[5]);
  if (work.ok() && addresses.ok()) return muster::push(*work, *addresses);
  fmt::print(stderr, "muster-bench-push: {}\n", work.ok() ? addresses.error().message : work.error().message);
  return 1;
}
