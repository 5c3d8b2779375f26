// write_image() against a sparse file as the disk and a loopback HTTP server as the controller.
#include "agent/image/writer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <utility>

#include "agent/disk/block_device.h"
#include "agent/disk/marker.h"
#include "agent/image/image_job.h"
#include "agent/image/layout.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/kernel_line.h"
#include "sys/http/http.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/agent/tiny_image.h"

using namespace muster;

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kDiskSize = 1024 * kMiB;
using testing::Image;
using testing::kFrame;
using testing::make_image;
using testing::noise;

// Serves one image; counts and optionally damages what it serves.
class Controller {
 public:
  explicit Controller(const Image& image) : image_(image) {
    auto server = start_http_server({}, [this](HttpRequest r, ResponderPtr out) { out->respond(answer(r)); });
    REQUIRE(server);
    server_ = std::move(server).value();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

  std::set<uint32_t> served() {  // frames handed out
    const std::lock_guard lock(mutex_);
    return served_;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    served_.clear();
  }
  std::atomic<int> refuse_after{-1};     // answer 404 to range requests from the nth on
  std::atomic<int> corrupt_frame{-1};    // flip a byte in this frame ...
  std::atomic<int> corrupt_times{1000};  // ... so often

 private:
  HttpResponse answer(const HttpRequest& r) {
    if (r.path == "/images/tiny/manifest.json") return HttpResponse::text(200, to_text(image_.manifest));
    if (r.path == "/images/tiny/vmlinuz") return HttpResponse::text(200, "KERNEL");
    if (r.path == "/images/tiny/BOOTX64.EFI") return HttpResponse::text(200, "LOADER");
    const auto range = r.headers.find("Range");
    if (r.path != "/images/tiny/frames.zst" || range == r.headers.end()) return HttpResponse::text(404, "");
    if (refuse_after >= 0 && requests_++ >= refuse_after) return HttpResponse::text(404, "");
    const size_t from = std::stoull(range->second.substr(6)),
                 to = std::stoull(range->second.substr(range->second.find('-') + 1));
    HttpResponse out = HttpResponse::text(206, image_.frames.substr(from, to - from + 1));
    const std::lock_guard lock(mutex_);
    for (const auto& f : image_.manifest.frames) {
      if (f.zero || f.offset < from || f.offset > to) continue;
      served_.insert(f.index);
      if (static_cast<int>(f.index) == corrupt_frame && corrupt_times-- > 0)
        out.body[f.offset - from + 5] ^= 1;
    }
    return out;
  }

  const Image& image_;
  std::mutex mutex_;
  std::set<uint32_t> served_;
  std::atomic<int> requests_{0};
  std::unique_ptr<HttpServer> server_;
};

// Records its calls; changes nothing. Optionally fails.
struct FakeSeeder : Seeder {
  std::vector<std::string> calls;
  bool fail_seed = false;
  Status seed(const SeedRequest& r) override {
    calls.push_back("seed " + r.slot + (r.fresh ? " fresh" : ""));
    return fail_seed ? Status(fail(Code::failed, "power cut")) : Status(Ok{});
  }
  Status install_loader(const SeedRequest& r) override {
    calls.push_back("loader " + r.slot + " " + r.files.at("kernel"));
    return Ok{};
  }
};

class Bench {
 public:
  Bench() {
    char name[] = "/tmp/muster-disk-XXXXXX";
    const int fd = ::mkstemp(name);
    path_ = name;
    REQUIRE(::ftruncate(fd, static_cast<off_t>(kDiskSize)) == 0);
    ::close(fd);
    facts.name = "nvme0n1";
    facts.serial = "OS0001";
    facts.model = "MUSTER LAB OS";
    facts.size_bytes = kDiskSize;
    facts.transport = "nvme";
  }
  ~Bench() { std::filesystem::remove(path_); }

