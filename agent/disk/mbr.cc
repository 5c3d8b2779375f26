#include "agent/disk/disk_probe.h"

#include <algorithm>
#include <array>

namespace muster {
namespace {

constexpr size_t kSector = 512, kId = 440, kMbrEntries = 446, kMbrEntrySize = 16;
constexpr int kLinks = 60, kProtective = 0xee;

struct MbrEntry {
  int boot = 0, type = 0;
  uint64_t first = 0, count = 0;  // logical blocks
};

using Entries = std::array<MbrEntry, 4>;

Entries entries_of(const std::string& sector) {
  const auto byte = [&](size_t at) { return static_cast<uint64_t>(static_cast<unsigned char>(sector[at])); };
  const auto number = [&](size_t at) {
    return byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24;
  };
  Entries out;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = kMbrEntries + i * kMbrEntrySize;
    out[i] = {static_cast<int>(byte(at)), static_cast<int>(byte(at + 4)), number(at + 8), number(at + 12)};
  }
  return out;
}

bool is_signed(const std::string& sector) { return sector.compare(510, 2, "\x55\xaa") == 0; }
bool is_extended(const MbrEntry& e) { return e.type == 0x05 || e.type == 0x0f || e.type == 0x85; }

void add(const BlockDevice& disk, MbrTable& table, int number, const MbrEntry& entry, uint64_t first) {
  const uint64_t start = first * disk.logical_block(), size = entry.count * disk.logical_block();
  // A partition that starts with the disk (a bootable ISO image) is the disk itself.
  if (size == 0 || start == 0 || start >= disk.size()) return;
  table.partitions.push_back({number, entry.type, start, std::min(size, disk.size() - start)});
}

// Each link of the chain contains the position of one logical partition, relative to the link, and that of
// the next link, relative to the extended partition.
Status follow(const BlockDevice& disk, uint64_t extended, int& links, int& number, MbrTable& table) {
  for (uint64_t at = extended;;) {
    const uint64_t offset = at * disk.logical_block();
    if (++links > kLinks || offset >= disk.size() || disk.size() - offset < kSector) {
      table.damaged = true;
      return Ok{};
    }
    TRY(const std::string sector, disk.read_at(offset, kSector));
    if (!is_signed(sector)) {
      table.damaged = true;
      return Ok{};
    }
    uint64_t next = 0;
    for (const auto& entry : entries_of(sector))
      if (is_extended(entry) && entry.count > 0 && next == 0)
        next = extended + entry.first;
      else if (entry.type != 0 && !is_extended(entry) && entry.count > 0)
        add(disk, table, number++, entry, at + entry.first);
    if (next == 0) return Ok{};
    if (next <= at) {
      table.damaged = true;
      return Ok{};
    }
    at = next;
  }
}

}  // namespace

Result<MbrTable> read_mbr(const BlockDevice& disk) {
  if (disk.size() < kSector) return fail(Code::not_found, "the disk is too small for an MBR");
  TRY(const std::string sector, disk.read_at(0, kSector));
  const Entries entries = entries_of(sector);
  const bool any = std::any_of(entries.begin(), entries.end(),
                               [](const MbrEntry& e) { return e.type != 0 && e.type != kProtective; });
  if (!is_signed(sector) || !any) return fail(Code::not_found, "no MBR");
  MbrTable table;
  table.raw = sector.substr(kId);
  // A file system's boot sector has the same end mark. Like the kernel, this checks the boot flags, too.
  if (std::any_of(entries.begin(), entries.end(), [](const MbrEntry& e) { return (e.boot & 0x7f) != 0; }))
    return table;
  for (int i = 0; i < 4; ++i)
    if (const MbrEntry& e = entries[static_cast<size_t>(i)];
        e.type != 0 && e.type != kProtective && !is_extended(e))
      add(disk, table, i + 1, e, e.first);
  int links = 0, number = 5;
  for (const auto& e : entries)
    if (is_extended(e) && e.count > 0) TRY_(follow(disk, e.first, links, number, table));
  return table;
}

}  // namespace muster
