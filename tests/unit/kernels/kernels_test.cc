#include "kernels/common/kernels.h"
#include "kernels/counters/counters.h"
#include "kernels/cpu/cpu.h"
#include "kernels/drives/drives.h"
#include "kernels/link/link.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/digest.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::kernels;

namespace {

class TestRoot {  // a folder that plays the machine: mountinfo says what we want
 public:
  TestRoot() {
    char pattern[] = "/tmp/muster-kernels-test.XXXXXX";
    path_ = ::mkdtemp(pattern);
    REQUIRE(files().make_directories("/scratch").ok());
    mountinfo("36 27 9:127 / /scratch rw,noatime shared:1 - xfs /dev/md127 rw\n");
  }
  ~TestRoot() { (void)make_process()->run({.argv = {"rm", "-rf", "--", path_}}); }
  Files files() const { return Files(path_); }
  void mountinfo(const std::string& text) const { REQUIRE(files().write("/proc/self/mountinfo", text).ok()); }
  MountRule scratch() const { return {"/scratch", "xfs", "/dev/md127"}; }

 private:
  std::string path_;
};

// fio with state: writes into the given file, answers with a prepared report. Like the original it fails
// without a file when it may not make one, and replaces a file that is too short.
class FakeFio : public Process {
 public:
  std::string report = {}, writes = "x";
  int exit_code = 0;
  bool refuse_direct = false;
  std::vector<std::vector<std::string>> runs = {};
  std::string file = {};
  std::function<void()> during = {};  // between writing and reading

  Result<Output> run(const Command& command) override {
    runs.push_back(command.argv);
    const auto has = [&](const char* word) {
      return std::count(command.argv.begin(), command.argv.end(), word) > 0;
    };
    uint64_t size = 0;
    for (const auto& argument : command.argv) {
      if (argument.starts_with("--filename=")) file = argument.substr(11);
      if (argument.starts_with("--size=")) size = std::stoull(argument.substr(7));
    }
    if (refuse_direct && has("--direct=1"))
      return Output{1, "", "fio: looks like your file system does not support direct=1/O_DIRECT"};
    const bool whole = std::filesystem::exists(file) && std::filesystem::file_size(file) >= size;
    if (!whole) std::filesystem::remove(file);
    if (!whole && has("--allow_file_create=0")) return Output{1, "", "fio: open: No such file or directory"};
    std::fstream(file, std::ios::in | std::ios::out) << writes;
    if (during) during();
    return Output{exit_code, report, ""};
  }
};

std::string fio_report(int error, uint64_t verified) {
  Json write = {{"bw_bytes", 50000000}, {"io_bytes", 1 << 20}, {"clat_ns", {{"mean", 2000000.0}}}};
  Json read = {{"bw_bytes", 80000000}, {"io_bytes", verified}};
  Json job = {{"jobname", "sequential"}, {"error", error}, {"write", write}, {"read", read}};
  return Json{{"jobs", Json::array({job})}}.dump();
}

struct LinkRun {
  Measurement client, server;
};
LinkRun run_pair(LinkOptions client, LinkServerOptions server = {}) {
  server.bind = "127.0.0.1";
  server.sessions = 1;
  auto opened = LinkServer::open(server);
  REQUIRE(opened.ok());
  LinkRun out;
  std::thread serving([&] { out.server = opened->run(); });
  client.to = "127.0.0.1";
  client.port = opened->port();
  client.seconds = 0.02;
  out.client = run_link(Files("/"), client);
  serving.join();
  return out;
}

using Blame = std::vector<std::string>;

}  // namespace

TEST_CASE("dgemm is exact for every instruction set, also where the edge fits no tile") {
  for (const auto& variant : dgemm_variants())
    for (const size_t n : {1, 5, 31, 97, 270}) {
      CAPTURE(variant, n);
      const auto m = run_dgemm({.seconds = 0.001, .n = n, .threads = 2, .variant = variant});
      CHECK(m.error == "");
      CHECK(m.outcome == Outcome::measured);
      CHECK(m.metrics.at("gflops").value > 0);
      CHECK(m.detail["variant"] == variant);
    }
  CHECK(run_dgemm({.seconds = 0.001, .n = 5, .variant = "abacus"}).outcome == Outcome::unavailable);
}

TEST_CASE("dgemm detects one flipped bit in C and names the core") {
  const auto cpus = usable_cpus();
  for (const unsigned bit : {0u, 51u, 52u, 62u, 63u}) {
    CAPTURE(bit);
    const auto m = run_dgemm({.seconds = 0.001, .n = 33, .flip = Flip{cpus.size() - 1, 1000, bit}});
    CHECK(m.outcome == Outcome::corrupt);
    CHECK(m.faulty_parts == Blame{"cpu " + std::to_string(cpus.back())});
    CHECK(m.error.find("element (30,10)") != std::string::npos);
    CHECK(exit_status(m.outcome) == 1);
  }
}

TEST_CASE("dgemm chooses its size from the time budget") {
  const auto m = run_dgemm({.seconds = 0.02, .threads = 1});
  CHECK(m.outcome == Outcome::measured);
  CHECK(m.detail["n"].get<double>() >= 48);
  CHECK(m.detail["n"].get<double>() <= 504);
  CHECK(m.detail["series_gflops"].size() == 16);
}

TEST_CASE("stream verifies its arrays and reports four rates") {
  const auto m = run_stream({.seconds = 0.02, .max_bytes = 3 << 20, .threads = 2});
  CHECK(m.error == "");
  CHECK(m.outcome == Outcome::measured);
  for (const char* name : {"copy_mbps", "scale_mbps", "add_mbps", "triad_mbps"})
    CHECK(m.metrics.at(name).value > 0);
  CHECK(m.detail["array_bytes"].get<size_t>() <= (3u << 20));
  CHECK(m.detail["rounds"].get<double>() >= 2);
}

TEST_CASE("stream detects one corrupted element and says where; too little memory is not a pass") {
  for (const unsigned bit : {0u, 63u}) {
    const auto m =
        run_stream({.seconds = 0.5, .max_bytes = 1 << 20, .threads = 1, .flip = Flip{0, 4242, bit}});
    CHECK(m.outcome == Outcome::corrupt);
    CHECK(m.error.find("array a element 4242") != std::string::npos);
    CHECK(m.faulty_parts.size() == 1);
  }
  CHECK(run_stream({.seconds = 0.01, .max_bytes = 100}).outcome == Outcome::unavailable);
}

TEST_CASE("link moves verified data both ways") {
  const auto run = run_pair({});
  CHECK(run.client.error == "");
  CHECK(run.client.outcome == Outcome::measured);
  CHECK(run.server.outcome == Outcome::measured);
  CHECK(run.client.metrics.at("send_mbps").value > 0);
  CHECK(run.client.metrics.at("receive_mbps").value > 0);
  CHECK(run.client.metrics.at("rtt_ms").value > 0);
  CHECK(run.client.detail["sent"]["bytes"].get<double>() >= 256 << 10);
  CHECK(run.server.detail["sessions"].size() == 1);
}