  const std::string& path() const { return path_; }
  BlockDevice disk() const { return BlockDevice::open(path_, BlockDevice::Access::read).value(); }
  void put(uint64_t at, const std::string& bytes) {
    std::fstream f(path_, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(static_cast<std::streamoff>(at));
    f << bytes;
  }
  std::string content_hash() const { return probe_disk(disk())->hash; }
  // Digest of every byte that is not a hole, and of where it is.
  std::string everything() const {
    const int fd = ::open(path_.c_str(), O_RDONLY);
    Sha256 h;
    const auto d = disk();
    for (off_t at = 0; (at = ::lseek(fd, at, SEEK_DATA)) >= 0;) {
      const off_t end = ::lseek(fd, at, SEEK_HOLE);
      h.update(std::to_string(at) + ":");
      h.update(d.read_at(static_cast<uint64_t>(at), static_cast<size_t>(end - at)).value());
      at = end;
    }
    ::close(fd);
    return h.finish();
  }
  std::string slot(const std::string& name, size_t size) const {
    const auto d = disk();
    return d.read_at(slot_partition(read_gpt(d).value(), name)->start, size).value();
  }

  wire::ImageJob job(const Controller& c, const Image& i) const {
    wire::ImageJob j;
    j.image = "tiny";
    j.digest = i.manifest.digest;
    j.manifest_path = "/images/tiny/manifest.json";
    j.base_url = c.url();
    j.disk.serial = "OS0001";
    j.disk.model = "MUSTER LAB OS";
    j.disk.size_bytes = kDiskSize;
    j.content_hash = content_hash();
    j.cluster = "gaggle";
    j.authority = "sha256:ca-of-gaggle";
    j.hostname = "node01";
    j.address_cidr = "10.20.0.11/24";
    j.mac = "52:54:00:00:01:01";
    return j;
  }
  Result<WriteResult> write(const wire::ImageJob& j) {
    WriteDeps deps;
    deps.disks = [this] { return std::vector<DiskFacts>{facts}; };
    deps.device = [this](const std::string&) { return path_; };
    deps.source = [&j] { return http_source(j.base_url); };
    deps.seeder = &seeder;
    deps.order = order;
    return write_image(j, deps, {.threads = threads, .request_bytes = kFrame, .attempts = 3, .backoff = 0});
  }

  DiskFacts facts;
  FakeSeeder seeder;
  std::string order = {};
  int threads = 2;

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("a blank disk gets the layout and the image in slot a; the next image goes to slot b") {
  Bench b;
  const Image first = make_image(1), second = make_image(2);
  {
    Controller c(first);
    const auto r = b.write(b.job(c, first));
    REQUIRE(r);
    CHECK(r->slot == "a");
    CHECK(r->fresh_layout);
    CHECK(r->fetched == 14);
    CHECK(r->zero == 2);
  }
  CHECK(b.slot("a", first.raw.size()) == first.raw);
  CHECK(b.seeder.calls == std::vector<std::string>{"seed a fresh", "loader a KERNEL"});
  const auto gpt = read_gpt(b.disk());
  REQUIRE(gpt);
  CHECK(is_layout(*gpt));
  CHECK(read_marker(b.disk())->current == "a");
  const auto state = *gpt->named("muster-state");
  b.put(state.start + 2 * kMiB, "PRECIOUS");

  Controller c(second);
  const auto r = b.write(b.job(c, second));
  REQUIRE(r);
  CHECK(r->slot == "b");
  CHECK_FALSE(r->fresh_layout);
  CHECK(b.slot("b", second.raw.size()) == second.raw);
  CHECK(b.slot("a", first.raw.size()) == first.raw);
  CHECK(b.seeder.calls.back() == "loader b KERNEL");
  CHECK(b.disk().read_at(state.start + 2 * kMiB, 8).value() == "PRECIOUS");
  CHECK(read_gpt(b.disk())->disk_guid == gpt->disk_guid);
  CHECK(read_marker(b.disk())->stage == "done");
}

TEST_CASE("the disk that a node starts from is found by what muster noted on it, and by nothing else") {
  Bench b, other;
  const Image image = make_image(1);
  Controller c(image);
  other.facts.name = "nvme1n1";
  bool both = false;
  WriteDeps deps;
  deps.disks = [&] { return std::vector<DiskFacts>{other.facts, b.facts}; };
  deps.device = [&](const std::string& name) { return name == "nvme0n1" || both ? b.path() : other.path(); };
  const auto find = [&](const std::string& node, const std::string& digest) {
    return find_own_disk(deps, node, digest);
  };
  CHECK(find("node01", image.manifest.digest).error().code == Code::not_found);  // blank
  REQUIRE(b.write(b.job(c, image)));
  const auto found = find("node01", image.manifest.digest);
  REQUIRE(found.ok());
  CHECK(found->device == b.path());
  CHECK(found->state == static_cast<uint32_t>(read_gpt(b.disk())->named("muster-state")->number));
  CHECK(find("node02", image.manifest.digest).error().code == Code::not_found);
  CHECK(find("node01", "sha256:other").error().code == Code::not_found);
  both = true;  // a second one that says the same
  CHECK(find("node01", image.manifest.digest).error().code == Code::conflict);
  both = false;
  b.seeder.fail_seed = true;  // half done
  CHECK_FALSE(b.write(b.job(c, image)));
  CHECK(find("node01", image.manifest.digest).error().code == Code::not_found);
}

TEST_CASE("zero frames become zeros even where the disk held something") {
  Bench b;
  const Image i = make_image(1);
  // Where slot a will be: after 4 MiB of room and the ESP.
  b.put(260 * kMiB, noise(i.raw.size(), 77));
  Controller c(i);
  REQUIRE(b.write(b.job(c, i)));
  REQUIRE(slot_partition(read_gpt(b.disk()).value(), "a")->start == 260 * kMiB);
  CHECK(b.slot("a", i.raw.size()) == i.raw);
}

TEST_CASE("a broken transfer goes on from what is on the disk") {
  Bench b;
  b.threads = 1;
  const Image i = make_image(1);
  Controller c(i);
  const auto job = b.job(c, i);  // approved while the disk was blank
  c.refuse_after = 6;
  const auto broken = b.write(job);
  REQUIRE_FALSE(broken);
  CHECK(broken.error().code == Code::not_found);
  CHECK(b.seeder.calls.empty());
  CHECK(read_marker(b.disk())->stage == "writing");
  REQUIRE(c.served().size() == 6);

  c.refuse_after = -1;
  c.forget();
  const auto r = b.write(job);
  REQUIRE(r);
  CHECK(r->resumed);
  CHECK(r->slot == "a");
  CHECK(r->kept == 6);
  CHECK(r->fetched == 8);
  CHECK(c.served().size() == 8);
  CHECK(b.slot("a", i.raw.size()) == i.raw);
  CHECK(b.seeder.calls == std::vector<std::string>{"seed a fresh", "loader a KERNEL"});
}

TEST_CASE("a cut while seeding repairs what seeding had changed and starts over on the same slot") {
  Bench b;
  const Image i = make_image(1);
  Controller c(i);
  const auto job = b.job(c, i);
  b.seeder.fail_seed = true;
  REQUIRE_FALSE(b.write(job));
  const auto start = slot_partition(read_gpt(b.disk()).value(), "a")->start;
  b.put(start + 5 * kFrame + 10, "journal");
  b.put(start + 3 * kFrame + 10, "journal");  // in a zero frame
  b.seeder.fail_seed = false;
  c.forget();
  const auto r = b.write(job);
  REQUIRE(r);
  CHECK(c.served() == std::set<uint32_t>{5});
  CHECK(b.slot("a", i.raw.size()) == i.raw);
  CHECK(b.seeder.calls == std::vector<std::string>{"seed a fresh", "seed a fresh", "loader a KERNEL"});
}

TEST_CASE("a damaged frame is fetched again, and refused when it stays damaged; it is never written") {
  Bench b;
  b.threads = 1;
  const Image i = make_image(1);
  Controller c(i);
  c.corrupt_frame = 7;
  c.corrupt_times = 1;
  SECTION("once") {
    REQUIRE(b.write(b.job(c, i)));
    CHECK(b.slot("a", i.raw.size()) == i.raw);
  }
  SECTION("for good") {
    c.corrupt_times = 1000;
    const auto r = b.write(b.job(c, i));
    REQUIRE_FALSE(r);
    CHECK(r.error().code == Code::corrupt);
    CHECK(b.slot("a", i.raw.size()).substr(7 * kFrame, kFrame) == std::string(kFrame, '\0'));
    CHECK(b.seeder.calls.empty());
    CHECK(read_marker(b.disk())->current.empty());
  }
}

TEST_CASE("the wrong disk is refused and stays as it was, byte for byte") {
  Bench b;
  b.put(0, noise(3 * kMiB, 9));
  const Image i = make_image(1);
  Controller c(i);
  const auto job = b.job(c, i);
  const std::string before = b.everything();
  const auto refused = [&](Code code) {
    const auto r = b.write(job);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == code);
    CHECK(b.everything() == before);
    CHECK(c.served().empty());
    CHECK(b.seeder.calls.empty());
  };
  SECTION("another serial") {
    b.facts.serial = "OS0002";
    refused(Code::not_found);
  }
  SECTION("another size") {
    b.facts.size_bytes += 512;
    refused(Code::conflict);
  }
  SECTION("another model") {
    b.facts.model = "OTHER";
    refused(Code::conflict);
  }
  SECTION("in use") {
    b.facts.mounted = true;
    refused(Code::conflict);
  }
  SECTION("remote") {
    b.facts.transport = "nvme-tcp";
    refused(Code::denied);
  }
  SECTION("held by dm-multipath") {
    b.facts.multipath = "mpatha";
    refused(Code::denied);
  }
}

TEST_CASE("content that changed since approval is refused and stays as it was, byte for byte") {
  Bench b;
  const Image i = make_image(1);
  Controller c(i);
  auto job = b.job(c, i);
  std::string found = "ext2";
  SECTION("there is a file system") { b.put(0x438, "\x53\xef"); }
  SECTION("there is data behind a quiet beginning") { b.put(30 * kMiB, "data"), found = "unknown data"; }
  SECTION("a second superblock is left of one") {
    b.put(64 * kMiB + 64, "_BHRfS_M"), found = "remains of btrfs";
  }
  const std::string before = b.everything();
  for (const bool allow_ours : {false, true}) {
    job.allow_ours = allow_ours;  // "ours" does not cover what is not ours
    const auto r = b.write(job);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == Code::denied);
    CHECK(r.error().message.find(found) != std::string::npos);
  }
  job.content_hash.clear();  // approving nothing approves nothing
  CHECK(b.write(job).error().code == Code::denied);
  CHECK(b.everything() == before);
  CHECK(c.served().empty());
}

TEST_CASE("a node may re-image its own disk without a content hash, another node may not") {
  Bench b;
  const Image i = make_image(1);
  Controller c(i);
  REQUIRE(b.write(b.job(c, i)));
  auto job = b.job(c, i);
  job.content_hash.clear();
  job.allow_ours = true;
  job.hostname = "node02";
  CHECK(b.write(job).error().code == Code::denied);
  job.hostname = "node01";
  const auto r = b.write(job);
  REQUIRE(r);
  CHECK(r->slot == "b");
}

TEST_CASE("the disk of a node of the same name in another cluster is not this node's") {
  Bench b;
  const Image i = make_image(1), second = make_image(2);
  Controller first_controller(i), c(second);
  auto other = b.job(first_controller, i);
  other.cluster = "flock";
  REQUIRE(b.write(other));
  auto job = b.job(c, second);
  job.content_hash.clear();
  job.allow_ours = true;
  const std::string before = b.everything();
  const auto refused = b.write(job);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::denied);
  CHECK(refused.error().message.find("node node01 of cluster flock") != std::string::npos);
  CHECK(b.everything() == before);
  // Approved to be lost, it is lost: no slot and no state of it are kept.
  job.content_hash = b.content_hash();
  job.allow_ours = false;
  b.seeder.calls.clear();
  const auto written = b.write(job);
  REQUIRE(written);
  CHECK(written->fresh_layout);
  CHECK(written->slot == "a");
  CHECK(b.seeder.calls.front() == "seed a fresh");
  CHECK(read_marker(b.disk())->cluster == "gaggle");
}

