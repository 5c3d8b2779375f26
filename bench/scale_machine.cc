#include <fmt/format.h>

#include <utility>

#include "bench/cluster.h"
#include "bench/scale.h"

namespace muster::bench {
namespace {

constexpr int kSlices = 8;  // of an image, between two words about it

}  // namespace

Machine::Machine(ScaleClock& clock, LinkHub& hub, sim::Random& random, const NodeSpec& spec)
    : clock_(clock), hub_(hub), random_(random), spec_(spec) {}

void Machine::later(DurationMs from, DurationMs to, std::function<void()> then) {
  clock_.after(random_.range(from, to), [this, boots = boots_, then = std::move(then)] {
    clock_.label("a machine");
    if (boots == boots_) then();
  });
}

void Machine::restart(wire::Mode mode) {
  ++boots_;
  boot_ = fmt::format("{}-{}", spec_.name, boots_);
  mode_ = mode;
  events_ = 0;
  has_.clear();
  later(30 * kSecond, 60 * kSecond, [this] {
    say("", "hello",
        {{"mode", wire::to_string(mode_)},
         {"boot_id", boot_},
         {"image_digest", mode_ == wire::Mode::ram ? "" : image_},
         {"agent_version", "bench"}});
    request();
  });
}

void Machine::say(const std::string& order, const std::string& kind, Json data) {
  wire::Event event{++events_, clock_.now(), OrderId(order), kind, std::move(data)};
  clock_.label("an agent's events");
  hub_.take(spec_.name, {boot_, boot_, {std::move(event)}}, [](const Result<uint64_t>& taken) {
    if (!taken.ok()) give_up(taken.error().message);
  });
}

void Machine::request() {
  Presence present;
  present.boot_id = boot_;
  present.mode = mode_;
  present.image_digest = Digest(mode_ == wire::Mode::ram ? "" : image_);
  clock_.label("an agent's poll");
  hub_.poll(
      spec_.name, has_,
      [this, boots = boots_](wire::PollReply reply) {
        if (boots == boots_) later(5, 50, [this, reply = std::move(reply)] { take(reply); });
      },
      present);
}

void Machine::take(const wire::PollReply& reply) {
  for (const auto& id : reply.withdrawn) has_.erase(id);
  for (const auto& order : reply.orders)
    if (has_.insert(order.id).second) begin(order);
  request();
}

void Machine::begin(const wire::WorkOrder& order) {
  auto kept = std::make_shared<const wire::WorkOrder>(order);
  later(100, 500, [this, kept] {
    say(kept->id, "started", Json::object());
    switch (kept->kind) {
      case wire::OrderKind::inventory:
        return finish(*kept, {{"facts", to_json(facts_of(spec_))}});
      case wire::OrderKind::image:
        return write_image(kept, 0);
      case wire::OrderKind::steps:
      case wire::OrderKind::check:
        return step(kept, Json::array());
      case wire::OrderKind::boot_disk:
        finish(*kept, Json::object());
        return restart(wire::Mode::installed);
      default:
        give_up(spec_.name + ": an order that this benchmark does not support: " + kept->kind_word());
    }
  });
}

void Machine::write_image(const std::shared_ptr<const wire::WorkOrder>& order, int slice) {
  later(2 * kSecond, 4 * kSecond, [this, order, slice] {
    say(order->id, "progress", {{"done", slice + 1}, {"total", kSlices}, {"unit", "slices"}});
    if (slice + 1 < kSlices) return write_image(order, slice + 1);
    image_ = order->params.value("digest", "");
    finish(*order, {{"digest", image_}});
  });
}

void Machine::step(const std::shared_ptr<const wire::WorkOrder>& order, Json done) {
  const auto steps = order->params.find("steps");
  if (steps == order->params.end() || done.size() >= steps->size())
    return finish(*order, {{"steps", std::move(done)}});
  later(50, 400, [this, order, done = std::move(done)]() mutable {
    const std::string id = order->params["steps"][done.size()].value("id", "");
    Json data = {{"step", id}, {"name", id}, {"status", "applied"}, {"message", ""}, {"ms", 20}};
    say(order->id, "step", data);
    ++steps_;
    done.push_back(std::move(data));
    step(order, std::move(done));
  });
}

void Machine::finish(const wire::WorkOrder& order, Json result) {
  has_.erase(order.id);
  say(order.id, "finished", {{"ok", true}, {"code", ""}, {"message", ""}, {"result", std::move(result)}});
}

}  // namespace muster::bench