TEST_CASE("a link says which port it went over: the one with the address it is bound to") {
  TestRoot root;
  REQUIRE(root.files().write("/sys/class/net/lo/speed", "25000\n").ok());
  REQUIRE(root.files().write("/sys/class/net/lo/address", "52:54:00:20:00:01\n").ok());
  REQUIRE(root.files().write("/sys/class/net/rail0/speed", "400000\n").ok());
  const Json port = own_port(root.files(), "127.0.0.1");
  CHECK(port == Json{{"interface", "lo"},
                     {"mac", "52:54:00:20:00:01"},
                     {"speed_mbps", 25000},
                     {"ports", Json::array()}});  // no hardware
  REQUIRE(root.files().write("/sys/class/net/lo/speed", "-1\n").ok());
  CHECK_FALSE(own_port(root.files(), "127.0.0.1").contains("speed_mbps"));
  CHECK(own_port(root.files(), "192.0.2.1").is_null());  // no port of this machine
  CHECK(run_pair({.bind = "127.0.0.1"}).client.detail["own_port"]["interface"] == "lo");
  CHECK_FALSE(run_pair({}).client.detail.contains("own_port"));
}

TEST_CASE("the rails between nodes are the active RDMA ports") {
  TestRoot root;
  CHECK(active_rails(root.files()) == Json::array());
  for (const auto& [device, state] :
       {std::pair{"mlx5_0", "4: ACTIVE"}, {"mlx5_1", "1: DOWN"}, {"mlx5_2", "4: ACTIVE"}}) {
    const std::string folder = std::string("/sys/class/infiniband/") + device + "/ports/1";
    REQUIRE(root.files().write(folder + "/state", state).ok());
    REQUIRE(root.files().write(folder + "/rate", "400 Gb/sec (4X NDR)\n").ok());
  }
  const Json rails = active_rails(root.files());
  REQUIRE(rails.size() == 2);
  for (const Json& rail : rails) CHECK(rail["rate_gbps"] == 400);
  CHECK(rails[1]["label"] == "mlx5_2");
  CHECK_FALSE(rails[1].contains("near_gpu"));
}

TEST_CASE("a link of several streams is the sum of them, and one by itself is reported") {
  CHECK(streams_for(0, 64) == 1);
  CHECK(streams_for(10000, 64) == 1);
  CHECK(streams_for(25000, 64) == 3);
  CHECK(streams_for(400000, 64) == kMostStreams);
  CHECK(streams_for(400000, 2) == 2);
  auto server = LinkServer::open({.bind = "127.0.0.1", .seconds = 30, .sessions = 3});
  REQUIRE(server.ok());
  Measurement served;
  std::thread serving([&] { served = server->run(); });
  const auto link = [&](std::optional<Flip> flip) {
    return run_link(Files("/"),
                    {.to = "127.0.0.1", .port = server->port(), .seconds = 0.05, .streams = 3, .flip = flip});
  };
  SECTION("healthy") {
    const Measurement m = link({});
    serving.join();
    CHECK(m.error == "");
    CHECK(m.detail["streams"] == 3);
    CHECK(m.detail["sent"]["bytes"].get<double>() >= 3 * (256 << 10));
    CHECK(m.metrics.at("stream_send_mbps").value > 0);
    CHECK(m.metrics.at("send_mbps").value > 0);
    CHECK(served.detail["sessions"].size() == 3);
  }
  SECTION("one of them damaged") {
    const Measurement m = link(Flip{1, 70001, 5});
    serving.join();
    CHECK(m.outcome == Outcome::corrupt);
    CHECK(m.detail["received"]["first_wrong"] == 70001);
  }
}

TEST_CASE("link detects a flipped bit in either direction, at its offset") {
  SECTION("sent") {
    const auto run = run_pair({.flip = Flip{0, 70001, 5}});
    CHECK(run.client.outcome == Outcome::corrupt);
    CHECK(run.client.detail["sent"]["first_wrong"] == 70001);
    CHECK(run.client.faulty_parts == Blame{"direction here -> 127.0.0.1"});
    CHECK(run.server.outcome == Outcome::corrupt);
  }
  SECTION("damaged by the peer") {
    const auto run = run_pair({}, {.flip = Flip{0, 123, 0}});
    CHECK(run.client.outcome == Outcome::corrupt);
    CHECK(run.client.detail["received"]["first_wrong"] == 123);
    CHECK(run.client.faulty_parts == Blame{"direction 127.0.0.1 -> here"});
  }
  SECTION("damaged on arrival") {
    CHECK(run_pair({.flip = Flip{1, 9, 7}}).client.outcome == Outcome::corrupt);
  }
}

TEST_CASE("a link server answers only the declared peer and ends at its deadline") {
  auto server = LinkServer::open({.bind = "127.0.0.1", .seconds = 0.2, .from = "127.0.0.9"});
  REQUIRE(server.ok());
  Measurement served;
  std::thread serving([&] { served = server->run(); });
  const auto m = run_link(
      Files("/"), {.to = "127.0.0.1", .port = server->port(), .seconds = 0.01, .connect_seconds = 0.1});
  serving.join();
  CHECK(m.outcome == Outcome::unavailable);
  CHECK(m.faulty_parts == Blame{"link here - 127.0.0.1"});
  CHECK(served.detail["sessions"].empty());
  CHECK_FALSE(LinkServer::open({.bind = "not-an-address"}).ok());
}

TEST_CASE("a mount rule holds only for the topmost mount of exactly that path") {
  TestRoot root;
  CHECK(check_mount(root.files(), root.scratch()).ok());
  CHECK(check_mount(root.files(), {"/scratch/", "xfs", "/dev/md127"}).ok());

  CHECK(check_mount(root.files(), {"/scratch/sub", "xfs", "/dev/md127"}).error().code == Code::denied);
  const auto type = check_mount(root.files(), {"/scratch", "ext4", "/dev/md127"});
  REQUIRE_FALSE(type.ok());
  CHECK(type.error().message.find("xfs from /dev/md127, but ext4") != std::string::npos);
  CHECK_FALSE(check_mount(root.files(), {"/scratch", "xfs", "/dev/md0"}).ok());
  CHECK(check_mount(root.files(), {"/scratch", "xfs", ""}).error().code == Code::invalid);

  root.mountinfo("36 27 9:127 / /scratch rw - xfs /dev/md127 rw\n40 36 0:50 / /scratch rw - tmpfs none rw\n");
  CHECK_FALSE(check_mount(root.files(), root.scratch()).ok());
  root.mountinfo("36 27 9:127 / /my\\040data rw - fuse.mfs mfsmaster:9421 rw\n");
  CHECK(check_mount(root.files(), {"/my data", "fuse.mfs", "mfsmaster:9421"}).ok());
  CHECK(check_mount(root.files(), {"/my data", "fuse*", "*mfsmaster:9421"}).ok());
  CHECK_FALSE(check_mount(root.files(), {"/my data", "fuse*", "*other:9421"}).ok());
}

TEST_CASE("a mount's source may be declared by a stable link") {
  TestRoot root;
  REQUIRE(root.files().write("/dev/md127", "").ok());
  REQUIRE(root.files().make_directories("/dev/md").ok());
  REQUIRE(root.files().symlink("../md127", "/dev/md/scratch").ok());
  CHECK(check_mount(root.files(), {"/scratch", "xfs", "/dev/md/scratch"}).ok());
  CHECK_FALSE(check_mount(root.files(), {"/scratch", "xfs", "/dev/md/other"}).ok());
}

TEST_CASE("fio is not started where the mount is not as declared") {
  TestRoot root;
  FakeFio fio;
  root.mountinfo("27 1 254:0 / / rw - ext4 /dev/vda rw\n");
  const auto m = run_fio(root.files(), fio, {.mount = root.scratch(), .size_bytes = 1 << 20});
  CHECK(m.outcome == Outcome::refused);
  CHECK(m.error == "/scratch is not a mount point; nothing was written");
  CHECK(fio.runs.empty());
  CHECK(root.files().list("/scratch").empty());
}

