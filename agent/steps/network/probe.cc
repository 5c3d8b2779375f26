// probe: tests from this node whether a TCP port of another machine is open. Changes nothing.
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "agent/steps/step_modules.h"
#include "agent/steps/tcp.h"

namespace muster::steps {
namespace {

bool fits(TcpState state, const std::string& expected) {
  if (expected == "closed") return state == TcpState::refused || state == TcpState::filtered;
  return to_string(state) == expected;
}

// Retries until the deadline while the state differs from the expected one: the other node may not be ready
// yet.
Result<CheckResult> check_probe(StepContext& context, const Json& params) {
  const std::string host = text_of(params, "host"), expected = text_of(params, "expect", "open");
  if (expected != "open" && expected != "closed" && expected != "refused" && expected != "filtered")
    return fail(Code::invalid,
                "probe: 'expect' must be open, closed, refused or filtered, not '" + expected + "'");
  const int64_t port = int_of(params, "port", 0);
  if (port < 1 || port > 65535) return fail(Code::invalid, "probe: 'port' must be between 1 and 65535");
  const DurationMs attempt = int_of(params, "attempt_ms", 3000);
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(int_of(params, "deadline_seconds", 10));
  for (;;) {
    TRY(const TcpAnswer answer, tcp_probe(host, static_cast<uint16_t>(port), attempt));
    if (fits(answer.state, expected)) return holds();
    if (is_cancelled(context)) return fail(Code::cancelled, "cancelled");
    if (std::chrono::steady_clock::now() >= until)
      return differs(fmt::format("{} port {} is {} from this node, not {}", host, port,
                                 to_string(answer.state), expected));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

}  // namespace

StepModule probe_module() {
  StepModule m;
  m.name = "probe";
  m.help =
      "Tests from this node whether a TCP port of another machine is open, refused, filtered, or closed "
      "(refused or filtered). Changes nothing.";
  m.parameters = Json::array(
      {parameter("host", "string", true, "numeric address"), parameter("port", "int", true, "TCP port"),
       parameter("expect", "string", false, "open | refused | filtered | closed", "open"),
       parameter("attempt_ms", "int", false, "timeout of one attempt in ms", 3000),
       parameter("deadline_seconds", "int", false, "how long to retry", 10)});
  m.check = check_probe;
  return m;
}

}  // namespace muster::steps
