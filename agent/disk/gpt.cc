#include "agent/disk/gpt.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/digest.h"

namespace muster {
namespace {

constexpr size_t kGptEntries = 128, kGptEntrySize = 128;

struct [[gnu::packed]] Header {
  char magic[8];
  uint32_t revision, size, crc, reserved;
  uint64_t at, other, first_usable, last_usable;
  uint8_t disk_guid[16];
  uint64_t entries_at;
  uint32_t entries, entry_size, entries_crc;
};
static_assert(sizeof(Header) == 92);

struct GptEntry {  // naturally aligned
  uint8_t type[16], guid[16];
  uint64_t first, last, attributes;
  uint16_t name[36];
};
static_assert(sizeof(GptEntry) == kGptEntrySize);

// Writes a mixed-endian GUID as text: the first three groups are little-endian.
constexpr std::array<int, 16> kGuidOrder = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

std::string guid_text(const uint8_t* raw) {
  std::string out;
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += fmt::format("{:02x}", raw[kGuidOrder[i]]);
  }
  return out;
}

void guid_bytes(const std::string& text, uint8_t* raw) {
  size_t i = 0;
  for (size_t at = 0; at + 1 < text.size() && i < 16; ++at) {
    if (text[at] == '-') continue;
    raw[kGuidOrder[i++]] = static_cast<uint8_t>(std::stoi(text.substr(at, 2), nullptr, 16));
    ++at;
  }
}

// Names on a disk are untrusted: what is not printable ASCII becomes '?'.
std::string name_text(const uint16_t* raw) {
  std::string out;
  for (size_t i = 0; i < 36; ++i) {
    uint16_t unit;
    std::memcpy(&unit, raw + i, sizeof unit);
    if (unit == 0) break;
    out += unit >= 32 && unit < 127 ? static_cast<char>(unit) : '?';
  }
  return out;
}

Result<GptTable> read_table_copy(const BlockDevice& disk, uint64_t lba) {
  const uint64_t block = disk.logical_block();
  TRY(std::string raw, disk.read_at(lba * block, block));
  Header h;
  std::memcpy(&h, raw.data(), sizeof h);
  if (std::memcmp(h.magic, "EFI PART", 8) != 0) return fail(Code::not_found, "no GPT");
  const auto corrupt = [](const char* what) { return fail(Code::corrupt, std::string("GPT: ") + what); };
  if (h.size < sizeof h || h.size > block || h.entry_size != kGptEntrySize || h.entries == 0 ||
      h.entries > 1024 || h.at != lba)
    return corrupt("impossible header");
  std::memset(raw.data() + offsetof(Header, crc), 0, 4);
  if (crc32(raw.substr(0, h.size)) != h.crc) return corrupt("the checksum of the header is wrong");
  TRY(const std::string entries, disk.read_at(h.entries_at * block, size_t{h.entries} * kGptEntrySize));
  if (crc32(entries) != h.entries_crc) return corrupt("the checksum of the entries is wrong");
  GptTable table;
  table.disk_guid = guid_text(h.disk_guid);
  for (uint32_t i = 0; i < h.entries; ++i) {
    GptEntry e;
    std::memcpy(&e, entries.data() + i * kGptEntrySize, sizeof e);
    const std::string type = guid_text(e.type);
    if (type == "00000000-0000-0000-0000-000000000000") continue;
    if (e.first > e.last || e.last >= disk.size() / block)
      return corrupt("a partition lies outside the disk");
    table.partitions.push_back({static_cast<int>(i) + 1, type, guid_text(e.guid), name_text(e.name),
                                e.first * block, (e.last - e.first + 1) * block});
  }
  return table;
}

std::string entries_of(const GptTable& table, uint64_t block) {
  std::string out(kGptEntries * kGptEntrySize, '\0');
  for (const auto& p : table.partitions) {
    GptEntry e = {};
    guid_bytes(p.type, e.type);
    guid_bytes(p.guid, e.guid);
    e.first = p.start / block;
    e.last = (p.start + p.size) / block - 1;
    for (size_t i = 0; i < p.name.size() && i < 35; ++i) {
      const auto unit = static_cast<uint16_t>(static_cast<unsigned char>(p.name[i]));
      std::memcpy(&e.name[i], &unit, sizeof unit);
    }
    std::memcpy(out.data() + static_cast<size_t>(p.number - 1) * kGptEntrySize, &e, sizeof e);
  }
  return out;
}

std::string header_of(const GptTable& table, const std::string& entries, const BlockDevice& disk,
                      bool primary) {
  const uint64_t block = disk.logical_block(), last = disk.size() / block - 1,
                 blocks = entries.size() / block;
  Header h = {};
  std::memcpy(h.magic, "EFI PART", 8);
  h.revision = 0x10000;
  h.size = sizeof h;
  h.at = primary ? 1 : last;
  h.other = primary ? last : 1;
  h.first_usable = 2 + blocks;
  h.last_usable = last - 1 - blocks;
  guid_bytes(table.disk_guid, h.disk_guid);
  h.entries_at = primary ? 2 : last - blocks;
  h.entries = kGptEntries;
  h.entry_size = kGptEntrySize;
  h.entries_crc = crc32(entries);
  std::string out(block, '\0');
  std::memcpy(out.data(), &h, sizeof h);
  const uint32_t crc = crc32(out.substr(0, sizeof h));
  std::memcpy(out.data() + offsetof(Header, crc), &crc, 4);
  return out;
}

std::string protective_mbr(const BlockDevice& disk) {
  std::string out(disk.logical_block(), '\0');
  const uint64_t blocks = disk.size() / disk.logical_block() - 1;
  const auto size = static_cast<uint32_t>(std::min<uint64_t>(blocks, 0xffffffff));
  const unsigned char entry[8] = {0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff};
  const uint32_t first = 1;
  std::memcpy(out.data() + 446, entry, sizeof entry);
  std::memcpy(out.data() + 454, &first, 4);
  std::memcpy(out.data() + 458, &size, 4);
  out[510] = 0x55;
  out[511] = static_cast<char>(0xaa);
  return out;
}

}  // namespace