TEST_CASE("fio results are read, its file is removed, direct I/O is given up only when refused") {
  TestRoot root;
  FakeFio fio;
  fio.report = "fio: a note\n" + fio_report(0, 1 << 20);
  auto m = run_fio(root.files(), fio, {.mount = root.scratch(), .size_bytes = 1 << 20});
  CHECK(m.error == "");
  CHECK(m.outcome == Outcome::measured);
  CHECK(m.metrics.at("write_mbps").value == 50);
  CHECK(m.metrics.at("read_mbps").value == 80);
  CHECK(m.detail["direct"] == true);
  CHECK(fio.runs.size() == 1);
  CHECK(fio.file.find("/scratch/.muster-fio.") != std::string::npos);
  CHECK(root.files().list("/scratch").empty());

  fio.refuse_direct = true;
  m = run_fio(root.files(), fio, {.mount = root.scratch(), .size_bytes = 1 << 20});
  CHECK(m.outcome == Outcome::measured);
  CHECK(m.detail["direct"] == false);
}

TEST_CASE("an error of storage is one on the first try, shared or not") {
  TestRoot root;
  root.mountinfo("36 1 0:41 / /scratch rw - fuse mfs#10.0.0.1:9421 rw\n");
  FakeFio fio;
  fio.report = fio_report(5, 1 << 19);
  fio.exit_code = 1;
  const auto m =
      run_fio(root.files(), fio, {.mount = {"/scratch", "fuse*", "*10.0.0.1:9421"}, .size_bytes = 1 << 20});
  CHECK(m.outcome == Outcome::failed);
  CHECK(fio.runs.size() == 1);
  CHECK(m.metrics.count("attempts") == 0);
  CHECK(m.faulty_parts == Blame{"/scratch (*10.0.0.1:9421)"});
  CHECK(root.files().list("/scratch").empty());
}

TEST_CASE(
    "a storage test's file is named by node and order; what is left of the node's dead ones goes, and no "
    "other node's") {
  TestRoot root;
  FakeFio fio;
  fio.report = fio_report(0, 1 << 20);
  for (const char* name :
       {".muster-fio.gpu01@6-1a2024c8906-gpu01-accept-1", ".muster-fio.gpu011@6-accept-1",
        ".muster-fio.gpu01@by-hand-1", ".muster-fio.gpu02@7-1a2024c8906-gpu02-accept-1", ".muster-fio.1"})
    REQUIRE(root.files().write(std::string("/scratch/") + name, "x").ok());
  const auto m = run_fio(root.files(), fio,
                         {.mount = root.scratch(),
                          .size_bytes = 1 << 20,
                          .node = "gpu01",
                          .order = "7-1a2024c8906/gpu01/accept#1"});
  CHECK(m.error == "");
  CHECK(m.outcome == Outcome::measured);
  CHECK(fio.file == root.files().real("/scratch/.muster-fio.gpu01@7-1a2024c8906-gpu01-accept-1"));
  CHECK(root.files().list("/scratch") ==
        std::vector<std::string>{".muster-fio.1", ".muster-fio.gpu011@6-accept-1",
                                 ".muster-fio.gpu01@by-hand-1",
                                 ".muster-fio.gpu02@7-1a2024c8906-gpu02-accept-1"});
  // By hand: a name of its own each time, and nothing of others is touched.
  run_fio(root.files(), fio, {.mount = root.scratch(), .size_bytes = 1 << 20});
  const std::string first = fio.file;
  run_fio(root.files(), fio, {.mount = root.scratch(), .size_bytes = 1 << 20});
  CHECK(fio.file != first);
  CHECK(root.files().list("/scratch").size() == 4);
}

TEST_CASE(
    "two nodes whose programs have the same process id test shared storage at the same time, each with its "
    "own file") {
  TestRoot root;
  int written[2], other_done[2];
  REQUIRE(::pipe(written) == 0);
  REQUIRE(::pipe(other_done) == 0);
  // Exits with 0 when `work` holds, as process 1 of its own namespace; 77: this machine does not let us have
  // one.
  const auto as_process_1 = [](const std::function<bool()>& work) {
    const pid_t outer = ::fork();
    if (outer != 0) return outer;
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t inner = ::fork();
    if (inner == 0) ::_exit(::getpid() == 1 && work() ? 0 : 1);
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  };
  const auto test = [&](const std::string& node, FakeFio& fio) {
    fio.writes = node;
    fio.report = fio_report(0, 1 << 20);
    return run_fio(
        root.files(), fio,
        {.mount = root.scratch(), .size_bytes = 1 << 20, .node = node, .order = "7-1/" + node + "/accept#1"});
  };
  const auto holds = [](const std::string& file, const std::string& content) {
    std::ifstream in(file);
    std::string text(content.size(), ' ');
    return in.read(text.data(), static_cast<std::streamsize>(text.size())) && text == content;
  };
  char byte = 0;
  // The first one has written when the other one begins, and reads when that is done: then fio would find end
  // of file, error 5.
  const pid_t first = as_process_1([&] {
    ::close(other_done[1]);
    FakeFio fio;
    bool kept = false;
    fio.during = [&] {
      (void)!::write(written[1], "w", 1);
      (void)!::read(other_done[0], &byte, 1);
      kept = holds(fio.file, "gpu01");
    };
    return test("gpu01", fio).outcome == Outcome::measured && kept;
  });
  const pid_t second = as_process_1([&] {
    ::close(written[1]);
    (void)!::read(written[0], &byte, 1);
    FakeFio fio;
    const bool good = test("gpu02", fio).outcome == Outcome::measured;
    (void)!::write(other_done[1], "d", 1);
    return good;
  });
  for (const int fd : {written[0], written[1], other_done[0], other_done[1]}) ::close(fd);
  for (const pid_t child : {first, second}) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
      WARN("no process namespaces here: only the names were tested");
    else
      CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(root.files().list("/scratch").empty());
}

TEST_CASE(
    "a file that exists is replaced, not opened for creation: where root is mapped to `nobody` the kernel "
    "refuses that") {
  TestRoot root;
  REQUIRE(root.files().write("/scratch/f", "of an earlier acceptance").ok());
  const int folder = ::open(root.files().real("/scratch").c_str(), O_RDONLY | O_DIRECTORY);
  struct stat before = {}, after = {};
  REQUIRE(::fstatat(folder, "f", &before, 0) == 0);
  const int kept = ::openat(folder, "f", O_RDONLY);  // so that its number is not given out again
  CHECK(
      run_checksum_write(root.files(), {.mount = root.scratch(), .name = "f", .size_bytes = 4096}).outcome ==
      Outcome::measured);
  REQUIRE(::fstatat(folder, "f", &after, 0) == 0);
  CHECK(before.st_ino != after.st_ino);
  ::close(kept);
  ::close(folder);
}

TEST_CASE("fio's bad news is never a pass") {
  TestRoot root;
  FakeFio fio;
  const FioOptions options = {.mount = root.scratch(), .size_bytes = 1 << 20};
  fio.report = fio_report(84, 1 << 20);
  const auto m = run_fio(root.files(), fio, options);
  CHECK(m.outcome == Outcome::corrupt);
  CHECK(m.faulty_parts == Blame{"/scratch (/dev/md127)"});
  fio.report = fio_report(5, 1 << 20);
  CHECK(run_fio(root.files(), fio, options).outcome == Outcome::failed);
  fio.report = fio_report(0, 1 << 19);  // half of it read back
  CHECK(run_fio(root.files(), fio, options).outcome == Outcome::failed);
  fio.report = "Segmentation fault";
  fio.exit_code = 139;
  CHECK(run_fio(root.files(), fio, options).outcome == Outcome::failed);
  fio.report = fio_report(0, 1 << 20);
  CHECK(run_fio(root.files(), fio, options).outcome == Outcome::failed);
  CHECK(run_fio(root.files(), fio, {.mount = root.scratch(), .size_bytes = uint64_t{1} << 60}).outcome ==
        Outcome::refused);
  CHECK(root.files().list("/scratch").empty());
}

