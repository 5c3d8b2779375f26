// write_image() over a root slot of muster's that holds a system already: what is right there stays, and
// nothing of it is fetched.
#include "agent/image/writer.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>

#include "agent/disk/marker.h"
#include "tests/unit/agent/slot_bench.h"

using namespace muster;

namespace {

using testing::Image;
using testing::kFrame;
using testing::kSlotDisk;
using testing::make_image;
using testing::MemorySource;

struct NoSeeder : Seeder {
  std::string stands = {};
  int looked = 0;
  std::string standing(const std::string&) override { return ++looked, stands; }
  std::optional<EspRoom> space = {};
  std::string asked = {};
  std::optional<EspRoom> room(const std::string&, const std::string& slot) override {
    return asked = slot, space;
  }
  std::function<Status()> drop = {};
  Status drop_overrides() override { return drop ? drop() : Status(Ok{}); }
  Status seed(const SeedRequest&) override { return Ok{}; }
  Status install_loader(const SeedRequest&) override { return Ok{}; }
};

// `from`, with these frames of `other`.
Image mixed(const Image& from, const Image& other, const std::set<uint32_t>& frames) {
  Image out = from;
  out.frames.clear();
  for (ImageFrame& f : out.manifest.frames) {
    if (f.zero) continue;
    const Image& source = frames.count(f.index) ? other : from;
    f = source.manifest.frames[f.index];
    const size_t at = size_t{f.index} * kFrame;
    out.raw.replace(at, f.raw_bytes, source.raw, at, f.raw_bytes);
    const std::string stored = source.frames.substr(f.offset, f.stored_bytes);
    f.offset = out.frames.size();
    out.frames += stored;
  }
  out.manifest.digest = manifest_digest(out.manifest);
  return out;
}

uint64_t stored_bytes(const Image& image, const std::set<uint32_t>& frames) {
  uint64_t sum = 0;
  for (const uint32_t index : frames) sum += image.manifest.frames[index].stored_bytes;
  return sum;
}

// A disk on which slot a holds `first`, and slot b, which stands, `second`: the next image goes to slot a.
struct TwoSlots {
  TempDir dir;
  const std::string path = dir.path("disk");
  DiskFacts facts;
  NoSeeder seeder;
  MemorySource::Served served;
  const Image first = make_image(1), second = make_image(2);

  TwoSlots() {
    dir.write("disk", "");
    std::filesystem::resize_file(path, kSlotDisk);
    facts.name = "nvme0n1";
    facts.serial = "OS0001";
    facts.model = "MUSTER LAB OS";
    facts.size_bytes = kSlotDisk;
    facts.transport = "nvme";
    const auto fresh = write(first, probe_disk(disk())->hash);
    REQUIRE(fresh.ok());
    REQUIRE(fresh->slot == "a");
    CHECK(fresh->kept == 0);
    const auto other = write(second);
    REQUIRE(other.ok());
    REQUIRE(other->slot == "b");
    CHECK(other->kept == 0);
    served.frame_bytes = 0;
  }
  BlockDevice disk() const { return BlockDevice::open(path, BlockDevice::Access::read).value(); }
  uint64_t start(const std::string& slot) const {
    return slot_partition(read_gpt(disk()).value(), slot)->start;
  }
  std::string content(const std::string& slot) const {
    return disk().read_at(start(slot), first.raw.size()).value();
  }
  void damage(uint64_t at, const std::string& bytes) const {
    std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(static_cast<std::streamoff>(start("a") + at));
    f << bytes;
  }
  // Without a hash: as the node's own.
  Result<WriteResult> write(const Image& image, const std::string& approved = "") {
    served.files = {{"/images/tiny/manifest.json", to_text(image.manifest)},
                    {"/images/tiny/frames.zst", image.frames},
                    {"/images/tiny/vmlinuz", "KERNEL"},
                    {"/images/tiny/BOOTX64.EFI", "LOADER"}};
    wire::ImageJob job;
    job.image = "tiny";
    job.digest = image.manifest.digest;
    job.manifest_path = "/images/tiny/manifest.json";
    job.base_url = "http://10.20.0.1:7480";
    job.disk.serial = facts.serial;
    job.disk.model = facts.model;
    job.disk.size_bytes = kSlotDisk;
    job.content_hash = approved;
    job.allow_ours = approved.empty();
    job.cluster = "gaggle";
    job.authority = "sha256:ca";
    job.hostname = "node01";
    job.address_cidr = "10.20.0.11/24";
    job.mac = "52:54:00:00:01:01";
    WriteDeps deps;
    deps.disks = [this] { return std::vector<DiskFacts>{facts}; };
    deps.device = [this](const std::string&) { return path; };
    deps.source = [this]() -> Result<std::unique_ptr<BlobSource>> {
      return std::unique_ptr<BlobSource>(std::make_unique<MemorySource>(served));
    };
    deps.seeder = &seeder;
    return write_image(job, deps, {.threads = 2, .request_bytes = kFrame, .attempts = 2, .backoff = 0});
  }
  // Written again: of this image these frames alone were fetched.
  void fetches(const Image& image, const std::set<uint32_t>& frames) {
    const auto r = write(image);
    REQUIRE(r.ok());
    CHECK(r->slot == "a");
    CHECK_FALSE(r->fresh_layout);
    CHECK_FALSE(r->resumed);
    CHECK_FALSE(r->finished_before);
    CHECK(r->fetched == frames.size());
    CHECK(r->kept == 14 - frames.size());
    CHECK(r->zero == 2);
    CHECK(r->fetched_bytes == stored_bytes(image, frames));
    CHECK(served.frame_bytes == r->fetched_bytes);
    CHECK(content("a") == image.raw);
    CHECK(content("b") == second.raw);
    CHECK(read_marker(disk())->current == "a");
    CHECK(read_marker(disk())->slots.at("a").stage == kSlotWritten);
  }
};

}  // namespace

