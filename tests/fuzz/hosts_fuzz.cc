// The wire of `muster accept --hosts`: the lines of a host's agent and the standard error of the command
// that reaches it, as this machine reads them; and the command's bytes, as the agent reads them.
#include <memory>
#include <utility>

#include "agent/measuring/pipe_link.h"
#include "base/printable.h"
#include "base/split.h"
#include "controller/hosts/host_message.h"
#include "controller/hosts/lost_reason.h"
#include "controller/hosts/reached.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fuzz/targets.h"

namespace muster::fuzz {
namespace {

constexpr size_t kDigest = 64;

void take_looked(const HostLooked& looked) {
  auto host = reached_host("node01", looked);
  if (!host.ok()) return demand(!host.error().message.empty(), "an inventory rejected without a reason");
  const std::vector<ReachedHost> hosts = {std::move(*host)};
  (void)busy_words(hosts[0].look);
  (void)look_notes(hosts);
  (void)drift_of(hosts);
  demand(accept_hosts(hosts).size() == 1, "a host that is lost");
}

void take_line(const std::string& line) {
  if (const auto hello = host_hello_of(line); hello.ok())
    demand(hello->version == 1 && printable(hello->why_user) == hello->why_user, "a hello that controls");
  const Error refusal = refusal_of(line);
  demand(printable(refusal.message) == refusal.message, "a refusal that controls");
  const auto message = host_message_of(line);
  if (!message.ok()) return demand(message.error().code == Code::invalid, "an invalid line of another code");
  switch (message->kind) {
    case HostMessage::Kind::looked:
      return take_looked(message->looked);
    case HostMessage::Kind::program:
      return demand(message->number > 0 && message->program.size() == kDigest, "a request for no program");
    case HostMessage::Kind::poll:
    case HostMessage::Kind::post:
      return demand(message->number > 0, "a request without a number");
    case HostMessage::Kind::alive:
      return;
  }
}

void take_errors(std::string_view bytes) {
  ErrorText err;
  in_steps(bytes, [&](std::string_view piece) { err.take(piece); });
  for (const int status : {0, 1, 126, 127, 255})
    for (const bool ran : {false, true}) {
      const Error why = lost_reason({status, err, std::string(bytes.substr(0, 4096)), ran, ran});
      demand(!why.message.empty() && printable(why.message) == why.message,
             "a reason that is empty or controls");
    }
}

void to_agent(std::string_view bytes) {
  ManualReactor reactor;
  int ends = 0, answers = 0;
  PipeLink link(reactor, "boot-1", {[](const std::string&) {}, [&](const Error&) { ++ends; }});
  link.poll({"1-a/x#1"}, [&](const Result<wire::PollReply>& reply) {
    ++answers;
    if (!reply.ok()) return;
    for (const wire::WorkOrder& order : reply->orders)
      demand(order.kind == wire::OrderKind::inventory || order.kind == wire::OrderKind::check ||
                 order.kind == wire::OrderKind::unknown,
             "an order that does more than to measure");
  });
  link.post({"boot-1", "x", {}}, [&](const Result<uint64_t>&) { ++answers; });
  in_steps(bytes, [&](std::string_view piece) { link.receive(piece); });
  link.closed();
  reactor.advance(5 * kMinute);
  demand(ends == 1, "a link that does not end once");
  demand(answers == 2, "a call that is not answered once");
}

}  // namespace

void hosts_fuzz(std::string_view bytes) {
  for (const auto& line : split_lines(std::string(bytes))) take_line(line);
  take_errors(bytes);
  to_agent(bytes);
}

}  // namespace muster::fuzz
