#include "controller/link/event_door.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

Status EventDoor::admit(const NodeName& node, wire::EventBatch& batch, SteadyMs now) {
  batch.boot_id = short_id(batch.boot_id);
  batch.incarnation = short_id(batch.incarnation);
  for (const wire::Event& event : batch.events)
    if (!EventKind::is_of_agents(event.kind))
      return fail(Code::denied, fmt::format("'{}' is no kind of event that agents send",
                                            printable(first_bytes(event.kind, kLongestId))));
  Share& share = share_of(node, now);
  if (!batch.events.empty() && (share.events < 0 || share.bytes < 0))
    return fail(Code::unavailable, fmt::format("the node sent more events than its share: limits.events.{}",
                                               share.events < 0 ? "per_second" : "bytes_per_day"));
  share.events -= static_cast<double>(batch.events.size());
  for (wire::Event& event : batch.events) {
    event.order = OrderId(short_id(event.order));
    make_printable(event.data);
    const size_t size = dump_json(event.data).size();
    share.bytes -= static_cast<double>(size);
    if (size <= static_cast<size_t>(limits_.size)) continue;
    event.data = cut_down(event, fmt::format("the agent sent {} bytes for one event of kind {}, and "
                                             "limits.events.size is {}",
                                             size, event.kind, limits_.size));
  }
  return Ok{};
}

EventDoor::Share& EventDoor::share_of(const NodeName& node, SteadyMs now) {
  const double most_events = limits_.per_second * kBurst;
  const auto most_bytes = static_cast<double>(limits_.bytes_per_day);
  Share& share = shares_.try_emplace(node.str(), Share{most_events, most_bytes, now}).first->second;
  const auto passed = static_cast<double>(now - share.at);
  share.events = std::min(most_events, share.events + passed * limits_.per_second / kSecond);
  share.bytes = std::min(most_bytes, share.bytes + passed * most_bytes / kDay);
  share.at = now;
  return share;
}

}  // namespace muster
