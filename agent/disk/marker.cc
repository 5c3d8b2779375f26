#include "agent/disk/marker.h"

#include <algorithm>

#include "base/digest.h"
#include "base/json.h"
#include "base/json_dump.h"

namespace muster {
namespace {

// Returns the slots of a marker that was written by a version that recorded only one slot.
std::map<std::string, SlotNote> slots_before(const ImageMarker& m) {
  if (m.slot != "a" && m.slot != "b") return {};
  return {{m.slot, {"", m.digest, m.stage == "done" ? kSlotWritten : kSlotWriting, "", m.order}}};
}

Status read_slots(const Json& json, ImageMarker& m) {
  if (json.is_null()) {
    m.slots = slots_before(m);
    return Ok{};
  }
  if (!json.is_object()) return fail(Code::not_found, "muster's marker: slots are not an object");
  for (const auto& [name, note] : json.items()) {
    if (name != "a" && name != "b") continue;
    SlotNote& slot = m.slots[name];
    JsonReader r(note, "marker.slots");
    r.allow_unknown();
    r.get_or("image", slot.image, std::string());
    r.get_or("digest", slot.digest, std::string());
    r.get_or("stage", slot.stage, std::string());
    r.get_or("address", slot.address, std::string());
    r.get_or("order", slot.order, std::string());
    r.get_or("trial", slot.trial, false);
    TRY_(r.finish());
  }
  return Ok{};
}

Result<ImageMarker> read_marker_copy(const BlockDevice& disk, uint64_t offset) {
  TRY(const std::string block, disk.read_at(offset, kMarkerSize));
  const size_t line = block.find('\n');
  const size_t end = block.find('\0');
  if (block.rfind("muster-image sha256:", 0) != 0 || line == std::string::npos || end == std::string::npos ||
      line > end)
    return fail(Code::not_found, "no muster marker");
  const std::string body = block.substr(line + 1, end - line - 1);
  if ("muster-image " + sha256(body) != block.substr(0, line))
    return fail(Code::not_found, "muster's marker is damaged");
  TRY(const Json json, parse_json(body));
  ImageMarker m;
  JsonReader r(json, "marker");
  r.allow_unknown();
  r.get("node", m.node);
  r.get("stage", m.stage);
  r.get("digest", m.digest);
  r.get("slot", m.slot);
  r.get("current", m.current);
  r.get("approved", m.approved);
  r.get("fresh", m.fresh);
  r.get_or("cluster", m.cluster, std::string());
  r.get_or("authority", m.authority, std::string());
  r.get_or("order", m.order, std::string());
  int64_t serial = 0;
  r.get_or("serial", serial, int64_t{0});
  const Json slots = r.raw("slots");
  TRY_(r.finish());
  m.serial = static_cast<uint64_t>(std::max<int64_t>(serial, 0));
  TRY_(read_slots(slots, m));
  return m;
}

Json slots_json(const ImageMarker& m) {
  Json out = Json::object();
  for (const auto& [name, s] : m.slots)
    out[name] = {{"image", s.image},     {"digest", s.digest}, {"stage", s.stage},
                 {"address", s.address}, {"order", s.order},   {"trial", s.trial}};
  return out;
}

Result<std::string> block_of(const ImageMarker& m) {
  const std::string body = dump_json(Json{{"node", m.node},
                                          {"stage", m.stage},
                                          {"digest", m.digest},
                                          {"slot", m.slot},
                                          {"current", m.current},
                                          {"approved", m.approved},
                                          {"fresh", m.fresh},
                                          {"cluster", m.cluster},
                                          {"authority", m.authority},
                                          {"order", m.order},
                                          {"slots", slots_json(m)},
                                          {"serial", static_cast<int64_t>(m.serial)}});
  std::string block = "muster-image " + sha256(body) + "\n" + body;
  if (block.size() >= kMarkerSize) return fail(Code::invalid, "the marker is too long");
  block.resize(kMarkerSize, '\0');
  return block;
}

}  // namespace

Result<ImageMarker> read_marker(const BlockDevice& disk) {
  auto first = read_marker_copy(disk, kMarkerOffset);
  if (first.ok() && first->serial == 0) return first;
  auto second = read_marker_copy(disk, kSecondMarkerOffset);
  if (!second.ok()) return first;
  return first.ok() && first->serial >= second->serial ? std::move(first) : std::move(second);
}

Status write_marker(const BlockDevice& disk, const ImageMarker& marker) {
  ImageMarker next = marker;
  for (const uint64_t at : {kMarkerOffset, kSecondMarkerOffset})
    if (const auto copy = read_marker_copy(disk, at); copy.ok())
      next.serial = std::max(next.serial, copy->serial);
  ++next.serial;
  TRY(const std::string block, block_of(next));
  TRY_(disk.write_at(kSecondMarkerOffset, block));
  TRY_(disk.sync());
  TRY_(disk.write_at(kMarkerOffset, block));
  return disk.sync();
}

}  // namespace muster