uint32_t crc32(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
  }
  return ~crc;
}

std::string random_guid() {
  std::string h = random_hex(16);
  h[12] = '4';
  h[16] = 'a';
  return fmt::format("{}-{}-{}-{}-{}", h.substr(0, 8), h.substr(8, 4), h.substr(12, 4), h.substr(16, 4),
                     h.substr(20));
}

const GptPartition* GptTable::named(const std::string& name) const {
  for (const auto& p : partitions)
    if (p.name == name) return &p;
  return nullptr;
}

Result<GptTable> read_gpt(const BlockDevice& disk) {
  if (disk.size() < (1 << 20)) return fail(Code::not_found, "the disk is too small for a GPT");
  auto primary = read_table_copy(disk, 1);
  if (primary) return primary;
  auto backup = read_table_copy(disk, disk.size() / disk.logical_block() - 1);
  if (!backup) return primary.error().code == Code::corrupt ? std::move(primary) : std::move(backup);
  backup->from_backup = true;
  return backup;
}

Status write_gpt(const BlockDevice& disk, const GptTable& table) {
  const uint64_t block = disk.logical_block();
  const std::string entries = entries_of(table, block);
  const uint64_t end = disk.size() / block * block;
  TRY_(disk.write_at(end - block - entries.size(), entries));
  TRY_(disk.write_at(end - block, header_of(table, entries, disk, false)));
  TRY_(disk.sync());
  TRY_(disk.write_at(2 * block, entries));
  TRY_(disk.write_at(block, header_of(table, entries, disk, true)));
  TRY_(disk.write_at(0, protective_mbr(disk)));
  return disk.sync();
}

}  // namespace muster