TEST_CASE("a file written through one mount is proven by its digest through another") {
  TestRoot root;
  ChecksumOptions options = {
      .mount = root.scratch(), .name = "probe", .size_bytes = (2 << 20) + 13, .seed = 7};
  const auto written = run_checksum_write(root.files(), options);
  REQUIRE(written.outcome == Outcome::measured);
  options.expect = written.detail["sha256"].get<std::string>();
  CHECK(sha256(root.files().read("/scratch/probe").value()) == options.expect);
  CHECK(run_checksum_read(root.files(), options).outcome == Outcome::measured);

  SECTION("one changed byte is corrupt, and the file stays for inspection") {
    std::string content = root.files().read("/scratch/probe").value();
    content[1 << 20] = static_cast<char>(content[1 << 20] ^ 1);
    REQUIRE(root.files().write("/scratch/probe", content).ok());
    options.remove_after = true;
    const auto m = run_checksum_read(root.files(), options);
    CHECK(m.outcome == Outcome::corrupt);
    CHECK(m.faulty_parts == Blame{"/scratch"});
    CHECK(root.files().exists("/scratch/probe"));
  }
  SECTION("the reader may make the digest itself, from seed and size") {
    options.expect.clear();
    CHECK(run_checksum_read(root.files(), options).outcome == Outcome::measured);
    options.seed = 9;
    CHECK(run_checksum_read(root.files(), options).outcome == Outcome::corrupt);
    options.seed = 7;
    --options.size_bytes;
    CHECK(run_checksum_read(root.files(), options).outcome == Outcome::corrupt);
  }
  SECTION("a missing file fails") {
    REQUIRE(root.files().remove("/scratch/probe").ok());
    CHECK(run_checksum_read(root.files(), options).outcome == Outcome::failed);
  }
  SECTION("right and removed") {
    options.remove_after = true;
    CHECK(run_checksum_read(root.files(), options).outcome == Outcome::measured);
    CHECK_FALSE(root.files().exists("/scratch/probe"));
  }
  SECTION("another seed gives other content") {
    options.seed = 8;
    CHECK(run_checksum_write(root.files(), options).detail["sha256"] != options.expect);
  }
}

TEST_CASE("checksum files are not written outside the declared mount") {
  TestRoot root;
  for (const char* name : {"", "../escape", ".hidden", "a/b"}) {
    const auto m = run_checksum_write(root.files(), {.mount = root.scratch(), .name = name});
    CHECK(m.outcome == Outcome::refused);
  }
  root.mountinfo("");
  CHECK(run_checksum_write(root.files(), {.mount = root.scratch(), .name = "x"}).outcome == Outcome::refused);
  CHECK(root.files().list("/scratch").empty());
}

TEST_CASE("a measurement's JSON is the envelope the controller reads") {
  Measurement m;
  m.check = "dgemm";
  m.metrics["gflops"] = {1234.5678, "GFLOP/s"};
  m.outcome = Outcome::corrupt;
  m.error = "bad";
  m.faulty_parts = {"cpu 3"};
  CHECK(
      to_json(m).dump() ==
      R"({"blame":["cpu 3"],"check":"dgemm","detail":{},"error":"bad","metrics":{"gflops":{"unit":"GFLOP/s","value":1235.0}},"outcome":"corrupt","version":1})");
}

TEST_CASE("each whole disk is read on its own, nothing is written, and one that cannot be read is named") {
  const TestRoot root;
  const Files files = root.files();
  const auto disk = [&](const std::string& name, const std::string& serial) {
    REQUIRE(files.write("/sys/block/" + name + "/device/serial", serial + "\n").ok());
    REQUIRE(files.write("/sys/block/" + name + "/device/model", "PM9A3\n").ok());
    REQUIRE(files.write("/sys/block/" + name + "/size", "4096\n").ok());
  };
  disk("nvme0n1", "S1");
  disk("nvme1n1", "S2");
  disk("nvme0c0n1", "S1");  // a path of the first, with no device file
  REQUIRE(files.write("/sys/block/nvme0c0n1/hidden", "1\n").ok());
  REQUIRE(files.write("/sys/block/md127/size", "8192").ok());  // no device behind it
  REQUIRE(files.write("/sys/block/nvme9n1/device/serial", "S9").ok());
  REQUIRE(files.write("/sys/block/nvme9n1/size", "0").ok());  // empty slot
  const std::string content(2 << 20, 'x');
  REQUIRE(files.write("/dev/nvme0n1", content).ok());
  const Measurement found = run_drives(files, {.seconds = 0.02, .streams = 2});
  CHECK(found.outcome == Outcome::measured);
  REQUIRE(found.parts.size() == 2);
  const Json& good = found.parts[0];
  CHECK(good["subject"] == "S1");
  CHECK(good["like"] == "PM9A3 2097152");
  CHECK(good["result"]["outcome"] == "measured");
  CHECK(good["result"]["metrics"]["read_mbps"]["value"].get<double>() > 0);
  CHECK(good["result"]["blame"].empty());
  const Json& bad = found.parts[1]["result"];
  CHECK(bad["outcome"] == "failed");
  CHECK(bad["blame"][0] == "drive S2 (PM9A3)");
  CHECK(files.read("/dev/nvme0n1").value() == content);
  CHECK(to_json(found)["parts"].size() == 2);
}

namespace {

// A device in a made-up /sys, with links as the kernel has them.
struct PciTree {
  TestRoot root = {};
  Files files = root.files();
  std::string add(const std::string& parent, const std::string& address, const std::string& pci_class,
                  const std::vector<std::string>& link) {
    const std::string folder = parent + "/" + address;
    REQUIRE(files.write(folder + "/class", pci_class + "\n").ok());
    const char* names[] = {"current_link_width", "current_link_speed", "max_link_width", "max_link_speed"};
    for (size_t i = 0; i < link.size(); ++i)
      REQUIRE(files.write(folder + "/" + names[i], link[i] + "\n").ok());
    REQUIRE(files.make_directories("/sys/bus/pci/devices", 0755).ok());
    REQUIRE(files.symlink("../../.." + folder.substr(4), "/sys/bus/pci/devices/" + address).ok());
    return folder;
  }
};

const Json& part_of(const Measurement& m, const std::string& subject) {
  for (const auto& part : m.parts)
    if (part["subject"] == subject) return part["result"];
  FAIL("no part " << subject);
  return m.parts;
}

double ratio_of(const Json& result) { return result["metrics"]["ratio"]["value"].get<double>(); }

}  // namespace

