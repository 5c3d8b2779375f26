#include "controller/link/event_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/event_kind.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace muster {
namespace {

constexpr size_t kLongestId = 256;            // bytes, of what an agent names its boot, process and orders
constexpr double kBurst = kMinute / kSecond;  // seconds' worth of events at once: an agent keeps 4096
constexpr size_t kLongestName = 300;          // bytes, of a step's name in what is left of its event
constexpr size_t kRow = 150;                  // bytes of a stored event besides its texts, with its indexes
constexpr size_t kUrgentSize = 4 << 10;       // bytes
constexpr double kUrgentAtOnce = 32;          // and one a minute: 6 MiB a day

std::string short_id(const std::string& text) { return printable(first_bytes(text, kLongestId), '?'); }

// What stays of an event that is too large: an order ends, and a step fails, with the reason.
Json cut_down(const wire::Event& event, const std::string& why) {
  if (event.kind == "finished")
    return {{"ok", false}, {"code", to_string(Code::invalid)}, {"message", why}, {"result", nullptr}};
  if (event.kind != "step") return {{"level", "error"}, {"text", why}};
  Json out = {{"status", "failed"}, {"message", why}, {"ms", 0}};
  for (const char* key : {"step", "name"})
    out[key] = std::string(first_bytes(text_at(event.data, key), kLongestName));
  return out;
}

// Without a hello an agent of the RAM system gets no orders, and without its end an order fails.
bool is_urgent(const wire::Event& event) { return event.kind == "hello" || event.kind == "finished"; }

}  // namespace

void EventDoor::clean_names(wire::EventBatch& batch) {
  batch.boot_id = short_id(batch.boot_id);
  batch.incarnation = short_id(batch.incarnation);
}

EventDoor::Admitted EventDoor::admit(const NodeName& node, wire::EventBatch& batch, uint64_t taken,
                                     SteadyMs now) {
  Share& share = share_of(node, now);
  Admitted out;
  out.up_to = taken;
  std::vector<wire::Event> events = std::exchange(batch.events, {});
  for (auto event = events.begin(); event != events.end(); ++event) {
    if (event->seq <= out.up_to) {
      out.repeats = true;
      continue;
    }
    const bool known = EventKind::is_of_agents(event->kind);
    const size_t size = known ? tidy(node, *event) : 0;
    if (!charge(share, *event, size)) {
      out.left = static_cast<size_t>(events.end() - event);
      out.left_why = fmt::format("the node sent more events than its share: limits.events.{}",
                                 share.events < 1 ? "per_second" : "bytes_per_day");
      break;
    }
    out.up_to = event->seq;
    if (known) {
      out.stored += size;
      batch.events.push_back(std::move(*event));
    } else if (out.dropped++ == 0) {
      out.dropped_why = fmt::format("'{}' is no kind of event that agents send",
                                    printable(first_bytes(event->kind, kLongestId)));
    }
  }
  return out;
}

// Returns the size that is charged: of its row and indexes (controller/link/link_hub.cc).
size_t EventDoor::tidy(const NodeName& node, wire::Event& event) const {
  event.order = OrderId(short_id(event.order));
  make_printable(event.data);
  const size_t size = dump_json(event.data).size();
  size_t kept = size;
  if (size > static_cast<size_t>(limits_.size)) {
    event.data = cut_down(event, fmt::format("the agent sent {} bytes for one event of kind {}, and "
                                             "limits.events.size is {}",
                                             size, event.kind, limits_.size));
    kept = dump_json(event.data).size();
  }
  return kRow + kept + event.order.str().size() + node.str().size() + event.kind.size();
}

bool EventDoor::charge(Share& share, const wire::Event& event, size_t size) const {
  const auto bytes = static_cast<double>(size);
  // An event larger than a day's bytes takes all of them.
  const bool fits = share.bytes >= std::min(bytes, static_cast<double>(limits_.bytes_per_day));
  if (share.events >= 1 && fits) {
    share.events -= 1;
    share.bytes = std::max(0.0, share.bytes - bytes);
    return true;
  }
  if (!is_urgent(event) || size > kUrgentSize || share.urgent < 1) return false;
  share.urgent -= 1;
  return true;
}

EventDoor::Share& EventDoor::share_of(const NodeName& node, SteadyMs now) {
  const double most_events = limits_.per_second * kBurst;
  const auto most_bytes = static_cast<double>(limits_.bytes_per_day);
  Share& share =
      shares_.try_emplace(node.str(), Share{most_events, most_bytes, kUrgentAtOnce, now}).first->second;
  const auto passed = static_cast<double>(now - share.at);
  share.events = std::min(most_events, share.events + passed * limits_.per_second / kSecond);
  share.bytes = std::min(most_bytes, share.bytes + passed * most_bytes / kDay);
  share.urgent = std::min(kUrgentAtOnce, share.urgent + passed / kMinute);
  share.at = now;
  return share;
}

}  // namespace muster