TEST_CASE(
    "the disk of a node of the same name in a cluster of the same name of another controller is not this "
    "node's") {
  Bench b;
  const Image i = make_image(1), second = make_image(2);
  Controller first_controller(i), c(second);
  auto other = b.job(first_controller, i);
  other.authority = "sha256:ca-of-another-site";
  REQUIRE(b.write(other));
  auto job = b.job(c, second);
  job.content_hash.clear();
  job.allow_ours = true;
  const std::string before = b.everything();
  const auto refused = b.write(job);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::denied);
  CHECK(b.everything() == before);
  // Approved to be lost, it is lost: no slot and no state of it are kept.
  job.content_hash = b.content_hash();
  job.allow_ours = false;
  b.seeder.calls.clear();
  const auto written = b.write(job);
  REQUIRE(written);
  CHECK(written->fresh_layout);
  CHECK(b.seeder.calls.front() == "seed a fresh");
  CHECK(read_marker(b.disk())->authority == "sha256:ca-of-gaggle");
}

TEST_CASE(
    "a marker that names no cluster or no CA is this node's only where the controller says so, and names "
    "both "
    "from then on") {
  const auto unnamed = GENERATE(&wire::ImageJob::cluster, &wire::ImageJob::authority);
  Bench b;
  const Image i = make_image(1);
  Controller c(i);
  auto old = b.job(c, i);
  (old.*unnamed).clear();
  REQUIRE(b.write(old));
  auto job = b.job(c, i);
  SECTION("the controller imaged this node") {
    job.content_hash.clear();
    job.allow_ours = true;
    const auto written = b.write(job);
    REQUIRE(written);
    CHECK_FALSE(written->fresh_layout);
    CHECK(written->slot == "b");
  }
  SECTION("it did not, and the loss was approved") {
    const auto written = b.write(job);
    REQUIRE(written);
    CHECK(written->fresh_layout);
    CHECK(b.seeder.calls.back() == "loader a KERNEL");
  }
  CHECK(read_marker(b.disk())->cluster == "gaggle");
  CHECK(read_marker(b.disk())->authority == "sha256:ca-of-gaggle");
}