TEST_CASE("a PCIe link is held against what both its ends can do, and the switch above it too") {
  PciTree tree;
  const std::string root0 = tree.add("/sys/devices/pci0000:00", "0000:00:01.0", "0x060400",
                                     {"8", "16.0 GT/s PCIe", "16", "32.0 GT/s PCIe"});
  const std::string up =
      tree.add(root0, "0000:01:00.0", "0x060400", {"8", "16.0 GT/s PCIe", "16", "16.0 GT/s PCIe"});
  const std::string down1 =
      tree.add(up, "0000:02:01.0", "0x060400", {"16", "2.5 GT/s PCIe", "16", "16.0 GT/s PCIe"});
  const std::string down2 =
      tree.add(up, "0000:02:02.0", "0x060400", {"4", "8.0 GT/s PCIe", "8", "16.0 GT/s PCIe"});
  tree.add(down1, "0000:03:00.0", "0x030200",
           {"16", "2.5 GT/s PCIe", "16", "16.0 GT/s PCIe"});  // an idle GPU
  tree.add(down2, "0000:04:00.0", "0x020700",
           {"4", "8.0 GT/s PCIe", "16", "32.0 GT/s PCIe"});  // lanes and speed lost
  const std::string root1 = tree.add("/sys/devices/pci0000:00", "0000:00:02.0", "0x060400",
                                     {"4", "16.0 GT/s PCIe", "4", "16.0 GT/s PCIe"});
  const std::string nvme = tree.add(root1, "0000:05:00.0", "0x010802",
                                    {"4", "16.0 GT/s PCIe", "4", "32.0 GT/s PCIe"});  // newer than its slot
  const std::string root2 = tree.add("/sys/devices/pci0000:00", "0000:00:03.0", "0x060400",
                                     {"0", "Unknown", "16", "32.0 GT/s PCIe"});
  tree.add(root2, "0000:06:00.0", "0x020000", {"0", "Unknown", "8", "16.0 GT/s PCIe"});  // its link is down
  tree.add("/sys/devices/pci0000:00", "0000:00:1f.2", "0x010601", {});  // in the chipset: no link
  tree.add("/sys/devices/pci0000:00", "0000:00:1f.6", "0x020000", {"255", "Unknown", "255", "Unknown"});
  const std::string vf =
      tree.add(root1, "0000:05:00.1", "0x010802", {"4", "16.0 GT/s PCIe", "4", "32.0 GT/s PCIe"});
  REQUIRE(tree.files.write(vf + "/physfn", "").ok());
  const Measurement found = run_pcie(tree.files);
  CHECK(found.outcome == Outcome::measured);
  CHECK(found.parts.size() == 5);
  CHECK(ratio_of(part_of(found, "0000:03:00.0")) == 1);
  CHECK(part_of(found, "0000:03:00.0")["detail"]["part"] == "PCIe link of GPU 0000:03:00.0");
  CHECK(ratio_of(part_of(found, "0000:04:00.0")) == 0.25);  // x4 of 8 lanes, 8 of 16 GT/s
  CHECK(part_of(found, "0000:04:00.0")["detail"]["plugged_into"] == "0000:02:02.0");
  CHECK(ratio_of(part_of(found, "0000:01:00.0")) ==
        0.5);  // the switch, told once though two devices are below it
  CHECK(part_of(found, "0000:01:00.0")["detail"]["part"] == "PCIe link of switch 0000:01:00.0");
  CHECK(ratio_of(part_of(found, "0000:05:00.0")) == 1);
  CHECK(ratio_of(part_of(found, "0000:06:00.0")) == 0);
  // Lanes are counted by themselves, of GPUs too; a register that tells nothing lost none that we know of.
  const auto lost = [&](const char* address) {
    return part_of(found, address)["metrics"]["lanes_lost"]["value"].get<double>();
  };
  CHECK(lost("0000:03:00.0") == 0);
  CHECK(lost("0000:04:00.0") == 4);
  CHECK(lost("0000:01:00.0") == 8);
  CHECK(lost("0000:05:00.0") == 0);
  CHECK(part_of(found, "0000:06:00.0")["detail"]["absent"] == Json{"lanes_lost"});
  CHECK(run_pcie(TestRoot().files()).parts.empty());
}

TEST_CASE("a device whose registers cannot be read does not answer; one without a link is left out") {
  PciTree tree;
  const std::string root = tree.add("/sys/devices/pci0000:00", "0000:00:01.0", "0x060400",
                                    {"0", "Unknown", "16", "32.0 GT/s PCIe"});
  tree.add(root, "0000:01:00.0", "0x030200", {"63", "Unknown", "63", "Unknown"});
  tree.add("/sys/devices/pci0000:00", "0000:00:1f.2", "0x010601", {"255", "Unknown", "255", "Unknown"});
  const Measurement found = run_pcie(tree.files);
  REQUIRE(found.parts.size() == 1);
  const Json& gpu = part_of(found, "0000:01:00.0");
  CHECK(gpu["outcome"] == "failed");
  CHECK(gpu["blame"] == Json{"GPU 0000:01:00.0"});
}

TEST_CASE("a PCIe link is reported with its device's model, and with a slot that a hypervisor emulates") {
  PciTree tree;
  const std::vector<std::string> full = {"16", "32.0 GT/s PCIe", "16", "32.0 GT/s PCIe"};
  const std::string device = GENERATE("", "0x8232", "0x8233", "0x3420");  // "": whatever it is
  const std::string vendor = device.empty() ? "0x1b36" : device == "0x3420" ? "0x8086" : "0x104c";
  for (const auto& [bus, slot] : {std::pair{"1", std::string("0x8086")}, {"2", vendor}}) {
    const std::string port =
        tree.add("/sys/devices/pci0000:00", fmt::format("0000:00:0{}.0", bus), "0x060400", full);
    const std::string nic = tree.add(port, fmt::format("0000:0{}:00.0", bus), "0x020700", full);
    REQUIRE(tree.files.write(port + "/vendor", slot + "\n").ok());
    REQUIRE(tree.files.write(port + "/device", (bus == std::string("1") ? "0x352a" : device) + "\n").ok());
    REQUIRE(tree.files.write(nic + "/vendor", "0x15b3\n").ok());
    REQUIRE(tree.files.write(nic + "/device", "0x1021\n").ok());
  }
  const Measurement found = run_pcie(tree.files);
  const Json &real = part_of(found, "0000:01:00.0")["detail"],
             &guest = part_of(found, "0000:02:00.0")["detail"];
  CHECK(real["model"] == "15b3:1021");
  CHECK_FALSE(real.contains("emulated_slot"));
  CHECK(guest["emulated_slot"] == true);
}

TEST_CASE("drives of one kind are read side by side, each named; one alone of its kind is not") {
  const TestRoot root;
  const Files files = root.files();
  const std::string content(2 << 20, 'x');
  const auto disk = [&](const std::string& name, const std::string& model) {
    REQUIRE(files.write("/sys/block/" + name + "/device/serial", "S" + name + "\n").ok());
    REQUIRE(files.write("/sys/block/" + name + "/device/model", model + "\n").ok());
    REQUIRE(files.write("/sys/block/" + name + "/size", "4096\n").ok());
    REQUIRE(files.write("/dev/" + name, content).ok());
  };
  disk("nvme0n1", "PM9A3");
  disk("nvme1n1", "PM9A3");
  disk("nvme2n1", "SN840");
  const Measurement found = run_drives(files, {.seconds = 0.01, .streams = 2, .parallel_seconds = 0.02});
  REQUIRE(found.parts.size() == 3);
  for (const char* serial : {"Snvme0n1", "Snvme1n1"}) {
    const Json& part = part_of(found, serial);
    CHECK(part["outcome"] == "measured");
    CHECK(part["metrics"]["parallel_mbps"]["value"].get<double>() > 0);
    CHECK(part["detail"]["side_by_side"] == 2);
    CHECK_FALSE(part["detail"].contains("absent"));
  }
  const Json& alone = part_of(found, "Snvme2n1");
  CHECK_FALSE(alone["metrics"].contains("parallel_mbps"));
  CHECK(alone["detail"]["absent"] == Json{"parallel_mbps"});
  for (const char* name : {"nvme0n1", "nvme1n1", "nvme2n1"})
    CHECK(files.read(std::string("/dev/") + name).value() == content);
  // One that ends early beside the others is named, and only that one.
  REQUIRE(files.write("/dev/nvme1n1", "").ok());
  const Measurement broken = run_drives(files, {.seconds = 0.01, .streams = 1, .parallel_seconds = 0.01});
  CHECK(part_of(broken, "Snvme0n1")["outcome"] == "measured");
  CHECK(part_of(broken, "Snvme1n1")["outcome"] == "failed");
}

