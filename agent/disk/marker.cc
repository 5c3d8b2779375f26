#include "agent/disk/marker.h"

#include <algorithm>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/record.h"

namespace muster {

MUSTER_RECORD(NotedFile, lenient, size, sha256)
MUSTER_RECORD(SlotNote, lenient, opt(image), opt(digest), opt(stage), opt(address), opt(order), opt(trial),
              sparse(kernel), sparse(initrd))
MUSTER_RECORD(ImageMarker, lenient, node, stage, digest, slot, current, approved, fresh, opt(cluster),
              opt(authority), opt(order), opt(slots), opt(serial))

namespace {

// Returns the slots of a marker that was written by a version that recorded only one slot.
std::map<std::string, SlotNote> slots_before(const ImageMarker& m) {
  if (m.slot != "a" && m.slot != "b") return {};
  return {{m.slot, {"", m.digest, m.stage == "done" ? kSlotWritten : kSlotWriting, "", m.order}}};
}

Result<ImageMarker> read_marker_copy(const BlockDevice& disk, uint64_t offset) {
  TRY(const std::string block, disk.read_at(offset, kMarkerSize));
  const size_t line = block.find('\n');
  const size_t end = block.find('\0');
  if (!block.starts_with("muster-image sha256:") || line == std::string::npos || end == std::string::npos ||
      line > end)
    return fail(Code::not_found, "no muster marker");
  const std::string body = block.substr(line + 1, end - line - 1);
  if ("muster-image " + sha256(body) != block.substr(0, line))
    return fail(Code::not_found, "muster's marker is damaged");
  TRY(const Json json, parse_json(body));
  TRY(auto m, read_record<ImageMarker>(json, "marker"));
  if (!json.contains("slots")) m.slots = slots_before(m);
  std::erase_if(m.slots, [](const auto& slot) { return slot.first != "a" && slot.first != "b"; });
  if (m.serial > INT64_MAX) m.serial = 0;  // negative
  return m;
}

Result<std::string> block_of(const ImageMarker& m) {
  const std::string body = dump_json(record_json(m));
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
