#include "controller/link/link_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/event_kind.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/printable.h"
#include "base/secrets.h"
#include "controller/boot/service/boot_service.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr size_t kStreamsPerNode = 8, kRunsPerNode = 8;
constexpr size_t kLongestDigest = 71;  // "sha256:" and 64 digits; what an agent sends may be longer
constexpr DurationMs kNoteAgain = 60 * kMinute;

int64_t run_in(const OrderId& order) {
  return std::strtoll(order.c_str(), nullptr, 10);  // order ids start with the run's number
}

// Returns the part of an event that is kept in the live log. Progress is shown from memory: writing every
// progress event would make the log mostly noise.
bool kept(const NodeName& node, const wire::Event& event) {
  return event.kind != "progress" && mac_of_unknown(node).empty();
}

EventRow row_of(const NodeName& node, const wire::Event& event, int64_t run, TimeMs now) {
  EventRow row;
  row.time = now;
  row.run = run;
  row.node = node;
  row.kind = event.kind;
  Json data = event.data;
  if (data.is_object() && !event.order.empty()) data["order"] = event.order;
  row.json = dump_json(data);
  return row;
}

}  // namespace

LinkHub::LinkHub(Reactor& reactor, Store& store, ResolveSecrets resolve)
    : reactor_(reactor), store_(store), resolve_(std::move(resolve)) {}

LinkHub::~LinkHub() {
  for (auto& [node, waiter] : waiters_) reactor_.cancel(waiter.timer);
}

void LinkHub::offer(const NodeName& node, wire::WorkOrder order) {
  if (order.kind != wire::OrderKind::inventory && !mac_of_unknown(node).empty())
    return log::error("internal error: an undeclared machine can receive only inventory orders",
                      {{"node", node}, {"order", order.id}});
  const std::string id = order.id;
  auto& runs = runs_[node];
  runs.insert(run_in(order.id));
  if (runs.size() > kRunsPerNode) runs.erase(runs.begin());
  offers_[node][id] = std::move(order);
  const auto waiting = waiters_.find(node);
  if (waiting == waiters_.end() || waiting->second.have.count(id)) return;
  release(node, news(node, waiting->second.have));
}

bool LinkHub::take_off(const NodeName& node, const OrderId& order_id) {
  const auto offered = offers_.find(node);
  if (offered == offers_.end() || !offered->second.erase(order_id)) return false;
  if (offered->second.empty()) offers_.erase(offered);
  return true;
}

void LinkHub::let_go(const NodeName& node, const OrderId& order_id) { (void)take_off(node, order_id); }

void LinkHub::withdraw(const NodeName& node, const OrderId& order_id) {
  if (!take_off(node, order_id)) return;
  if (const auto waiting = waiters_.find(node);
      waiting != waiters_.end() && waiting->second.have.count(order_id))
    release(node, {{}, {order_id}, false});
}

void LinkHub::poll(const NodeName& node, std::set<std::string> have,
                   std::function<void(wire::PollReply)> answer, Presence present) {
  present.boot_id = printable(present.boot_id, '?');
  present.image_digest = Digest(printable(present.image_digest.str(), '?'));
  if (sink_.contact) sink_.contact(node, present);
  if (mac_of_unknown(node).empty()) trusts_[node] = present.trusts.substr(0, kLongestDigest);
  release(node, {});
  wire::PollReply reply = news(node, have);
  if (!reply.orders.empty() || !reply.withdrawn.empty()) return answer(std::move(reply));
  Waiter waiter{std::move(have), std::move(answer), 0};
  waiter.timer = reactor_.after(kLongPoll, [this, node] { release(node, {}); });
  waiters_[node] = std::move(waiter);
}