TEST_CASE("the drives under a file system are found through arrays, volumes and partitions") {
  const TestRoot root;
  const Files files = root.files();
  const auto whole = [&](const std::string& name, const std::string& serial) {
    const std::string folder = "/sys/devices/pci/" + name;
    REQUIRE(files.write(folder + "/device/serial", serial).ok());
    REQUIRE(files.make_directories("/sys/class/block").ok());
    REQUIRE(files.symlink("../../devices/pci/" + name, "/sys/class/block/" + name).ok());
    REQUIRE(files.write(folder + "/" + name + "p1/partition", "1").ok());
    REQUIRE(files.symlink("../../devices/pci/" + name + "/" + name + "p1", "/sys/class/block/" + name + "p1")
                .ok());
  };
  whole("nvme0n1", "S0\n");
  whole("nvme1n1", "S1\n");
  whole("nvme2n1", "");
  REQUIRE(files.write("/sys/class/block/md127/md/level", "raid0\n").ok());
  REQUIRE(files.write("/sys/class/block/md127/slaves/nvme0n1", "").ok());
  REQUIRE(files.write("/sys/class/block/md127/slaves/nvme1n1p1", "").ok());
  REQUIRE(files.write("/sys/class/block/dm-0/slaves/md127", "").ok());
  for (const char* device : {"/dev/md127", "/dev/dm-0", "/dev/nvme2n1p1", "/dev/loop0"})
    REQUIRE(files.write(device, "").ok());
  REQUIRE(files.make_directories("/dev/md").ok());
  REQUIRE(files.symlink("../md127", "/dev/md/scratch").ok());
  const BackingDrives array = drives_under(files, "/dev/md/scratch");
  CHECK(array.drives == std::vector<std::string>{"S0", "S1"});
  CHECK(array.level == "raid0");
  CHECK(drives_under(files, "/dev/dm-0").drives == array.drives);
  CHECK(drives_under(files, "/dev/nvme2n1p1").drives == std::vector<std::string>{"nvme2n1"});
  CHECK(drives_under(files, "/dev/loop0").drives.empty());
  CHECK(drives_under(files, "*leader:9421").drives.empty());
}

TEST_CASE("fio has jobs for every drive under the file system, each with its own part of the file") {
  TestRoot root;
  const Files files = root.files();
  for (const char* name : {"sda", "sdb"}) {
    REQUIRE(files.write(std::string("/sys/class/block/") + name + "/device/serial", name).ok());
    REQUIRE(files.write(std::string("/sys/class/block/md127/slaves/") + name, "").ok());
  }
  REQUIRE(files.write("/sys/class/block/md127/md/level", "raid0").ok());
  REQUIRE(files.write("/dev/md127", "").ok());
  FakeFio fio;
  const auto has = [&](const std::string& argument) {
    return std::count(fio.runs.back().begin(), fio.runs.back().end(), argument) == 1;
  };
  fio.report = fio_report(0, 16 << 20);
  const auto m = run_fio(files, fio, {.mount = root.scratch(), .size_bytes = 19 << 20, .jobs_per_drive = 4});
  CHECK(m.error == "");
  CHECK(m.outcome == Outcome::measured);  // what 8 jobs of 2 MiB verify is all of it
  CHECK(has("--numjobs=8"));
  CHECK(has("--size=2097152"));
  CHECK(has("--offset_increment=2097152"));
  CHECK(has("--group_reporting"));
  CHECK(m.detail["drives"] == Json({"sda", "sdb"}));
  CHECK(m.detail["level"] == "raid0");
  CHECK_FALSE(m.detail.contains("random_jobs"));
  // Random reads come from as many, and that is reported: what they can reach depends on it.
  const auto random =
      run_fio(files, fio,
              {.mount = root.scratch(), .size_bytes = 19 << 20, .random_seconds = 1, .jobs_per_drive = 4});
  CHECK(std::count(fio.runs.back().begin(), fio.runs.back().end(), "--numjobs=8") == 2);
  CHECK(std::count(fio.runs.back().begin(), fio.runs.back().end(), "--group_reporting") == 2);
  CHECK(random.detail["random_jobs"] == 8);
  fio.report = fio_report(0, 15 << 20);
  CHECK(run_fio(files, fio, {.mount = root.scratch(), .size_bytes = 19 << 20, .jobs_per_drive = 4}).outcome ==
        Outcome::failed);
  // A small file is not cut into less than blocks, and without the option there is one job.
  fio.report = fio_report(0, 1 << 20);
  run_fio(files, fio, {.mount = root.scratch(), .size_bytes = 1 << 20, .jobs_per_drive = 4});
  CHECK(has("--size=1048576"));
  CHECK_FALSE(has("--group_reporting"));
  run_fio(files, fio, {.mount = root.scratch(), .size_bytes = 19 << 20});
  CHECK(has("--size=19922944"));
}

TEST_CASE("a disk under test is opened for reading only: the kernel saw no opening that could write") {
  const TestRoot root;
  const Files files = root.files();
  for (const char* name : {"nvme0n1", "nvme1n1"}) {  // two of a kind: also side by side
    REQUIRE(files.write(fmt::format("/sys/block/{}/device/serial", name), "S\n").ok());
    REQUIRE(files.write(fmt::format("/sys/block/{}/size", name), "4096\n").ok());
    REQUIRE(files.write(fmt::format("/dev/{}", name), std::string(2 << 20, 'x')).ok());
  }
  const std::string disk = files.real("/dev/nvme0n1");
  const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  REQUIRE(watch >= 0);
  REQUIRE(::inotify_add_watch(watch, disk.c_str(), IN_ALL_EVENTS) >= 0);
  const auto seen = [&] {
    uint32_t mask = 0;
    alignas(inotify_event) char buffer[4096];
    for (ssize_t n = ::read(watch, buffer, sizeof buffer); n > 0; n = ::read(watch, buffer, sizeof buffer))
      for (char* at = buffer; at < buffer + n;
           at += sizeof(inotify_event) + reinterpret_cast<inotify_event*>(at)->len)
        mask |= reinterpret_cast<inotify_event*>(at)->mask;
    return mask;
  };
  for (const int streams : {1, 4}) {
    CHECK(run_drives(files, {.seconds = 0.01, .streams = streams, .parallel_seconds = 0.01})
              .parts[0]["result"]["outcome"] == "measured");
    const uint32_t mask = seen();
    CHECK((mask & (IN_OPEN | IN_CLOSE_NOWRITE)) == (IN_OPEN | IN_CLOSE_NOWRITE));
    CHECK((mask & (IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB)) == 0);
  }
  // That this would have been seen: opened for writing, nothing written.
  const int fd = ::open(disk.c_str(), O_RDWR | O_CLOEXEC);
  ::close(fd);
  CHECK((seen() & IN_CLOSE_WRITE) != 0);
  ::close(watch);
}

