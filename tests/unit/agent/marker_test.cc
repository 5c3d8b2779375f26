// The marker's two copies: whatever write is torn, what is read is the state before or the state after.
#include "agent/disk/marker.h"

#include "base/digest.h"
#include "base/json.h"
#include "base/json_dump.h"
#include "tests/catch.h"
#include "tests/unit/agent/plain_disk.h"

using namespace muster;
using testing::Disk;

namespace {

constexpr size_t kSector = 512;

ImageMarker marker_of(const std::string& digest) {
  ImageMarker m{"node01", "done",   digest,      "a",         "a", "sha256:h",
                false,    "gaggle", "sha256:ca", "1/n/image", {}};
  m.slots["a"] = {"tiny", digest, kSlotWritten, "10.20.0.11/24", "1/n/image"};
  return m;
}

void write(const Disk& d, const ImageMarker& m) {
  const auto disk = d.open(BlockDevice::Access::exclusive_write);
  REQUIRE(write_marker(disk, m));
}

std::string copy_at(const Disk& d, uint64_t at) { return d.open().read_at(at, kMarkerSize).value(); }

// As versions wrote it that knew one copy.
std::string old_block(const std::string& slot, const std::string& stage, const std::string& digest) {
  const std::string body = dump_json(Json{{"node", "node01"},
                                          {"stage", stage},
                                          {"digest", digest},
                                          {"slot", slot},
                                          {"current", "a"},
                                          {"approved", ""},
                                          {"fresh", false}});
  std::string block = "muster-image " + sha256(body) + "\n" + body;
  block.resize(kMarkerSize, '\0');
  return block;
}

}  // namespace

TEST_CASE("a marker is written twice, its notes of both slots too", "[marker]") {
  Disk d;
  ImageMarker m = marker_of("sha256:1");
  m.slots["b"] = {"other", "sha256:2", kSlotWriting, "10.20.0.12/24", "2/n/write", true};
  write(d, m);
  CHECK(copy_at(d, kMarkerOffset) == copy_at(d, kSecondMarkerOffset));
  const auto read = read_marker(d.open());
  REQUIRE(read);
  REQUIRE(read->slots.size() == 2);
  CHECK(read->slots.at("b").image == "other");
  CHECK(read->slots.at("b").digest == "sha256:2");
  CHECK(read->slots.at("b").stage == kSlotWriting);
  CHECK(read->slots.at("b").address == "10.20.0.12/24");
  CHECK(read->slots.at("b").order == "2/n/write");
  CHECK(read->slots.at("b").trial);
  CHECK_FALSE(read->slots.at("a").trial);
  const uint64_t before = read->serial;
  write(d, *read);
  CHECK(read_marker(d.open())->serial == before + 1);
}

TEST_CASE("a write of the marker that is torn at any sector leaves the one before or the one after",
          "[marker]") {
  Disk whole;
  write(whole, marker_of("sha256:1"));
  const std::string before = copy_at(whole, kMarkerOffset);
  write(whole, marker_of("sha256:2"));
  const std::string after = copy_at(whole, kMarkerOffset);
  REQUIRE(before != after);
  struct Row {
    uint64_t torn, other;
    bool other_is_new;
  };
  // The second copy is written first.
  for (const Row row :
       {Row{kSecondMarkerOffset, kMarkerOffset, false}, Row{kMarkerOffset, kSecondMarkerOffset, true}}) {
    for (size_t cut = 0; cut <= kMarkerSize; cut += kSector) {
      CAPTURE(row.torn, cut);
      Disk d;
      d.put(row.other, row.other_is_new ? after : before);
      d.put(row.torn, after.substr(0, cut) + before.substr(cut));
      const auto read = read_marker(d.open());
      REQUIRE(read);
      CHECK((read->digest == "sha256:1" || read->digest == "sha256:2"));
      if (row.other_is_new) CHECK(read->digest == "sha256:2");
      // Sectors may come onto the disk in any order, or as rubbish.
      d.put(row.torn + cut - (cut == kMarkerSize ? kSector : 0), std::string(kSector, '\x5a'));
      const auto damaged = read_marker(d.open());
      REQUIRE(damaged);
      CHECK((damaged->digest == "sha256:1" || damaged->digest == "sha256:2"));
      if (row.other_is_new || cut == 0)
        CHECK(damaged->digest == (row.other_is_new ? "sha256:2" : "sha256:1"));
      // The next one counts on from there.
      write(d, marker_of("sha256:3"));
      CHECK(read_marker(d.open())->digest == "sha256:3");
    }
  }
}

TEST_CASE("a marker of a version that knew one copy and no slots is read, and is followed by two",
          "[marker]") {
  Disk d;
  d.put(kMarkerOffset, old_block("a", "done", "sha256:1"));
  auto read = read_marker(d.open());
  REQUIRE(read);
  CHECK(read->serial == 0);
  REQUIRE(read->slots.size() == 1);
  CHECK(read->slots.at("a").stage == kSlotWritten);
  CHECK(read->slots.at("a").digest == "sha256:1");
  CHECK_FALSE(read->slots.at("a").trial);  // whatever it was: it was not noted
  write(d, *read);
  d.put(kMarkerOffset, std::string(kMarkerSize, '\xff'));
  CHECK(read_marker(d.open())->digest == "sha256:1");
  // Written once more by the old version: the second copy knows nothing of that.
  d.put(kMarkerOffset, old_block("b", "writing", "sha256:2"));
  read = read_marker(d.open());
  REQUIRE(read);
  CHECK(read->digest == "sha256:2");
  CHECK(read->slots.at("b").stage == kSlotWriting);
  write(d, *read);
  d.put(kMarkerOffset, std::string(kMarkerSize, '\0'));
  CHECK(read_marker(d.open())->digest == "sha256:2");
}

TEST_CASE("a marker that does not fit changes nothing", "[marker]") {
  Disk d;
  write(d, marker_of("sha256:1"));
  ImageMarker m = marker_of("sha256:2");
  m.slots["b"].image = std::string(kMarkerSize, 'x');
  const auto disk = d.open(BlockDevice::Access::exclusive_write);
  CHECK(write_marker(disk, m).error().code == Code::invalid);
  CHECK(read_marker(disk)->digest == "sha256:1");
}
