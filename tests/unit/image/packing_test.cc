// RAM systems that several requests need at once: none is written twice at a time.
#include <fcntl.h>
#include <sys/stat.h>

#include <deque>
#include <utility>

#include "controller/image/service/image_service.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// Works when the test lets it.
struct HeldReactor : RealReactor {
  TimeMs now() const override { return 0; }
  SteadyMs steady() const override { return {}; }
  void post(Task task) override { task(); }
  TimerId after(DurationMs, Task) override { return 1; }
  void cancel(TimerId) override {}
  void run() override {}
  void stop() override {}
  void offload(Task work, Task done) override { jobs.emplace_back(std::move(work), std::move(done)); }
  void on_stop_signal(Task) override {}
  void when_ready(int, Ready, Task) override {}
  void forget(int) override {}

  void work_once() {
    REQUIRE_FALSE(jobs.empty());
    const auto job = jobs.front();
    jobs.pop_front();
    job.first();
    job.second();
  }
  std::deque<std::pair<Task, Task>> jobs;
};

struct Bench {
  Bench() {
    options.state = "/nonexistent";
    options.agent_binary = "/nonexistent/agent";
  }
  HeldReactor reactor;
  DaemonOptions options;
  ImageService images{reactor, options};
  int answered = 0, failed = 0;

  void request(const std::set<std::string>& names) {
    images.prepare_ram(names, [this](Status packed) {
      ++answered;
      failed += packed.ok() ? 0 : 1;
    });
  }
};

}  // namespace

TEST_CASE("RAM systems: one that is being packed is waited for, and looked at once for all who waited",
          "[image]") {
  Bench b;
  b.request({"cpu"});
  b.request({"cpu"});
  b.request({"cpu"});
  CHECK(b.reactor.jobs.size() == 1);
  b.reactor.work_once();
  CHECK(b.answered == 1);
  CHECK(b.reactor.jobs.size() == 1);
  b.reactor.work_once();
  CHECK(b.answered == 3);
  CHECK(b.reactor.jobs.empty());
  b.request({"cpu"});
  b.reactor.work_once();
  CHECK(b.answered == 4);
  CHECK(b.failed == 4);  // there is no agent: each gets the error
}

TEST_CASE("RAM systems: those of several images are packed one after the other, beside those of others",
          "[image]") {
  Bench b;
  b.request({"cpu", "gpu"});
  CHECK(b.reactor.jobs.size() == 1);
  b.request({"cpu"});
  CHECK(b.reactor.jobs.size() == 2);
  while (!b.reactor.jobs.empty()) b.reactor.work_once();
  CHECK(b.answered == 2);
  CHECK(b.failed == 2);
}

TEST_CASE("images: when an image was built is in its record", "[image]") {
  Bench b;
  TempDir state;
  b.options.state = state.path("");
  CHECK(b.images.built_at("gpu") == 0);
  state.write("images/gpu/current/build.json", R"({"built_at": 1700000000000})");
  CHECK(b.images.built_at("gpu") == 1'700'000'000'000);
  for (const char* other : {R"({"inputs": {}})", R"({"built_at": "today"})", "nonsense"}) {
    CAPTURE(other);
    state.write("images/gpu/current/build.json", other);
    CHECK(b.images.built_at("gpu") == 0);
  }
}

TEST_CASE("images: the Slurm of an image that comes later is found then", "[image]") {
  Bench b;
  TempDir state;
  b.options.state = state.path("");
  const std::string hex(64, 'a'), digest = "sha256:" + hex;
  CHECK(b.images.slurm_of(digest).empty());
  REQUIRE(Files("/").make_directories(state.path("images/gpu/" + hex)).ok());
  state.write("images/gpu/" + hex + "/build.json",
              R"({"packages": {"slurmctld": "24.11.5-4", "nvidia-dkms-570-server": "570.1"}})");
  b.images.bring_in(
      "/nonexistent", [](const std::string&, double) {}, [](const Result<ImageService::Image>&) {});
  b.reactor.work_once();
  CHECK(b.images.slurm_of(digest) == "24.11.5-4");
  CHECK(b.images.gpu_driver_of(digest) == "nvidia-dkms-570-server");
  CHECK(b.images.gpu_driver_of("").empty());
}

TEST_CASE("images: one whose order is refused, or whose build fails, has failed until it is built",
          "[image]") {
  Bench b;
  CHECK_FALSE(b.images.last_build_failed("cpu"));
  b.images.build(
      nullptr, {}, {.name = "cpu"}, [](const std::string&, double) {},
      [](Result<ImageService::Image> built) { CHECK_FALSE(built.ok()); });
  CHECK(b.images.last_build_failed("cpu"));
  CHECK_FALSE(b.images.last_build_failed("gpu"));
}

TEST_CASE("images: one without a time in its record is as old as its manifest", "[image]") {
  const TempDir dir;
  Bench b;
  b.options.state = dir.path("");
  CHECK(b.images.built_at("cpu") == 0);
  dir.write("images/cpu/current/manifest.json", "{}");
  const timespec times[] = {{1'000, 0}, {1'700'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, dir.path("images/cpu/current/manifest.json").c_str(), times, 0) == 0);
  CHECK(b.images.built_at("cpu") == 1'700'000'000'000);
}