TEST_CASE("an order that has come to its end is not carried out again, and succeeds") {
  Bench b;
  const Image i = make_image(1);
  Controller c(i);
  auto job = b.job(c, i);
  b.order = work_of("1-18f/node01/image#1");
  REQUIRE(b.order == work_of("1-18f/node01/image#2"));
  REQUIRE(b.write(job));
  std::string before;
  const auto again = [&](const char* slot) {
    before = b.everything();
    b.seeder.calls.clear();
    c.forget();
    const auto r = b.write(job);
    REQUIRE(r);
    CHECK(r->finished_before);
    CHECK(r->slot == slot);
    CHECK(b.everything() == before);
    CHECK(b.seeder.calls.empty());
    CHECK(c.served().empty());
  };
  again("a");
  SECTION("by what was approved, where the order has another name") {
    b.order = "2-190/node01/image";  // its controller has a new database, with the plan of before
    again("a");
    b.order.clear();
    again("a");
  }
  SECTION("by its name, where nothing had to be approved") {
    job.content_hash.clear();
    job.allow_ours = true;
    b.order = "2-190/node01/image";
    const auto second = b.write(job);
    REQUIRE(second);
    CHECK_FALSE(second->finished_before);
    CHECK(second->slot == "b");
    again("b");
    b.order = "3-191/node01/image";  // asked for once more, it is written once more
    CHECK(b.write(job)->slot == "a");
  }
  SECTION("not the order of another node, of another image, or over another layout") {
    const auto denied = [&](const wire::ImageJob& changed) {
      before = b.everything();
      CHECK(b.write(changed).error().code == Code::denied);
      CHECK(b.everything() == before);
    };
    auto changed = job;
    changed.hostname = "node02";
    denied(changed);
    changed = job;
    changed.digest = "sha256:another";
    denied(changed);
    b.put(512, std::string(512, '\xff'));  // the tables are gone, the marker is not
    b.put(kDiskSize - 512, std::string(512, '\xff'));
    denied(job);
  }
}

