#include "controller/image/transfer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "base/digest.h"
#include "base/json.h"
#include "controller/image/folder.h"
#include "controller/image/old_builds.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

namespace fs = std::filesystem;

std::string slurp(const std::string& path) { return Files("/").read(path).value_or("?"); }

std::set<std::string> names_in(const std::string& folder) {
  const auto names = Files("/").list(folder);
  return {names.begin(), names.end()};
}

void put(const std::string& path, const std::string& content, unsigned mode = 0644) {
  REQUIRE(Files("/").write(path, content, mode).ok());
}

std::string noise(size_t size) {
  std::string out;
  uint32_t state = 1;
  for (size_t i = 0; i < size; ++i) out += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return out;
}

// A small image as a build leaves it: three frames, the middle one of zeros only.
ImageInfo make_image(const std::string& state, const std::string& name,
                     const std::string& kernel = "kernel") {
  const std::string stage = state + "/images/" + name + "/stage";
  put(stage + "/root",
      noise(kFrameSize) + std::string(kFrameSize, '\0') + noise(5000) + std::string(3192, 'x'));
  auto m = write_frames(stage + "/root", stage + "/frames.zst", 1);
  REQUIRE(m.ok());
  fs::remove(stage + "/root");
  put(stage + "/vmlinuz", kernel);
  put(stage + "/BOOTX64.EFI", "loader");
  for (const auto& [role, file] : {std::pair{"kernel", "vmlinuz"}, std::pair{"bootloader", "BOOTX64.EFI"}})
    m->files.push_back({role, file, *sha256_file(stage + "/" + file), fs::file_size(stage + "/" + file)});
  put(stage + "/ram/usr/sbin/tool", "tool", 0755);
  REQUIRE(Files("/").symlink("/usr/sbin/tool", stage + "/ram/usr/sbin/other").ok());
  REQUIRE(Files("/").make_directories(stage + "/ram/proc").ok());
  put(stage + "/build.json", R"({"key":"k1"})");
  put(stage + "/ram-initrd", "made by the agent of this controller");
  m->name = name;
  m->digest = manifest_digest(*m);
  put(stage + "/manifest.json", to_text(*m));
  const std::string version = m->digest.substr(7), folder = state + "/images/" + name;
  fs::rename(stage, folder + "/" + version);
  REQUIRE(make_current(folder, version).ok());
  return {name, m->digest, folder + "/" + version, *m, false};
}

Result<ImageInfo> take(const std::string& state, const std::string& path) {
  return import_image(state, path, *make_process(), {});
}

Result<ImageInfo> give(const std::string& state, const std::string& name, const std::string& path) {
  return export_image(state, name, path, *make_process(), {});
}

// An image on one controller, its archive, the archive unpacked, and the folder of another controller.
struct TwoControllers {
  TempDir dir;
  std::string here = dir.path("here"), there = dir.path("there"), file = dir.path("cpu.image"),
              open = dir.path("open");
  ImageInfo image = make_image(here, "cpu");

  TwoControllers() {
    REQUIRE(give(here, "cpu", file).ok());
    REQUIRE(Files("/").make_directories(open).ok());
    REQUIRE(run_ok(*make_process(), {.argv = {"tar", "-xf", file, "-C", open}}).ok());
  }
  Json head() const { return Json::parse(slurp(open + "/muster-image.json")); }
  void write_head(const Json& json) const { put(open + "/muster-image.json", json.dump()); }
  // Nothing that a boot, a list or a next import could take for an image.
  void check_nothing_there() const {
    CHECK(list_images(there).empty());
    for (const auto& name : Files("/").list(there + "/images/cpu")) CHECK(name == ".lock");
  }
  void check_refused(Code code, const std::string& words) const {
    const auto got = take(there, open);
    REQUIRE_FALSE(got.ok());
    CHECK(got.error().code == code);
    INFO(got.error().message);
    CHECK(got.error().message.find(words) != std::string::npos);
    check_nothing_there();
  }
};

// tar may write no file larger than this: as on a disk that is full.
class SmallDisk : public Process {
 public:
  Result<Output> run(const Command& command) override {
    Command small = command;
    small.argv.insert(small.argv.begin(), {"prlimit", "--core=0", "--fsize=1000000"});
    return make_process()->run(small);
  }
};

}  // namespace