TEST_CASE("a re-image through the RAM system fetches the frames that differ, and no other") {
  TwoSlots b;
  const Image third = make_image(3);
  SECTION("two of them") {
    const Image next = mixed(b.first, third, {2, 9});
    REQUIRE(next.manifest.digest != b.first.manifest.digest);
    b.fetches(next, {2, 9});
  }
  SECTION("neighbours, and the last, which is shorter") {
    b.fetches(mixed(b.first, third, {0, 1, 15}), {0, 1, 15});
  }
  SECTION("none: the image that was there before the last one") { b.fetches(b.first, {}); }
  SECTION("all of them") { b.fetches(third, {0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}); }
}

TEST_CASE("a frame that was damaged on the disk is fetched, whatever the marker says of the slot") {
  TwoSlots b;
  REQUIRE(read_marker(b.disk())->slots.at("a").digest == b.first.manifest.digest);
  SECTION("one byte") {
    std::string byte = b.first.raw.substr(7 * kFrame + 100, 1);
    byte[0] = static_cast<char>(byte[0] ^ 1);
    b.damage(7 * kFrame + 100, byte);
    b.fetches(b.first, {7});
  }
  SECTION("at the end of one and the beginning of the next") {
    b.damage(7 * kFrame - 8, std::string(16, '?'));
    b.fetches(b.first, {6, 7});
  }
  SECTION("one that reads as zeros") {
    b.damage(11 * kFrame, std::string(kFrame, '\0'));
    b.fetches(b.first, {11});
  }
  SECTION("one that is to be zero: nothing is fetched for it") {
    b.damage(3 * kFrame + 5, "journal");
    b.damage(5 * kFrame - 1, "x");
    b.fetches(b.first, {});
  }
  SECTION("beside frames of another build") {
    b.damage(5 * kFrame + 10, "journal");
    b.fetches(mixed(b.first, make_image(3), {2}), {2, 5});
  }
}