wire::PollReply LinkHub::news(const NodeName& node, const std::set<std::string>& have) {
  wire::PollReply reply;
  const auto offered = offers_.find(node);
  for (const auto& id : have)
    if (!(offered != offers_.end() && offered->second.count(id)) &&
        !live_checks_.expects(node, OrderId(id)) && !(sink_.expected && sink_.expected(node, OrderId(id))))
      reply.withdrawn.push_back(id);
  if (offered == offers_.end()) return reply;
  for (const auto& [id, order] : offered->second) {
    if (have.count(id)) continue;
    auto sent = with_secrets(order);
    if (sent.ok())
      reply.orders.push_back(std::move(*sent));
    else
      refuse(node, order, sent.error());
  }
  return reply;
}

Result<wire::WorkOrder> LinkHub::with_secrets(const wire::WorkOrder& order) const {
  wire::WorkOrder sent = order;
  std::map<std::string, std::string> secrets;
  for (Json* part : {&sent.params, &sent.preconditions}) {
    if (part->is_null()) continue;
    TRY(Json whole, resolve_(*part));
    secrets.merge(secrets_of(*part, whole));
    *part = std::move(whole);
  }
  for (auto& [name, value] : secrets) {
    if (value.size() < kShortestSecret)
      return fail(Code::invalid,
                  fmt::format("secret '{}' is shorter than {} characters and cannot be kept out of results: "
                              "run `muster secret set {}` with a longer value",
                              name, kShortestSecret, name));
    sent.secrets.push_back(std::move(value));
  }
  return sent;
}

// An order whose secrets are missing can never be carried out: the executor gets this as its result.
void LinkHub::refuse(const NodeName& node, const wire::WorkOrder& order, const Error& error) {
  wire::Event finished;
  finished.order = order.id;
  finished.kind = "finished";
  finished.time = reactor_.now();
  finished.data = {
      {"ok", false}, {"code", to_string(error.code)}, {"message", error.message}, {"result", nullptr}};
  reactor_.post([this, node, finished] { deliver(node, finished); });
}

void LinkHub::release(const NodeName& node, wire::PollReply reply) {
  const auto found = waiters_.find(node);
  if (found == waiters_.end()) return;
  const Waiter waiter = std::move(found->second);
  waiters_.erase(found);
  reactor_.cancel(waiter.timer);
  waiter.answer(std::move(reply));
}

LinkHub::Stream& LinkHub::stream_of(const NodeName& node, const std::string& boot_id,
                                    const std::string& incarnation) {
  auto& streams = streams_[node];
  for (auto& s : streams)
    if (s.boot_id == boot_id && s.incarnation == incarnation) return s;
  if (streams.size() >= kStreamsPerNode) streams.erase(streams.begin());
  streams.push_back({boot_id, incarnation, 0, 0});
  return streams.back();
}

// The number up to which its events were taken.
uint64_t LinkHub::taken_of(const NodeName& node, const wire::EventBatch& batch) const {
  const auto found = streams_.find(node);
  if (found == streams_.end()) return 0;
  for (const Stream& s : found->second)
    if (s.boot_id == batch.boot_id && s.incarnation == batch.incarnation) return s.taken;
  return 0;
}

void LinkHub::begin_anew(const NodeName& node) {
  hang_up(node);
  door_.begin_anew(node);
  held_back_.release(node);
}