TEST_CASE("an exported image is the same one on another controller") {
  const TwoControllers c;
  std::vector<std::string> said;
  const auto got = import_image(c.there, c.file, *make_process(),
                                [&](const std::string& what, double) { said.push_back(what); });
  REQUIRE(got.ok());
  CHECK(got->digest == c.image.digest);
  CHECK_FALSE(got->reused);
  CHECK_FALSE(said.empty());
  const auto loaded = load_image(c.there, "cpu");
  REQUIRE(loaded.ok());
  CHECK(loaded->digest == c.image.digest);
  for (const char* name :
       {"manifest.json", "frames.zst", "vmlinuz", "BOOTX64.EFI", "build.json", "ram/usr/sbin/tool"})
    CHECK(slurp(loaded->folder + "/" + name) == slurp(c.image.folder + "/" + name));
  CHECK(fs::read_symlink(loaded->folder + "/ram/usr/sbin/other") == "/usr/sbin/tool");
  CHECK(fs::is_directory(loaded->folder + "/ram/proc"));
  struct stat st = {};
  REQUIRE(::stat((loaded->folder + "/ram/usr/sbin/tool").c_str(), &st) == 0);
  CHECK((st.st_mode & 07777) == 0755);
  // The other controller packs its own agent.
  CHECK_FALSE(fs::exists(loaded->folder + "/ram-initrd"));
  CHECK_FALSE(fs::exists(loaded->folder + "/muster-image.json"));
  CHECK(names_in(c.there + "/images/cpu") ==
        std::set<std::string>{".lock", "current", c.image.digest.substr(7)});
  // And it goes on from there.
  CHECK(give(c.there, "cpu", c.dir.path("again.image")).ok());
}

TEST_CASE("an unpacked archive and a compressed one are taken as well") {
  const TwoControllers c;
  CHECK(take(c.there, c.open).ok());
  REQUIRE(run_ok(*make_process(), {.argv = {"gzip", "-1", c.file}}).ok());
  CHECK(take(c.dir.path("third"), c.file + ".gz").ok());
}