TEST_CASE(
    "the kernel's log of broken hardware counts from where it was before the load, and after a reboot from "
    "its beginning") {
  const TestRoot root;
  const Files files = root.files();
  const auto boot = [&](const std::string& id) {
    REQUIRE(files.write("/proc/sys/kernel/random/boot_id", id + "\n").ok());
  };
  const auto log = [&](uint64_t first, const std::vector<std::string>& lines) {
    std::string text;
    for (const auto& line : lines)
      text += "4," + std::to_string(first++) + ",1234567,-;" + line + "\n SUBSYSTEM=pci\n";
    REQUIRE(files.write("/dev/kmsg", text).ok());
  };
  const auto value = [](const Measurement& m, const char* metric) { return m.metrics.at(metric).value; };
  const std::vector<std::string> old = {"NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."};
  boot("one");
  log(700, old);
  REQUIRE(run_counters(files, {.save = "/run/before.json"}).outcome == Outcome::measured);
  CHECK(value(run_counters(files, {.since = "/run/before.json"}), "gpu_xids") == 0);  // that was before

  std::vector<std::string> now = old;
  now.insert(now.end(),
             {"NVRM: Xid (PCI:0000:5e:00): 94, pid=2, Contained: SM (0x1)",
              "NVRM: Xid (PCI:0000:5e:00): 13, pid=2, Graphics SM Warp Exception",  // a program's own fault
              "nvidia-nvswitch3: SXid (PCI:0000:c7:00.0): 20034, Fatal, Link 32 LTSSM Fault Up",
              "nvidia-nvswitch3: SXid (PCI:0000:c7:00.0): 11004, Non-fatal, Link 02 ",
              "mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: 9c00004000010090",
              "nvme nvme3: I/O 12 (I/O Cmd) QID 5 timeout, aborting",
              "I/O error, dev nvme3n1, sector 2048 op 0x0:(READ)", "eth0: link becomes ready"});
  log(700, now);
  const auto moved = run_counters(files, {.since = "/run/before.json"});
  CHECK(value(moved, "gpu_xids") == 2);
  CHECK(value(moved, "machine_checks") == 1);
  CHECK(value(moved, "drive_errors") == 2);
  CHECK(moved.detail["part"] == "GPU 0000:5e:00, NVSwitch 0000:c7:00.0, cpu 12, drive nvme3, drive nvme3n1");
  CHECK(moved.detail["kernel_log"].size() == 5);

  log(700, {"NVRM: Xid (PCI:0000:e1:00): 79, pid='<unknown>', name=<unknown>, SIMULATED GPU has fallen off "
            "the bus."});
  boot("three");
  CHECK(run_counters(files, {.since = "/run/before.json"}).detail["part"] == "SIMULATED GPU 0000:e1:00");

  boot("two");  // in between: every record is new, whatever its number
  log(0, old);
  CHECK(value(run_counters(files, {.since = "/run/before.json"}), "gpu_xids") == 1);
  // A log that cannot be read is not one without errors; nor is it something that this machine does not have.
  REQUIRE(files.remove("/dev/kmsg").ok());
  const auto blind = run_counters(files, {.since = "/run/before.json"});
  const auto is_absent = [&](const char* what) {
    const Json& absent = blind.detail["absent"];
    return std::count(absent.begin(), absent.end(), what) > 0;
  };
  CHECK(blind.outcome == Outcome::measured);
  CHECK(is_absent("kernel log"));
  for (const char* metric : {"gpu_xids", "machine_checks", "drive_errors", "nic_errors"}) {
    CHECK_FALSE(blind.metrics.count(metric));
    CHECK_FALSE(is_absent(metric));
  }
}

// Tests run as root in places; a plain user is who may not read it.
class PlainUser {
 public:
  PlainUser() : was_root_(::geteuid() == 0 && ::seteuid(65534) == 0) {}
  ~PlainUser() {
    if (was_root_) (void)::seteuid(0);
  }

 private:
  bool was_root_;
};

TEST_CASE(
    "the kernel's log: what is kept from a plain user is not looked at, which is not a log without faults") {
  const TestRoot root;
  const Files files = root.files();
  REQUIRE(files.write("/proc/sys/kernel/random/boot_id", "one\n").ok());
  REQUIRE(files.write("/dev/kmsg", "4,1,1234567,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, gone\n", 0600).ok());
  REQUIRE(files.write("/run/before.json", "{}", 0644).ok());
  REQUIRE(::chmod(files.real("/").c_str(), 0755) == 0);
  REQUIRE(::chmod(files.real("/dev/kmsg").c_str(), 0) == 0);
  Measurement blind;
  {
    const PlainUser plain;
    blind = run_counters(files, {.since = "/run/before.json"});
  }
  CHECK(blind.outcome == Outcome::measured);
  for (const char* metric : {"gpu_xids", "machine_checks", "drive_errors"}) {
    CHECK_FALSE(blind.metrics.count(metric));
    CHECK(blind.detail["not_looked_at"].contains(metric));
  }
  CHECK(blind.detail["not_looked_at"].size() == 4);
}

TEST_CASE("a disk that this process may not open is not looked at: that is no fault of the drive") {
  const TestRoot root;
  const Files files = root.files();
  REQUIRE(files.write("/sys/block/vda/device/serial", "S1\n").ok());
  REQUIRE(files.write("/sys/block/vda/size", "4096\n").ok());
  REQUIRE(files.write("/dev/vda", std::string(2 << 20, 'x')).ok());
  REQUIRE(::chmod(files.real("/dev/vda").c_str(), 0) == 0);
  REQUIRE(::chmod(files.real("/").c_str(), 0755) == 0);
  Measurement found;
  {
    const PlainUser plain;
    found = run_drives(files, {.seconds = 0.01, .streams = 1});
  }
  REQUIRE(found.parts.size() == 1);
  const Json& disk = found.parts[0]["result"];
  CHECK(disk["outcome"] == "unavailable");
  CHECK(disk["detail"]["not_looked_at"].get<std::string>().find("vda") != std::string::npos);
  CHECK(disk["blame"].empty());
}

TEST_CASE("memory is what the machine has left, and no more than the cgroups above leave") {
  const TestRoot root;
  const Files files = root.files();
  constexpr uint64_t kMiB = 1 << 20;
  const auto put = [&](const std::string& path, const std::string& text) {
    REQUIRE(files.write(path, text + "\n").ok());
  };
  put("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 8388608 kB");
  CHECK(available_memory(files) == 8192 * kMiB);
  put("/proc/self/cgroup", "0::/slurm/job_7/step_0");
  CHECK(available_memory(files) == 8192 * kMiB);
  put("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max");
  put("/sys/fs/cgroup/slurm/job_7/memory.max", std::to_string(1024 * kMiB));
  put("/sys/fs/cgroup/slurm/job_7/memory.current", std::to_string(256 * kMiB));
  CHECK(available_memory(files) == 768 * kMiB);
  put("/sys/fs/cgroup/slurm/memory.max", std::to_string(100 * kMiB));
  put("/sys/fs/cgroup/slurm/memory.current", std::to_string(200 * kMiB));
  CHECK(available_memory(files) == 0);
  put("/proc/self/cgroup", "4:memory:/job\n1:name=systemd:/x");
  put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(64 * kMiB));
  CHECK(available_memory(files) == 64 * kMiB);
}