void LinkHub::take(const NodeName& node, wire::EventBatch batch, std::function<void(Result<uint64_t>)> answer,
                   size_t received) {
  EventDoor::clean_names(batch);
  const uint64_t before = taken_of(node, batch);
  const auto admitted = door_.admit(node, batch, before, reactor_.steady());
  if (sink_.contact) sink_.contact(node, {batch.boot_id});
  if (admitted.dropped > 0) note_refused(node, admitted.dropped, admitted.dropped_why);
  if (admitted.left > 0) note_refused(node, admitted.left, admitted.left_why);
  if (received > admitted.stored) held_back_.note_wasted(node, received - admitted.stored);
  if (admitted.left > 0 && admitted.up_to == before && !admitted.repeats)
    return answer(fail(Code::unavailable, admitted.left_why));
  Stream& stream = stream_of(node, batch.boot_id, batch.incarnation);
  const bool settled = stream.durable == stream.taken;
  // Rows whose write failed are written together with the next ones; until then the agent sends the event
  // again, but it is not forwarded twice.
  std::vector<Write> rows = std::exchange(stream.unwritten, {});
  for (const auto& event : batch.events) {
    stream.taken = event.seq;
    const int64_t run = run_of(node, event.order);  // forward() may end the order
    forward(node, batch, event);
    if (kept(node, event)) rows.push_back(row_of(node, event, run, reactor_.now()));
  }
  stream.taken = std::max(stream.taken, admitted.up_to);
  if (rows.empty()) {
    if (settled) stream.durable = stream.taken;
    return answer(stream.durable);
  }
  // Writes become durable in order: once this one is, so is what the executor wrote in forward().
  store_.write(rows, [this, node, boot = batch.boot_id, incarnation = batch.incarnation, rows,
                      up_to = stream.taken, answer = std::move(answer)](Status written) {
    Stream& s = stream_of(node, boot, incarnation);
    if (!written.ok()) {
      s.unwritten.insert(s.unwritten.end(), rows.begin(), rows.end());
      return answer(std::move(written).error());
    }
    s.durable = std::max(s.durable, up_to);
    s.taken = std::max(s.taken, up_to);
    answer(up_to);
  });
}

// Returns the run of an order that the node has or had, else 0: an agent can name any order.
int64_t LinkHub::run_of(const NodeName& node, const OrderId& order) const {
  const int64_t run = run_in(order);
  const auto had = runs_.find(node);
  if (had != runs_.end() && had->second.count(run)) return run;
  return sink_.expected && sink_.expected(node, order) ? run : 0;
}

void LinkHub::note_refused(const NodeName& node, size_t events, const std::string& why) {
  Refused& refused = refused_[node];
  refused.events += events;
  const SteadyMs now = reactor_.steady();
  if (refused.noted && now - refused.noted < kNoteAgain) return;
  refused.noted = now;
  log::warning("events of a node were refused",
               {{"node", node}, {"why", why}, {"events", std::to_string(refused.events)}});
  if (!mac_of_unknown(node).empty()) return;
  EventRow row;
  row.time = reactor_.now();
  row.node = node;
  row.kind = EventKind("node").word();
  row.json = dump_json(Json{{"action", "events refused"}, {"reason", why}, {"count", refused.events}});
  store_.write({row}, [](const Status&) {});
}

void LinkHub::forward(const NodeName& node, const wire::EventBatch& batch, const wire::Event& event) {
  if (event.kind == "hello" && sink_.hello) {
    Hello hello;
    hello.node = node;
    const auto mode = wire::mode_from_string(text_at(event.data, "mode"));
    // The mode decides whether the machine may be switched off and its disks written.
    if (!mode.ok()) {
      log::error("hello ignored: unknown agent mode",
                 {{"node", node}, {"mode", text_at(event.data, "mode").substr(0, 40)}});
      return;
    }
    hello.mode = *mode;
    hello.boot_id = batch.boot_id;
    hello.image_digest = Digest(text_at(event.data, "image_digest"));
    hello.slot = slot_of(text_at(event.data, "slot"));
    hello.trial = is_true_at(event.data, "trial");
    hello.loader_skipped = is_true_at(event.data, "loader_skipped");
    log::info("agent connected", {{"node", node}, {"mode", std::string(wire::to_string(hello.mode))}});
    sink_.hello(hello);
  }
  deliver(node, event);
}

void LinkHub::deliver(const NodeName& node, const wire::Event& event) {
  if (!live_checks_.take(node, event) && sink_.event) sink_.event(node, event);
}

void LinkHub::close() {
  while (!waiters_.empty()) release(NodeName(waiters_.begin()->first), {});
}

}  // namespace muster