TEST_CASE("what is kept is kept by its content: a re-image that was cut off knows its frames as well") {
  TwoSlots b;
  const Image next = mixed(b.first, make_image(3), {2, 9, 10});
  b.served.bad = {"/images/tiny/frames.zst"};
  REQUIRE_FALSE(b.write(next).ok());
  CHECK(read_marker(b.disk())->stage == "writing");
  CHECK(b.content("a") == b.first.raw);  // nothing that is wrong was written
  b.served.bad.clear();
  b.served.frame_bytes = 0;
  const auto r = b.write(next);
  REQUIRE(r.ok());
  CHECK(r->resumed);
  CHECK(r->slot == "a");
  CHECK(r->fetched == 3);
  CHECK(r->kept == 11);
  CHECK(b.served.frame_bytes == stored_bytes(next, {2, 9, 10}));
  CHECK(b.content("a") == next.raw);
  CHECK(b.content("b") == b.second.raw);
}

TEST_CASE("the RAM system writes the slot that loader.conf does not name, whatever the marker says") {
  TwoSlots b;
  const Image third = make_image(3);
  REQUIRE(read_marker(b.disk())->current == "b");
  std::string written = "a";
  SECTION("no loader.conf is found: the marker counts") {}
  SECTION("they agree") { b.seeder.stands = "b"; }
  SECTION("a commit was cut off before the marker") { b.seeder.stands = "a", written = "b"; }
  const std::string stays = written == "a" ? "b" : "a";
  const Image& kept = stays == "a" ? b.first : b.second;
  b.served.bad = {"/images/tiny/frames.zst"};
  REQUIRE_FALSE(b.write(third).ok());
  CHECK(b.content(stays) == kept.raw);
  b.served.bad.clear();
  const auto r = b.write(third);
  REQUIRE(r.ok());
  CHECK(r->slot == written);
  CHECK(b.content(written) == third.raw);
  CHECK(b.content(stays) == kept.raw);
  CHECK(read_marker(b.disk())->current == written);
}

TEST_CASE("kernel and initrd that do not fit on the ESP are refused before the root slot is written") {
  TwoSlots b;
  const std::string before = b.content("a");
  const uint64_t serial = read_marker(b.disk())->serial;
  const Image next = make_image(3);
  b.seeder.space = EspRoom{4u << 20, next.manifest.boot_size() - 1, 0};
  CHECK(b.write(next).error().code == Code::conflict);
  CHECK(b.seeder.asked == "a");
  CHECK(b.content("a") == before);
  CHECK(read_marker(b.disk())->serial == serial);
  b.seeder.space->ready += 1;
  REQUIRE(b.write(next).ok());
  CHECK(b.content("a") == next.raw);
  const SlotNote note = read_marker(b.disk())->slots.at("a");
  CHECK(note.kernel.size == next.manifest.file("kernel")->size);
  CHECK(note.kernel.sha256 == next.manifest.file("kernel")->sha256);
}

TEST_CASE("a disk that is not this node's is not looked into for what it starts") {
  TwoSlots b;
  b.seeder.stands = "a";
  {
    const auto disk = BlockDevice::open(b.path, BlockDevice::Access::exclusive_write);
    REQUIRE(disk.ok());
    ImageMarker m = read_marker(*disk).value();
    m.node = "node02";
    REQUIRE(write_marker(*disk, m).ok());
  }
  const auto r = b.write(make_image(3), probe_disk(b.disk())->hash);
  REQUIRE(r.ok());
  CHECK(r->fresh_layout);
  CHECK(b.seeder.looked == 1);  // by the second write of before
}

TEST_CASE(
    "the firmware's own choice of an entry goes before a slot is written, and never by a refused order") {
  TwoSlots b;
  const uint64_t serial = read_marker(b.disk())->serial;
  int requested = 0;
  Status answer = Ok{};
  b.seeder.drop = [&] { return ++requested, answer; };
  SECTION("it goes") {
    REQUIRE(b.write(make_image(3)).ok());
    CHECK(requested == 1);
  }
  SECTION("it stays: nothing is written") {
    answer = fail(Code::conflict, "it stays");
    CHECK(b.write(make_image(3)).error().code == Code::conflict);
    CHECK(requested == 1);
    CHECK(read_marker(b.disk())->serial == serial);
    CHECK(b.content("a") == b.first.raw);
    CHECK(b.served.frame_bytes == 0);
  }
  SECTION("the disk is not what was approved") {
    CHECK(b.write(make_image(3), "sha256:other").error().code == Code::denied);
    CHECK(requested == 0);
  }
}
