#include "agent/disk/disk_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "agent/disk/look.h"
#include "agent/disk/text.h"
#include "base/digest.h"

namespace muster {
namespace {

constexpr uint64_t kHead = (1 << 20) + 4096, kTail = 1 << 20;

// One region of the disk with its first and last mebibyte in memory.
struct Region {
  uint64_t start, size;
  std::string head, tail;

  std::string at(uint64_t offset, size_t n) const {
    if (offset + n <= head.size()) return head.substr(offset, n);
    const uint64_t tail_from = size - tail.size();
    if (offset >= tail_from && offset + n <= size) return tail.substr(offset - tail_from, n);
    return {};
  }
  bool is(uint64_t offset, std::string_view magic) const { return at(offset, magic.size()) == magic; }
  std::string text(uint64_t offset, size_t n) const { return text_at(at(offset, n), 0, n); }
  std::string uuid(uint64_t offset) const { return uuid_at(at(offset, 16), 0); }
  void add(std::vector<Signature>& out, const char* type, std::string label = "", std::string id = "") const {
    out.push_back({type, std::move(label), std::move(id), start, {}, {}});
  }
};

using Found = std::vector<Signature>;
using namespace std::string_view_literals;

void find_file_systems(const Region& r, Found& out) {
  if (r.is(0x438, "\x53\xef"sv)) r.add(out, ext_type(r.at(0x45c, 12)), r.text(0x478, 16), r.uuid(0x468));
  if (r.is(0, "XFSB")) r.add(out, "xfs", r.text(0x6c, 12), r.uuid(0x20));
  if (r.is(0x10040, "_BHRfS_M")) {
    r.add(out, "btrfs", r.text(0x1012b, 64), r.uuid(0x10020));
    out.back().device = to_hex(r.at(0x100c9, 8));
  }
  if (r.is(510, "\x55\xaa"sv) && r.is(82, "FAT32"))
    r.add(out, "vfat", r.text(71, 11), to_hex(r.at(67, 4)));
  else if (r.is(510, "\x55\xaa"sv) && r.is(54, "FAT"))
    r.add(out, "vfat", r.text(43, 11), to_hex(r.at(39, 4)));
  if (r.is(3, "NTFS    ")) r.add(out, "ntfs", "", to_hex(r.at(0x48, 8)));
  if (r.is(3, "EXFAT   ")) r.add(out, "exfat", "", to_hex(r.at(100, 4)));
  if (r.is(4086, "SWAPSPACE2") || r.is(4086, "SWAP-SPACE"))
    r.add(out, "swap", r.text(1052, 16), r.uuid(1036));
  if (r.is(32769, "CD001")) r.add(out, "iso9660", r.text(32808, 32));
  if (r.is(1024, "\xe2\xe1\xf5\xe0"sv)) r.add(out, "erofs", r.text(1024 + 64, 16), r.uuid(1024 + 48));
  if (r.is(0, "hsqs")) r.add(out, "squashfs");
  if (r.is(1024, "\x10\x20\xf5\xf2"sv)) r.add(out, "f2fs", "", r.uuid(1024 + 108));
  if (r.is(65536, "\x01\x16\x19\x70"sv)) r.add(out, "gfs2", r.text(65536 + 96, 64));
  for (const uint64_t at : {1024, 2048, 4096, 8192})
    if (r.is(at, "OCFSV2")) r.add(out, "ocfs2");
}

// From md's superblock version 1.
std::string array_words(const Region& r, uint64_t at) {
  const auto number = [&](uint64_t from) {
    uint32_t n = 0;
    const std::string bytes = r.at(at + from, sizeof n);
    if (bytes.size() == sizeof n) std::memcpy(&n, bytes.data(), sizeof n);
    return n;
  };
  constexpr uint32_t kMostLevel = 10;  // larger values are negative levels: linear, multipath, a container
  std::string out = number(72) <= kMostLevel ? fmt::format("level=raid{}", number(72)) : "level=other";
  if (number(92) > 0) out += fmt::format(" devices={}", number(92));
  return out;
}

void find_md(const Region& r, Found& out) {
  // Version 0.90 has it in the byte order of its machine, version 1 is always little-endian.
  const auto magic = "\xfc\x4e\x2b\xa9"sv;
  const uint64_t sectors = r.size / 512;
  const uint64_t v10 = sectors > 16 ? ((sectors - 16) & ~7ull) * 512 : 0;
  for (const uint64_t at : {uint64_t{0}, uint64_t{4096}, v10})
    if ((at || r.head.size() > 4096) && r.is(at, magic)) {
      r.add(out, "linux_raid_member", r.text(at + 32, 32), r.uuid(at + 16));
      out.back().detail = array_words(r, at);
    }
  const uint64_t v090 = r.size >= 131072 ? (r.size & ~65535ull) - 65536 : 0;
  if (v090 && r.is(v090, magic)) r.add(out, "linux_raid_member", "", to_hex(r.at(v090 + 20, 4)));
}

void find_zfs(const Region& r, Found& out) {
  // ZFS has four labels, two at each end; each contains a ring of uberblocks that begins at 128 KiB.
  if (r.size < (2 << 20)) return;
  const uint64_t end = r.size / 262144 * 262144;
  for (const uint64_t label : {uint64_t{0}, uint64_t{262144}, end - 524288, end - 262144})
    for (uint64_t at = label + 131072; at < label + 262144; at += 1024)
      if (r.is(at, "\x0c\xb1\xba\x00\x00\x00\x00\x00"sv) || r.is(at, "\x00\x00\x00\x00\x00\xba\xb1\x0c"sv)) {
        r.add(out, "zfs_member");
        return;
      }
}

void find_volumes(const Region& r, Found& out) {
  for (const uint64_t at : {0, 512, 1024, 1536})
    if (r.is(at, "LABELONE") && r.is(at + 24, "LVM2 001")) r.add(out, "LVM2_member", "", r.text(at + 32, 32));
  if (r.is(0, "LUKS\xba\xbe"sv)) r.add(out, "crypto_LUKS", r.text(24, 48), r.text(168, 40));
  if (r.is(0, "bluestore block device")) r.add(out, "ceph_bluestore", "", r.text(23, 36));
  if (r.is(4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"sv))
    r.add(out, "bcache", "", r.uuid(4096 + 40));
  if (r.is(32, "ORCLDISK")) r.add(out, "oracleasm", r.text(40, 24));
  if (r.is(1 << 20, "\x0d\xd0\x01\xc0"sv)) r.add(out, "VMFS_volume_member");
  if (r.is(0, "DRBD") || r.is(4096, "DRBD")) r.add(out, "drbd");
}

bool same_bytes(const std::string& s, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i)
    if (s[i] != s[from]) return false;
  return from >= to || s[from] == 0 || s[from] == '\xff';
}

Result<Region> read_region(const BlockDevice& disk, uint64_t start, uint64_t size) {
  Region r{start, size, {}, {}};
  TRY(r.head, disk.read_at(start, std::min(size, kHead)));
  TRY(r.tail, disk.read_at(start + size - std::min(size, kTail), std::min(size, kTail)));
  return r;
}

Found find_all(const Region& r) {
  Found out;
  find_file_systems(r, out);
  find_md(r, out);
  find_zfs(r, out);
  find_volumes(r, out);
  return out;
}

bool is_quiet(const Region& r) {
  return same_bytes(r.head, 0, r.head.size()) && same_bytes(r.tail, 0, r.tail.size());
}
std::string digest_of(const Region& r) { return sha256(r.head + r.tail); }

// "128 MiB" for a whole number of MiB, else KiB or bytes.
std::string place(uint64_t at) {
  return at % (1 << 20) == 0 ? fmt::format("{} MiB", at >> 20)
         : at % 1024 == 0    ? fmt::format("{} KiB", at >> 10)
                             : fmt::format("{} bytes", at);
}
Signature remains(const std::string& type, const std::string& label, const std::string& uuid, uint64_t at) {
  return {fmt::format("{}{} at {}", kRemains, type, place(at)), label, uuid, at, {}};
}

std::string label_of(const Signature& s) { return s.type + (s.label.empty() ? "" : " \"" + s.label + "\""); }

// Name and content of a partition: "data ext4 "scratch"", "#5 LVM2_member".
std::string describe(const DiskContent& c, uint64_t start, std::string name) {
  for (const auto& s : c.signatures)
    if (s.start == start) name += " " + label_of(s);
  return name;
}

std::string summarize(const DiskContent& c) {
  if (c.blank) return "blank";
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (!c.gpt.disk_guid.empty()) {
    add(fmt::format("GPT{} with {} partitions", c.gpt.from_backup ? " (backup copy only)" : "",
                    c.gpt.partitions.size()));
    for (const auto& p : c.gpt.partitions)
      add(describe(c, p.start, p.name.empty() ? fmt::format("#{}", p.number) : p.name));
  }
  if (c.mbr) {
    add(fmt::format("MBR partition table with {} partitions", c.mbr->partitions.size()));
    for (const auto& p : c.mbr->partitions) add(describe(c, p.start, fmt::format("#{}", p.number)));
  }
  for (const auto& s : c.signatures)
    if ((s.start == 0 || is_remains(s.type)) && s.type != kUnknownData) add(label_of(s));
  return out.empty() ? kUnknownData : out;
}

std::string hash_of(const BlockDevice& disk, const DiskContent& c) {
  std::string text = fmt::format("size {}\nmbr {}\ngpt {}\n", disk.size(),
                                 c.mbr ? to_hex(c.mbr->raw) : "false", c.gpt.disk_guid);
  for (const auto& p : c.gpt.partitions)
    text += fmt::format("part {} {} {} {} {} {}\n", p.number, p.type, p.guid, p.start, p.size, p.name);
  if (c.mbr)
    for (const auto& p : c.mbr->partitions)
      text += fmt::format("mbr part {} {} {} {}\n", p.number, p.type, p.start, p.size);
  for (const auto& s : c.signatures)
    text += fmt::format("sig {} {} {} {}\n", s.start, s.type, s.uuid, s.label);
  return sha256(text);
}

// Start and size of every partition of both tables, each once: a hybrid MBR repeats those of the GPT.
std::set<std::pair<uint64_t, uint64_t>> partitions_of(const DiskContent& c) {
  std::set<std::pair<uint64_t, uint64_t>> out;
  for (const auto& p : c.gpt.partitions) out.emplace(p.start, p.size);
  if (c.mbr)
    for (const auto& p : c.mbr->partitions) out.emplace(p.start, p.size);
  return out;
}

// Where partitioning tools have usually put the first partition since 2010.
constexpr uint64_t kFirstPartition = 1 << 20;

// For a disk without a table and without a known signature at the usual places: lists what the close look
// finds; the hash covers everything that was read.
Status add_closer_look(const BlockDevice& disk, DiskContent& c) {
  TRY(Look look, look_closely(disk, 0, disk.size()));
  c.blank = look.quiet;
  if (look.quiet) return Ok{};
  std::set<std::string> types;
  if (disk.size() > 2 * kFirstPartition) {
    TRY(const Region first, read_region(disk, kFirstPartition, disk.size() - kFirstPartition));
    for (const auto& s : find_all(first))
      if (types.insert(s.type).second) c.signatures.push_back(remains(s.type, s.label, s.uuid, s.start));
  }
  for (const auto& r : look.remains)
    if (types.insert(r.type).second) c.signatures.push_back(remains(r.type, r.label, r.uuid, r.at));
  c.signatures.push_back({kUnknownData, "", look.digest, 0, {}});
  return Ok{};
}

}  // namespace

bool is_remains(const std::string& type) { return type.starts_with(kRemains); }

Result<bool> is_blank(const BlockDevice& disk, uint64_t start, uint64_t size) {
  TRY(const auto found, probe_region(disk, start, size));
  if (!found.empty()) return false;
  TRY(const Look look, look_closely(disk, start, size));
  return look.quiet;
}

Result<std::vector<Signature>> probe_region(const BlockDevice& disk, uint64_t start, uint64_t size) {
  TRY(const Region r, read_region(disk, start, size));
  Found out = find_all(r);
  if (out.empty() && !is_quiet(r)) r.add(out, kUnknownData, "", digest_of(r));
  return out;
}

Result<DiskContent> probe_disk(const BlockDevice& disk) {
  DiskContent c;
  TRY(const Region whole, read_region(disk, 0, disk.size()));
  c.signatures = find_all(whole);
  if (auto mbr = read_mbr(disk))
    c.mbr = std::move(mbr).value();
  else if (mbr.error().code != Code::not_found)
    return std::move(mbr).error();
  // The partitions of a broken table cannot be found, so at least the area around the table is hashed.
  if (c.mbr && c.mbr->damaged) whole.add(c.signatures, "mbr (damaged)", "", digest_of(whole));
  if (auto gpt = read_gpt(disk))
    c.gpt = std::move(gpt).value();
  else if (gpt.error().code == Code::corrupt)
    whole.add(c.signatures, "gpt (damaged)", "", digest_of(whole));
  for (const auto& [start, size] : partitions_of(c)) {
    TRY(auto found, probe_region(disk, start, size));
    c.signatures.insert(c.signatures.end(), found.begin(), found.end());
  }
  // Muster's own marker is part of the content: a disk that was re-imaged since the plan was made differs.
  if (auto marker = read_marker(disk)) {
    c.signatures.push_back({"muster_image", marker->digest, marker->slot + " " + marker->stage, 0, {}});
    c.marker = std::move(marker).value();
  }
  const bool known = !c.signatures.empty() || c.mbr || !c.gpt.disk_guid.empty();
  if (!known) TRY_(add_closer_look(disk, c));
  c.summary = summarize(c);
  c.hash = hash_of(disk, c);
  return c;
}

}  // namespace muster