TEST_CASE(
    "half-done work is continued by the node of the cluster of the controller that began it, and no "
    "other") {
  Bench b;
  b.threads = 1;
  const Image i = make_image(1);
  Controller c(i);
  const auto job = b.job(c, i);  // blank disks of a size share a hash
  auto other = job;
  SECTION("another node") { other.hostname = "node02"; }
  SECTION("another cluster") { other.cluster = "flock"; }
  SECTION("another controller") { other.authority = "sha256:ca-of-another-site"; }
  SECTION("none of these said") { other.cluster.clear(), other.authority.clear(); }
  c.refuse_after = 6;
  REQUIRE_FALSE(b.write(other));
  REQUIRE(read_marker(b.disk())->stage == "writing");
  c.refuse_after = -1;
  const std::string before = b.everything();
  const auto refused = b.write(job);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::denied);
  CHECK(b.everything() == before);
}

TEST_CASE("a re-image that was cut off keeps the state: no file system is made on the second try either") {
  Bench b;
  const Image i = make_image(1), second = make_image(2);
  {
    Controller c(i);
    REQUIRE(b.write(b.job(c, i)));
  }
  const auto state = *read_gpt(b.disk())->named("muster-state");
  b.put(state.start + 2 * kMiB, "PRECIOUS");
  Controller c(second);
  auto job = b.job(c, second);
  job.content_hash.clear();
  job.allow_ours = true;
  b.seeder.calls.clear();
  b.seeder.fail_seed = true;
  REQUIRE_FALSE(b.write(job));
  b.seeder.fail_seed = false;
  const auto r = b.write(job);
  REQUIRE(r);
  CHECK(r->resumed);
  CHECK(b.seeder.calls == std::vector<std::string>{"seed b", "seed b", "loader b KERNEL"});
  CHECK(b.disk().read_at(state.start + 2 * kMiB, 8).value() == "PRECIOUS");
}