TEST_CASE("importing what is there already writes nothing but makes it the present version") {
  const TwoControllers c;
  REQUIRE(take(c.there, c.file).ok());
  const std::string frames = c.there + "/images/cpu/" + c.image.digest.substr(7) + "/frames.zst";
  struct stat before = {}, after = {};
  REQUIRE(::stat(frames.c_str(), &before) == 0);
  const ImageInfo newer = make_image(c.there, "cpu", "another kernel");
  REQUIRE(load_image(c.there, "cpu")->digest == newer.digest);
  const auto again = take(c.there, c.file);
  REQUIRE(again.ok());
  CHECK(again->reused);
  CHECK(load_image(c.there, "cpu")->digest == c.image.digest);
  REQUIRE(::stat(frames.c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK(before.st_mtime == after.st_mtime);
  // Damaged where it lies: said, not served.
  put(frames, "short");
  const auto damaged = take(c.there, c.file);
  REQUIRE_FALSE(damaged.ok());
  CHECK(damaged.error().code == Code::corrupt);
  CHECK(damaged.error().message.find("remove that folder") != std::string::npos);
}

TEST_CASE("an old build that was emptied is imported again, and stays as it is while that fails") {
  const TwoControllers c;
  REQUIRE(take(c.there, c.file).ok());
  const std::string folder = c.there + "/images/cpu/" + c.image.digest.substr(7);
  fs::last_write_time(folder + "/build.json",
                      fs::last_write_time(folder + "/build.json") - std::chrono::hours(24));
  for (size_t night = 0; night <= kKeptBuilds; ++night)
    make_image(c.there, "cpu", "kernel of night " + std::to_string(night));
  REQUIRE(empty_old_builds(c.there, "cpu", {}).value() == 1);
  REQUIRE_FALSE(has_content(folder));
  put(c.open + "/vmlinuz", "kerneL");
  CHECK(take(c.there, c.open).error().code == Code::corrupt);
  CHECK(names_in(folder) == std::set<std::string>{"build.json", "manifest.json"});
  const auto again = take(c.there, c.file);
  REQUIRE(again.ok());
  CHECK_FALSE(again->reused);
  CHECK(load_image(c.there, "cpu")->digest == c.image.digest);
  for (const char* name : {"frames.zst", "vmlinuz", "build.json", "ram/usr/sbin/tool"})
    CHECK(slurp(folder + "/" + name) == slurp(c.image.folder + "/" + name));
}

TEST_CASE("a damaged image is refused, named, and leaves nothing") {
  const TwoControllers c;
  SECTION("a frame") {
    std::string frames = slurp(c.open + "/frames.zst");
    frames[frames.size() - 10] ^= 1;
    put(c.open + "/frames.zst", frames);
    c.check_refused(Code::corrupt, "frame 2");
  }
  SECTION("frames cut short") {
    fs::resize_file(c.open + "/frames.zst", fs::file_size(c.open + "/frames.zst") - 1);
    c.check_refused(Code::corrupt, "frame 2");
  }
  SECTION("frames with something behind") {
    put(c.open + "/frames.zst", slurp(c.open + "/frames.zst") + "x");
    c.check_refused(Code::corrupt, "contains data after the last frame");
  }
  SECTION("the kernel") {
    put(c.open + "/vmlinuz", "kerneL");
    c.check_refused(Code::corrupt, "vmlinuz");
  }
  SECTION("a link where a file should be") {
    fs::remove(c.open + "/vmlinuz");
    REQUIRE(Files("/").symlink("/etc/hostname", c.open + "/vmlinuz").ok());
    c.check_refused(Code::corrupt, "vmlinuz");
  }
  SECTION("a tool of the RAM system") {
    put(c.open + "/ram/usr/sbin/tool", "toot", 0755);
    c.check_refused(Code::corrupt, "ram/usr/sbin/tool");
  }
  SECTION("a tool that became set-uid") {
    fs::permissions(c.open + "/ram/usr/sbin/tool", fs::perms(04755));
    c.check_refused(Code::corrupt, "ram/usr/sbin/tool");
  }
  SECTION("a tool too few") {
    fs::remove(c.open + "/ram/usr/sbin/other");
    c.check_refused(Code::corrupt, "ram/usr/sbin/other: missing");
  }
  SECTION("a tool too many") {
    put(c.open + "/ram/init2", "x");
    c.check_refused(Code::corrupt, "ram/init2: does not belong");
  }
  SECTION("a file too many") {
    put(c.open + "/ram-vmlinuz", "x");
    c.check_refused(Code::corrupt, "ram-vmlinuz: does not belong");
  }
}

TEST_CASE("an image whose manifest is not its own is refused") {
  const TwoControllers c;
  SECTION("changed by hand") {
    std::string text = slurp(c.open + "/manifest.json");
    text.replace(text.find("\"cpu\""), 5, "\"gpu\"");
    put(c.open + "/manifest.json", text);
    c.check_refused(Code::corrupt, "digest");
  }
  SECTION("of another image") {
    const ImageInfo other = make_image(c.dir.path("elsewhere"), "gpu");
    put(c.open + "/manifest.json", slurp(other.folder + "/manifest.json"));
    c.check_refused(Code::corrupt, "manifest belongs to gpu");
  }
  SECTION("of another format") {
    Json manifest = Json::parse(slurp(c.open + "/manifest.json"));
    manifest["format"] = 7;
    put(c.open + "/manifest.json", manifest.dump());
    c.check_refused(Code::invalid, "unknown format 7");
  }
  SECTION("missing") {
    fs::remove(c.open + "/manifest.json");
    c.check_refused(Code::corrupt, "manifest.json: missing");
  }
  SECTION("with a file name that tar would take for an option") {
    ImageManifest m = c.image.manifest;
    m.files.push_back({"initrd", "--checkpoint-action=exec=x", m.files[0].sha256, m.files[0].size});
    m.digest = manifest_digest(m);
    put(c.open + "/manifest.json", to_text(m));
    Json head = c.head();
    head["digest"] = m.digest;
    c.write_head(head);
    c.check_refused(Code::invalid, "not a file name");
  }
}

TEST_CASE("what is not an exported image, or of another version, is refused before anything is unpacked") {
  const TwoControllers c;
  Json head = c.head();
  SECTION("a later format") {
    head["format"] = 2;
    head["something"] = "new";
    c.write_head(head);
    c.check_refused(Code::invalid, "format 2 is unknown; this muster reads format 1");
  }
  SECTION("another RAM system") {
    head["ram_version"] = 99;
    c.write_head(head);
    c.check_refused(Code::invalid, "RAM system has version 99");
  }
  SECTION("a name that leads elsewhere") {
    head["name"] = "../pki";
    c.write_head(head);
    c.check_refused(Code::invalid, "not an image name");
  }
  SECTION("a digest that leads elsewhere") {
    head["digest"] = "sha256:../../x";
    c.write_head(head);
    c.check_refused(Code::invalid, "not a SHA-256");
  }
  SECTION("an image's folder as it lies on a controller") {
    fs::remove(c.open + "/muster-image.json");
    c.check_refused(Code::invalid, "muster image export");
  }
  SECTION("no archive") {
    put(c.dir.path("x"), "x");
    CHECK(take(c.there, c.dir.path("x")).error().code == Code::invalid);
    CHECK(take(c.there, c.dir.path("nothing")).error().code == Code::not_found);
    CHECK_FALSE(fs::exists(c.there));
  }
}

TEST_CASE("an archive that was cut short, and a full disk, change nothing") {
  const TwoControllers c;
  const ImageInfo older = make_image(c.there, "cpu", "older kernel");
  SECTION("cut short") {
    fs::resize_file(c.file, fs::file_size(c.file) / 2);
    CHECK_FALSE(take(c.there, c.file).ok());
  }
  SECTION("full while unpacking") {
    SmallDisk disk;
    const auto got = import_image(c.there, c.file, disk, {});
    REQUIRE_FALSE(got.ok());
    CHECK(got.error().message.find("unpacking") != std::string::npos);
  }
  SECTION("left by one that was killed") {
    put(c.there + "/images/cpu/.build-import-1/frames.zst", "half");
    CHECK_FALSE(take(c.there, c.dir.path("nothing")).ok());
    put(c.open + "/vmlinuz", "kerneL");
    CHECK_FALSE(take(c.there, c.open).ok());
  }
  CHECK(load_image(c.there, "cpu")->digest == older.digest);
  CHECK(names_in(c.there + "/images/cpu") ==
        std::set<std::string>{".lock", "current", older.digest.substr(7)});
}

TEST_CASE("an export leaves a whole file or none") {
  const TwoControllers c;
  const std::string out = c.dir.path("out");
  const auto nothing_left = [&] { return Files("/").list(out).empty(); };
  REQUIRE(Files("/").make_directories(out).ok());
  SmallDisk disk;
  CHECK_FALSE(export_image(c.here, "cpu", out + "/x", disk, {}).ok());
  CHECK(nothing_left());
  CHECK(give(c.here, "gpu", out + "/x").error().code == Code::not_found);
  CHECK(nothing_left());
  // Never over another file.
  CHECK(give(c.here, "cpu", c.file).error().code == Code::conflict);
  CHECK(take(c.there, c.file).ok());
  // Nor where a user's link leads.
  if (::geteuid() == 0) {
    REQUIRE(Files("/").symlink("out", c.dir.path("link")));
    REQUIRE(::lchown(c.dir.path("link").c_str(), 65534, 65534) == 0);
    CHECK(give(c.here, "cpu", c.dir.path("link/x")).error().code == Code::denied);
    CHECK(nothing_left());
  }
  // Nor of an image that is damaged where it lies.
  put(c.image.folder + "/BOOTX64.EFI", "loadeR");
  CHECK(give(c.here, "cpu", out + "/x").error().code == Code::corrupt);
  CHECK(nothing_left());
}

TEST_CASE("an image is not imported while it is being built") {
  const TwoControllers c;
  const auto lock = lock_image(c.there + "/images/cpu");
  REQUIRE(lock.ok());
  CHECK(take(c.there, c.file).error().code == Code::conflict);
}
