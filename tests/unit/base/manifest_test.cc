#include "base/manifest.h"

#include "base/digest.h"
#include "base/json.h"
#include "tests/catch.h"

using namespace muster;

namespace {

ImageManifest sample() {
  ImageManifest m;
  m.name = "tiny";
  m.os = "Debian";
  m.kernel = "6.1";
  m.frame_size = 4096;
  m.raw_size = 3 * 4096 - 100;
  m.frames = {{0, 0, 4096, 6, sha256("frame0"), sha256("raw0"), false},
              {1, 0, 4096, 0, "", "", true},
              {2, 6, 3996, 7, sha256("frame-2"), sha256("raw2"), false}};
  m.files = {{"kernel", "vmlinuz", sha256("k"), 1}};
  m.digest = manifest_digest(m);
  return m;
}

Code code_of(const ImageManifest& m) {
  ImageManifest signed_again = m;
  signed_again.digest = manifest_digest(m);
  const auto r = manifest_from_text(to_text(signed_again));
  return r ? Code::cancelled : r.error().code;
}

}  // namespace

TEST_CASE("a manifest survives the trip through text") {
  const auto back = manifest_from_text(to_text(sample()));
  REQUIRE(back);
  CHECK(to_text(*back) == to_text(sample()));
  CHECK(back->stored_size() == 13);
  REQUIRE(back->file("kernel"));
  CHECK(back->file("kernel")->name == "vmlinuz");
  CHECK(back->file("initrd") == nullptr);
}

TEST_CASE("a changed manifest is corrupt") {
  ImageManifest m = sample();
  m.frames[2].stored_sha256 = sha256("other");
  const auto r = manifest_from_text(to_text(m));
  REQUIRE_FALSE(r);
  CHECK(r.error().code == Code::corrupt);
}

TEST_CASE("a manifest that contradicts itself is invalid, whatever its digest") {
  const auto changed = [](auto&& change) {
    ImageManifest m = sample();
    change(m);
    return code_of(m);
  };
  CHECK(changed([](auto&) {}) == Code::cancelled);  // the sample itself is fine
  CHECK(changed([](auto& m) { m.format = 2; }) == Code::invalid);
  CHECK(changed([](auto& m) { m.raw_size = UINT64_MAX, m.frames.clear(); }) == Code::invalid);
  CHECK(changed([](auto& m) { m.frames.pop_back(); }) == Code::invalid);
  CHECK(changed([](auto& m) { m.frames[2].offset = 5; }) == Code::invalid);
  CHECK(changed([](auto& m) { m.frames[2].raw_bytes = 4096; }) == Code::invalid);
  CHECK(changed([](auto& m) { m.frames[2].stored_bytes = 1 << 30; }) == Code::invalid);
  CHECK(changed([](auto& m) { m.frames[1].stored_bytes = 5; }) == Code::invalid);
  CHECK(changed([](auto& m) { m.frame_size = 1 << 30; }) == Code::invalid);
  CHECK(changed([](auto& m) { m.frames[0].raw_sha256 = "x"; }) == Code::invalid);
  CHECK(changed([](auto& m) { m.files[0].name = "../vmlinuz"; }) == Code::invalid);
}

TEST_CASE("an unknown key in a manifest is invalid") {
  Json j = Json::parse(to_text(sample()));
  j["surprise"] = 1;
  const auto r = manifest_from_text(j.dump());
  REQUIRE_FALSE(r);
  CHECK(r.error().code == Code::invalid);
}

TEST_CASE("a stored frame is checked by length and content") {
  const ImageManifest m = sample();
  CHECK(check_stored_frame(m.frames[0], "frame0"));
  CHECK(check_stored_frame(m.frames[0], "frameX").error().code == Code::corrupt);
  CHECK(check_stored_frame(m.frames[0], "frame").error().code == Code::corrupt);
}