TEST_CASE("another image than the plan names is refused before the disk is touched") {
  Bench b;
  const Image i = make_image(1), other = make_image(2);
  Controller c(other);
  const std::string before = b.everything();
  auto job = b.job(c, i);
  const auto r = b.write(job);
  REQUIRE_FALSE(r);
  CHECK(r.error().code == Code::corrupt);
  CHECK(b.everything() == before);
}

TEST_CASE("layout: slots of equal size, room for state, too large an image is refused") {
  const auto t = make_layout(8192 * kMiB, 640 * kMiB, 0);
  REQUIRE(t);
  CHECK(is_layout(*t));
  CHECK(slot_partition(*t, "a")->size == slot_partition(*t, "b")->size);
  CHECK(t->named("muster-state")->size >= 8192 * kMiB / 5 - 8 * kMiB);
  const auto& last = t->partitions.back();
  CHECK(last.start + last.size <= 8191 * kMiB);
  CHECK(make_layout(1024 * kMiB, 900 * kMiB, 0).error().code == Code::invalid);
  CHECK(make_layout(64 * kMiB, kMiB, 0).error().code == Code::invalid);
}

TEST_CASE("the new system uses the declared name servers, and no others") {
  TempDir dir;
  const Files root(dir.path("root"));
  wire::ImageJob job;
  job.hostname = "node01";
  job.address_cidr = "10.20.0.11/24";
  job.mac = "52:54:00:00:01:01";
  const auto layout = make_layout(8192 * kMiB, kMiB, 0).value();
  const ImageManifest manifest;
  const SeedRequest r{job, manifest, "/dev/null", layout, "b", false, {}};
  const auto resolver = [&] { return root.read("/etc/resolv.conf").value_or("?"); };
  const auto port = [&] { return root.read("/etc/systemd/network/10-muster.network").value_or("?"); };

  REQUIRE(seed_root(root, r, std::string(32, 'a')));
  CHECK(resolver().find("nameserver") == std::string::npos);
  CHECK(resolver()[0] == '#');  // it is there: programs want one
  CHECK(port().find("DNS=") == std::string::npos);

  job.gateway = "10.20.0.254";
  job.dns = {"10.20.0.53", "10.9.0.53"};
  job.search = {"cluster.example", "example"};
  REQUIRE(seed_root(root, r, std::string(32, 'a')));
  CHECK(resolver().find("\nsearch cluster.example example\nnameserver 10.20.0.53\nnameserver 10.9.0.53\n") !=
        std::string::npos);
  CHECK(port().find("\n[Network]\nAddress=10.20.0.11/24\nGateway=10.20.0.254\nDNS=10.20.0.53 10.9.0.53\n"
                    "Domains=cluster.example example\n") != std::string::npos);

  // A resolver daemon's link, which leads nowhere yet: left alone until name servers are declared.
  const std::string stub = "../run/systemd/resolve/stub-resolv.conf";
  REQUIRE(root.remove("/etc/resolv.conf"));
  REQUIRE(root.symlink(stub, "/etc/resolv.conf"));
  const std::vector<std::string> servers = std::exchange(job.dns, {});
  REQUIRE(seed_root(root, r, std::string(32, 'a')));
  CHECK(root.read_link("/etc/resolv.conf").value_or("") == stub);
  job.dns = servers;
  REQUIRE(seed_root(root, r, std::string(32, 'a')));
  CHECK_FALSE(root.read_link("/etc/resolv.conf").ok());
  CHECK(resolver().find("nameserver 10.20.0.53\n") != std::string::npos);

  const auto sent = wire::image_job_from_json(wire::to_json([&] {
    wire::ImageJob whole = job;
    whole.image = "cpu", whole.digest = "sha256:d", whole.manifest_path = "/m", whole.base_url = "http://x";
    return whole;
  }()));
  REQUIRE(sent);
  CHECK(sent->dns == job.dns);
  CHECK(sent->search == job.search);
}

