// What the root of one node can say and get through its agent's certificate.
#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/utf8.h"
#include "base/wire.h"
#include "controller/link/link_hub.h"
#include "tests/field/case.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

namespace muster::tests {
namespace {

using api::Listener;

constexpr char kPrivateKey[] = "the private key of the cluster";

// A controller, and the certificates of the agents of node01 and node02.
struct Agents : testing::Controller {
  Agents() {
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
    REQUIRE(call(Listener::local, "PUT", "/v1/secrets/key", kPrivateKey).status == 200);
    std::promise<bool> written;
    on_reactor([&] {
      services().store.write(
          {CertificateRow{"01", "node01", "f1", 3}, CertificateRow{"02", "node02", "f2", 3}},
          [&](Status done) { written.set_value(done.ok()); });
    });
    REQUIRE(written.get_future().get());
  }
  HttpResponse post(const std::string& node, const std::string& kind, const Json& data,
                    const std::string& order = "") {
    wire::Event event;
    event.seq = ++seq_;
    event.order = OrderId(order);
    event.kind = kind;
    event.data = data;
    const wire::EventBatch batch = {"boot-1", "i", {event}};
    return call(Listener::tls,
                signed_by(papers(node), "POST", "/agent/v1/events", dump_json(wire::to_json(batch))));
  }
  std::unique_ptr<Sent> poll(const std::string& node) {
    HttpRequest request = signed_by(papers(node), "GET", "/agent/v1/orders?boot=boot-1&mode=installed&have=");
    REQUIRE(parse_target(request).ok());
    auto sent = std::make_unique<Sent>();
    on_reactor([&] {
      api::dispatch(services(), Listener::tls, request, std::make_shared<testing::Caught>(sent->promise),
                    api::caller_of(request, name_of));
    });
    return sent;
  }
  std::vector<Json> log() {
    settle();
    const Json listed = get("/v1/events/list?after=0&limit=1000");
    return {listed["events"].begin(), listed["events"].end()};
  }

 private:
  static pki::CertificateInfo papers(const std::string& node) {
    return {node, Authority::kAgentOrganization, node == "node01" ? "01" : "02"};
  }
  uint64_t seq_ = 0;
};

// The texts of a value that would control a display: C0 but for ends of lines and tabs, DEL, C1, and marks
// that set the direction of text.
bool controls(const Json& value) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    for (std::string_view rest = text; !rest.empty();) {
      const Utf8Character next = read_utf8(rest);
      const uint32_t unicode = next.unicode;
      if (!next.valid || (unicode < 0x20 && unicode != '\n' && unicode != '\t') ||
          (unicode >= 0x7f && unicode < 0xa0) || (unicode >= 0x202a && unicode <= 0x202e) ||
          (unicode >= 0x2066 && unicode <= 0x2069))
        return true;
      rest.remove_prefix(next.bytes);
    }
  }
  return value.is_structured() &&
         std::any_of(value.begin(), value.end(), [](const Json& one) { return controls(one); });
}

}  // namespace

FIELD_CASE("agent-forges-events") {
  Agents agents;
  const std::string mark = "f0f0f0";
  for (const Json& forged : Json::parse(field_input("agent-forges-events", "events.json")))
    (void)agents.post("node01", text_at(forged, "kind"), forged["data"], "99-x/node02/y");
  for (const Json& event : agents.log()) {
    INFO(dump_json(event));
    CHECK(dump_json(event).find(mark) == std::string::npos);
  }
}

FIELD_CASE("agent-forges-events: kinds of its own are in the log, as the node's") {
  Agents agents;
  REQUIRE(agents.post("node01", "log", {{"level", "info"}, {"text", "disk 3 is warm"}}).status == 200);
  const auto log = agents.log();
  const auto found = std::find_if(log.begin(), log.end(), [](const Json& event) {
    return dump_json(event).find("disk 3 is warm") != std::string::npos;
  });
  REQUIRE(found != log.end());
  CHECK((*found)["node"] == "node01");
  CHECK((*found)["kind"] == "log");
}

FIELD_CASE("events-of-another-node") {
  Agents agents;
  agents.start_a_run("node02");
  REQUIRE(agents.post("node02", "hello", {{"mode", "ram"}, {"boot_id", "boot-1"}}).status == 200);
  const auto offered = agents.poll("node02");
  REQUIRE(offered->answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  const auto reply = wire::poll_reply_from_json(parse_json(offered->answer.get().body).value());
  REQUIRE(reply.ok());
  REQUIRE(reply->orders.size() == 1);
  const std::string order = reply->orders[0].id.str();
  const Json finished = {{"ok", false}, {"code", "failed"}, {"message", "broken"}, {"result", nullptr}};
  (void)agents.post("node01", "finished", finished, order);
  agents.settle();
  CHECK(agents.active());
  // It is still node02's.
  const auto again = agents.poll("node02");
  REQUIRE(again->answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK(again->answer.get().body.find(order) != std::string::npos);
}

FIELD_CASE("c1-controls") {
  Agents agents;
  size_t sent = 0, shown = 0;
  for (const Json& text : Json::parse(field_input("c1-controls", "texts.json"))) {
    REQUIRE(agents.post("node01", "log", {{"text", text}}).status == 200);
    ++sent;
  }
  for (const Json& event : agents.log()) {
    INFO(dump_json(event));
    CHECK_FALSE(controls(event));
    shown += event["kind"] == "log" && dump_json(event).find("red") != std::string::npos;
  }
  CHECK(shown == sent);
}

FIELD_CASE("revoked-poll-gets-order") {
  Agents agents;
  const auto poll = agents.poll("node01");
  REQUIRE(poll->answer.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  REQUIRE(agents.call(Listener::local, "POST", "/v1/certificates/01/revoke").status == 200);
  wire::WorkOrder order;
  order.id = OrderId("1-a/node01/steps#1");
  order.kind = wire::OrderKind::steps;
  order.params = {{"key", "secret:key"}};
  agents.on_reactor([&] { agents.services().link.offer("node01", order); });
  REQUIRE(poll->answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  const HttpResponse answer = poll->answer.get();
  CHECK(answer.body.find(kPrivateKey) == std::string::npos);
  CHECK(answer.body.find(order.id.str()) == std::string::npos);
}

}  // namespace muster::tests
