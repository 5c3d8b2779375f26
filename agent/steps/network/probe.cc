// probe: tests from this node whether a TCP port of another machine is open. Changes nothing.
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/tcp.h"

namespace muster::steps {
namespace {

struct WantedProbe {
  std::string host;
  int64_t port = 0;
  std::string expect = "open";
  DurationMs attempt_ms = 3000;
  int64_t deadline_seconds = 10;
};
MUSTER_PARAMETERS(WantedProbe, required(host, "numeric address"), required(port, "TCP port"),
                  optional(expect, "open | refused | filtered | closed"),
                  optional(attempt_ms, "timeout of one attempt in ms"),
                  optional(deadline_seconds, "how long to retry"))

Status complete_probe(const StepContext&, WantedProbe& want) {
  if (want.expect != "open" && want.expect != "closed" && want.expect != "refused" &&
      want.expect != "filtered")
    return fail(Code::invalid,
                "probe: 'expect' must be open, closed, refused or filtered, not '" + want.expect + "'");
  if (want.port < 1 || want.port > 65535)
    return fail(Code::invalid, "probe: 'port' must be between 1 and 65535");
  return Ok{};
}

bool fits(TcpState state, const std::string& expected) {
  if (expected == "closed") return state == TcpState::refused || state == TcpState::filtered;
  return to_string(state) == expected;
}

// Retries until the deadline while the state differs from the expected one: the other node may not be ready
// yet.
Result<CheckResult> check_probe(StepContext& context, const WantedProbe& want) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(want.deadline_seconds);
  for (;;) {
    TRY(const TcpAnswer answer, tcp_probe(want.host, static_cast<uint16_t>(want.port), want.attempt_ms));
    if (fits(answer.state, want.expect)) return holds();
    if (is_cancelled(context)) return fail(Code::cancelled, "cancelled");
    if (std::chrono::steady_clock::now() >= until)
      return differs(fmt::format("{} port {} is {} from this node, not {}", want.host, want.port,
                                 to_string(answer.state), want.expect));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

}  // namespace

StepModule probe_module() {
  return step_module<WantedProbe>({
      .name = "probe",
      .help =
          "Tests from this node whether a TCP port of another machine is open, refused, filtered, or closed "
          "(refused or filtered). Changes nothing.",
      .check = check_probe,
      .complete = complete_probe,
  });
}

}  // namespace muster::steps