TEST_CASE("the new system gets its name, its network and a loader entry that names its own slot") {
  char name[] = "/tmp/muster-seed-XXXXXX";
  const Files root(::mkdtemp(name));
  wire::ImageJob job;
  job.image = "tiny";
  job.digest = "sha256:d";
  job.hostname = "node01";
  job.address_cidr = "10.20.0.11/24";
  job.mac = "52:54:00:00:01:01";
  job.console = "ttyS0";
  ImageManifest manifest;
  manifest.os = "Tiny";
  const auto layout = make_layout(8192 * kMiB, kMiB, 0).value();
  const SeedRequest r{job, manifest, "/dev/null", layout, "b", false, {{"kernel", "K"}, {"bootloader", "L"}}};
  REQUIRE(seed_root(root, r, std::string(32, 'a')));
  CHECK(root.read_line("/etc/hostname") == "node01");
  CHECK(root.read_line("/etc/machine-id") == std::string(32, 'a'));
  const std::string network = root.read("/etc/systemd/network/10-muster.network").value();
  CHECK(network.find("MACAddress=52:54:00:00:01:01\n") != std::string::npos);
  CHECK(network.find("Address=10.20.0.11/24\n") != std::string::npos);
  CHECK(network.find("Gateway") == std::string::npos);
  CHECK(parse_json(root.read("/etc/muster/image.json").value())->at("slot") == "b");
  REQUIRE(seed_esp(root, r));
  const std::string entry = root.read("/loader/entries/muster-b.conf").value();
  CHECK(entry.find("linux /muster/b/vmlinuz\n") != std::string::npos);
  CHECK(entry.find("root=PARTUUID=" + slot_partition(layout, "b")->guid + " ") != std::string::npos);
  CHECK(entry.find("console=ttyS0") != std::string::npos);
  CHECK(entry.find("initrd") == std::string::npos);
  CHECK(kernel_argument(entry, "panic") ==
        "panic=30");  // a node that panics is not lost until a person comes
  job.kernel_options = "no_timer_check panic=0 iommu=pt";  // which `r` refers to
  REQUIRE(seed_esp(root, r));
  const std::string theirs = root.read("/loader/entries/muster-b.conf").value();
  CHECK(theirs.find(" no_timer_check panic=0 iommu=pt\n") != std::string::npos);
  CHECK(theirs.find("panic=30") == std::string::npos);
  CHECK(root.read("/loader/loader.conf").value().find("default muster-b.conf\n") != std::string::npos);
  CHECK(root.read("/muster/b/vmlinuz").value() == "K");
  CHECK(root.read("/EFI/BOOT/BOOTX64.EFI").value() == "L");
  std::filesystem::remove_all(root.root());
}