// A program that crashes is in the log by its own name and by those of its libraries: no user may take a node
// out with them.
TEST_CASE("the kernel's log: what a user's program is called is no broken hardware") {
  const TestRoot root;
  const Files files = root.files();
  REQUIRE(files.write("/proc/sys/kernel/random/boot_id", "one\n").ok());
  REQUIRE(files.write("/dev/kmsg", "").ok());
  REQUIRE(run_counters(files, {.save = "/run/before.json"}).outcome == Outcome::measured);
  const std::string crash = "[4711]: segfault at 0 ip 00007f11 sp 00007ffc error 4 in ";
  const auto metrics = [&](const std::string& line) {
    REQUIRE(files.write("/dev/kmsg", "4,1,1234567,-;" + line + "\n").ok());
    const auto measured = run_counters(files, {.since = "/run/before.json"});
    std::string out;
    for (const char* metric : {"gpu_xids", "machine_checks", "drive_errors"})
      if (measured.metrics.at(metric).value > 0) out += metric;
    return out;
  };
  for (const char* name :
       {"Xid (x): 79,", "NVRM: Xid (PCI:", "NVRM: Xid (0000", "[Hardware Error", "mce: [Hardware ",
        "I/O error, dev ", "nvme nvme0: I/O", "nvme nvme0", "nvidia-nvswitch",
        "NVRM: GPU 0000:", "NVRM: GPU at PC", "NVRM: The NVIDI", "NVRM: RmInitAda", "     NVRM: fall"})
    for (const char* library : {"libc.so.6", "NVRM: Xid (PCI:0000:3b:00): 79, ", "[Hardware Error]: ",
                                "I/O error, dev sda, ", " QID 5 timeout", "nvme nvme3: controller is down",
                                "nvidia-nvswitch3: SXid (PCI:0000:c7:00.0): 1, ",
                                "nvidia-nvswitch3: SXid (PCI:0000:c7:00.0): 1, Fatal, ",
                                "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed!", " has fallen off the bus",
                                "NVRM: fallen off the bus and is not responding to commands."}) {
      INFO(name << " / " << library);
      CHECK(metrics(name + crash + library + "[7f11+1000]").empty());
    }
  // The kernel's own, in the forms of its versions.
  CHECK(metrics("NVRM: Xid (0000:3b:00): 79, GPU has fallen off the bus.") == "gpu_xids");
  CHECK(metrics("NVRM: Xid (PCI:0000:3b:00.0): 79, pid=1") == "gpu_xids");
  CHECK(metrics("{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 0") ==
        "machine_checks");
  CHECK(metrics("[Hardware Error]: Corrected error, no action required.") == "machine_checks");
  CHECK(metrics("blk_update_request: I/O error, dev sda, sector 1") == "drive_errors");
  CHECK(metrics("critical medium error, dev sdb, sector 1 op 0x0:(READ)") == "drive_errors");
  CHECK(metrics("nvme nvme3: I/O tag 5 (1005) opcode 0x2 (I/O Cmd) QID 3 timeout, aborting") ==
        "drive_errors");
  CHECK(metrics("nvme nvme3: controller is down; will reset: CSTS=0xffffffff") == "drive_errors");
  CHECK(metrics("nvme nvme3: Removing after probe failure status: -19") == "drive_errors");
}

TEST_CASE("error counters are compared with what they were before the load") {
  const TestRoot root;
  const Files files = root.files();
  const auto write = [&](const std::string& path, const std::string& text) {
    REQUIRE(files.write(path, text).ok());
  };
  const auto edac = [&](const std::string& count) {
    write("/sys/devices/system/edac/mc/mc0/ce_count", count);
  };
  edac("7");
  write("/sys/devices/system/edac/mc/mc0/ue_count", "0");
  write("/sys/class/net/eth0/device/x", "");
  write("/sys/class/net/eth0/address", "52:54:00:20:00:01");
  write("/sys/class/net/eth0/carrier", "1");
  write("/sys/class/net/eth0/statistics/rx_errors", "3");
  write("/sys/class/net/lo/statistics/rx_errors", "99");  // no port
  write("/sys/bus/pci/devices/0000:01:00.0/aer_dev_correctable", "RxErr 1\nTOTAL_ERR_COR 1\n");
  REQUIRE(run_counters(files, {.save = "/run/before.json"}).outcome == Outcome::measured);
  auto moved = run_counters(files, {.since = "/run/before.json"});
  REQUIRE(moved.outcome == Outcome::measured);
  for (const auto& [name, metric] : moved.metrics) CHECK(metric.value == 0);
  CHECK(moved.metrics.count("pcie_corrected"));
  for (const char* uncounted : {"pcie_uncorrected", "link_down", "cpu_throttled"})
    CHECK_FALSE(moved.metrics.count(uncounted));
  CHECK(moved.detail["absent"] ==
        Json::array({"pcie_uncorrected", "cpu_throttled", "link_down", "RDMA ports", "kernel log"}));

  edac("9");
  write("/sys/class/net/eth0/statistics/rx_errors", "1");  // its driver was reloaded
  write("/sys/bus/pci/devices/0000:01:00.0/aer_dev_correctable", "RxErr 1\nTOTAL_ERR_COR 5\n");
  moved = run_counters(files, {.since = "/run/before.json"});
  CHECK(moved.metrics["memory_corrected"].value == 2);
  CHECK(moved.metrics["memory_uncorrected"].value == 0);
  CHECK(moved.metrics["network_errors"].value == 1);
  CHECK(moved.metrics["pcie_corrected"].value == 4);
  CHECK(moved.detail["part"] == "NIC 52:54:00:20:00:01, PCIe 0000:01:00.0, memory controller mc0");

  CHECK(run_counters(files, {.since = "/run/missing.json"}).outcome == Outcome::unavailable);
  write("/run/before.json", "{\"memory_corrected\": 3}");
  CHECK(run_counters(files, {.since = "/run/before.json"}).outcome == Outcome::unavailable);
}

TEST_CASE("cores, clock and memory modules as the machine tells them") {
  const TestRoot root;
  const Files files = root.files();
  CHECK(look_at_machine(files).cpu_mhz == 0);
  CHECK(look_at_machine(files).dimms == 0);
  for (int cpu = 0; cpu < 8; ++cpu) {  // two threads per core, two packages
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    REQUIRE(files.write(topology + "core_id", std::to_string(cpu % 2)).ok());
    REQUIRE(files.write(topology + "physical_package_id", std::to_string(cpu / 4)).ok());
  }
  REQUIRE(files.write("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3800000").ok());
  const auto module = [&](int n, unsigned char size, unsigned configured) {
    std::string table(0x28, '\0');
    table[1] = 0x28;  // its length, as every structure says it
    table[0x0d] = static_cast<char>(size);
    table[0x15] = 0x40, table[0x16] = 0x15;  // 5440 at most
    table[0x20] = static_cast<char>(configured & 0xff), table[0x21] = static_cast<char>(configured >> 8);
    REQUIRE(files.write("/sys/firmware/dmi/entries/17-" + std::to_string(n) + "/raw", table).ok());
  };
  module(0, 0x40, 4800);
  module(1, 0x40, 4400);
  module(2, 0, 0);  // empty slot
  Machine found = look_at_machine(files);
  CHECK(found.physical_cores == 4);
  CHECK(look_at_machine(files, {0, 2, 3}).physical_cores == 2);  // 0 and 2 are threads of one core
  CHECK(found.cpu_mhz == 3800);
  CHECK(found.dimms == 2);
  CHECK(found.dimm_mt_s == 4400);
  CHECK_FALSE(found.base_clock);
  REQUIRE(files.write("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency", "2400000").ok());
  CHECK(look_at_machine(files).base_clock);
  CHECK(look_at_machine(files).cpu_mhz == 2400);
}
