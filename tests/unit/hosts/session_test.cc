// `muster accept --hosts` from the first connection to the report, over hosts that are in this process.
#include <algorithm>
#include <filesystem>

#include "base/digest.h"
#include "cli/verify_report.h"
#include "controller/report/signature.h"
#include "sys/library_places.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/session_bench.h"

using namespace muster;

namespace {

constexpr const char* kChanges = R"(playbook: changes
help: no acceptance
steps:
  - name: motd
    phase: node
    module: file
    params: { path: /etc/motd, content: hello }
)";

int exit_code(const SessionOutcome& outcome) { return exit_of(outcome.hosts, outcome.cancelled); }

}  // namespace

TEST_CASE("accept session: hosts are reached, measured, judged, and left", "[hosts]") {
  SessionBench bench;
  for (const char* name : {"gpu01", "gpu02", "gpu03"}) bench.add(name);
  const auto& ended = bench.run();
  if (!ended.ended.ok()) FAIL(ended.ended.error().message);
  CHECK(exit_code(ended) == 0);
  for (const char* name : {"gpu01", "gpu02", "gpu03"}) CHECK(bench.verdict(name) == HostVerdict::accepted);
  CHECK(bench.hosts.left() == 3);
  CHECK(bench.hosts.open_now() == 0);
  for (const char* file : {"report.html", "report.json", "junit.xml", "nodes.jsonl"})
    CHECK(!ended.report.at(file).empty());
  const auto key = key_line(bench.read("accept/report.pub"));
  REQUIRE(key.ok());
  CHECK(cli::verify_report_text(ended.report.at("report.json"), *key).verdict ==
        cli::Verified::Verdict::valid);
  const auto mode = [&](const char* name) {
    return static_cast<unsigned>(std::filesystem::status(bench.path(name)).permissions());
  };
  CHECK(mode("accept/hosts") == 0700);
  CHECK(mode("accept/report.key") == 0600);
}

TEST_CASE("accept session: what a host measured fails that host alone", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.add("gpu02").lanes_lost = 8;
  const auto& ended = bench.run();
  CHECK(exit_code(ended) == 3);
  CHECK(bench.verdict("gpu01") == HostVerdict::accepted);
  CHECK(bench.verdict("gpu02") == HostVerdict::failed);
}

TEST_CASE("accept session: hosts that do not answer, refuse or are at work are named", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.add("gpu02").refuses = fail(Code::denied, "Permission denied (publickey)");
  bench.add("gpu03").refuses = fail(Code::unavailable, "No route to host");
  bench.add("gpu04").busy = "Slurm job 4711 is running";
  bench.add("gpu05").refuses = fail(Code::unavailable, "connection reset by a busy jump host");
  bench.hosts.at("gpu05").refuses_times = 2;
  const auto& ended = bench.run();
  CHECK(exit_code(ended) == 3);
  CHECK(bench.verdict("gpu01") == HostVerdict::accepted);
  CHECK(bench.verdict("gpu02") == HostVerdict::not_reached);
  CHECK(bench.reason("gpu02") == "Permission denied (publickey)");
  CHECK(bench.verdict("gpu03") == HostVerdict::not_reached);
  CHECK(bench.verdict("gpu04") == HostVerdict::busy);
  CHECK(bench.reason("gpu04") == "Slurm job 4711 is running");
  CHECK(bench.verdict("gpu05") == HostVerdict::accepted);
  CHECK(bench.hosts.opened("gpu02") == 1);
  CHECK(bench.hosts.opened("gpu03") == 3);
  CHECK(bench.out.size() == 3);
  CHECK(bench.report()["nodes"].size() == 5);
  CHECK(ended.title == "hosts: 2 of 5 nodes accepted");
}

TEST_CASE("accept session: an attempt that was not answered in time is not repeated", "[hosts]") {
  SessionBench bench;
  bench.options.timing.dropped = 0;  // each one lasts longer
  bench.add("gpu01");
  bench.add("gpu02").refuses = fail(Code::unavailable, "Connection timed out");
  bench.run();
  CHECK(bench.verdict("gpu01") == HostVerdict::accepted);
  CHECK(bench.verdict("gpu02") == HostVerdict::not_reached);
  CHECK(bench.hosts.opened("gpu02") == 1);
}

TEST_CASE("accept session: nothing is measured where no host can be", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01").busy = "apt is at work";
  const auto& ended = bench.run();
  CHECK(ended.ended.ok());
  CHECK(ended.run == 0);
  CHECK(ended.report.empty());
  CHECK(exit_code(ended) == 3);

  bench.again();
  FakeHosts hosts(*bench.reactor);
  hosts.add("gpu01").busy = "apt is at work";
  hosts.at("gpu01").check = "pcie";
  bench.options.beside_jobs = true;
  bench.options.open = hosts.opener();
  auto session = AcceptSession::open(*bench.reactor, bench.options, {{}, [&](SessionOutcome outcome) {
                                                                       bench.ended = std::move(outcome);
                                                                       bench.reactor->stop();
                                                                     }});
  REQUIRE(session.ok());
  bench.reactor->post([&] { (*session)->start(); });
  bench.reactor->run();
  CHECK(exit_code(*bench.ended) == 3);
  CHECK(bench.verdict("gpu01") == HostVerdict::looked_at);
  CHECK(bench.ended->look);
  CHECK(bench.ended->title == "hosts: 1 of 1 node looked at, not measured");
  CHECK(bench.report()["kind"] == "look");
  CHECK(bench.report()["title"] == bench.ended->title);
  CHECK(bench.report()["nodes"][0]["verdict"] == "looked_at");
}

TEST_CASE("accept session: two names of one machine are refused, both", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.add("gpu02");
  bench.add("login").boot = bench.hosts.at("gpu02").boot;
  bench.run();
  CHECK(bench.verdict("gpu01") == HostVerdict::accepted);
  CHECK(bench.verdict("gpu02") == HostVerdict::refused);
  CHECK(bench.verdict("login") == HostVerdict::refused);
  CHECK(bench.reason("login").find("gpu02") != std::string::npos);
}

TEST_CASE("accept session: a host that is restarted under the test failed", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.add("gpu02");
  bench.hosts.on_order = [&](const std::string& host, int n) {
    if (host != "gpu02" || n > 1) return;
    bench.hosts.at(host).boot = "boot-2";
    bench.hosts.cut(host);
  };
  const auto& ended = bench.run();
  CHECK(exit_code(ended) == 3);
  CHECK(bench.verdict("gpu01") == HostVerdict::accepted);
  CHECK(bench.verdict("gpu02") == HostVerdict::failed);
  CHECK(bench.hosts.opened("gpu02") == 2);
}

TEST_CASE("accept session: behind a name another machine answers after a break: failed", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.add("gpu02");
  bench.hosts.on_order = [&](const std::string& host, int n) {
    if (host != "gpu02" || n > 1) return;
    bench.hosts.at(host).facts.system.uuid = "11111111-2222-4333-8444-555555555555";
    bench.hosts.cut(host);
  };
  bench.run();
  CHECK(bench.verdict("gpu02") == HostVerdict::failed);
}

TEST_CASE("accept session: a lost connection is taken up again, and the order with it", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.add("gpu02");
  bench.options.timing.give_up = 30 * kSecond;
  int orders = 0;
  bench.hosts.on_order = [&](const std::string& host, int n) {
    if (host != "gpu02") return;
    orders = n;
    if (n > 2) return;
    bench.hosts.at(host).refuses = fail(Code::denied, "System is booting up");
    bench.hosts.at(host).refuses_times = 3;
    bench.hosts.cut(host);
  };
  const auto& ended = bench.run();
  CHECK(exit_code(ended) == 0);
  CHECK(orders == 3);
  CHECK(bench.hosts.opened("gpu02") == 9);
}

TEST_CASE("accept session: a host that stays away fails, and does not hold the others", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.add("gpu02");
  bench.hosts.on_order = [&](const std::string& host, int) {
    if (host != "gpu02") return;
    bench.hosts.at(host).refuses = fail(Code::unavailable, "No route to host");
    bench.hosts.cut(host);
  };
  bench.run();
  CHECK(bench.verdict("gpu01") == HostVerdict::accepted);
  CHECK(bench.verdict("gpu02") == HostVerdict::failed);
  CHECK(bench.reason("gpu02").find("No route to host") != std::string::npos);
}

TEST_CASE("accept session: a host that is lost again with each order fails, and does not hold the others",
          "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.add("gpu02");
  bench.hosts.on_order = [&](const std::string& host, int) {
    if (host == "gpu02") bench.hosts.cut(host);
  };
  bench.run();
  CHECK(bench.verdict("gpu01") == HostVerdict::accepted);
  CHECK(bench.verdict("gpu02") == HostVerdict::failed);
  CHECK(bench.hosts.opened("gpu02") == bench.options.timing.breaks + 1);
}

TEST_CASE("accept session: interrupted it ends in order and reports what there is", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.add("gpu02").holds = true;
  bench.hosts.on_order = [&](const std::string& host, int) {
    if (host == "gpu02") bench.reactor->after(50, [&] { bench.session->cancel("interrupted"); });
  };
  const auto& ended = bench.run();
  CHECK(ended.cancelled);
  CHECK(exit_code(ended) == 1);
  CHECK(bench.verdict("gpu02") == HostVerdict::cancelled);
  CHECK(ended.report.count("report.html") == 1);
  CHECK(bench.hosts.left() == 2);

  SessionBench early;
  early.add("gpu01");
  early.reactor->post([&] { early.session->cancel("interrupted"); });
  CHECK(early.run().cancelled);
  CHECK(early.verdict("gpu01") == HostVerdict::cancelled);
}

TEST_CASE("accept session: a second command on the same hosts is refused with the pid of the first",
          "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  const auto first = bench.open();
  REQUIRE(first.ok());
  const auto second = bench.open();
  REQUIRE(!second.ok());
  CHECK(second.error().code == Code::conflict);
  CHECK(second.error().message.find(std::to_string(::getpid())) != std::string::npos);
}

TEST_CASE("accept session: a database that is not ours is refused and left alone", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  std::filesystem::create_directories(bench.path("accept/hosts"));
  REQUIRE(Files(bench.path("accept/hosts"))
              .write("/muster.db", "not a database, but long enough to be one")
              .ok());
  const auto opened = bench.open();
  REQUIRE(!opened.ok());
  CHECK(opened.error().code == Code::corrupt);
  CHECK(bench.read("accept/hosts/muster.db") == "not a database, but long enough to be one");
}

TEST_CASE("accept session: a profile that would change a host is refused before anything is sent",
          "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.write("playbooks/acceptance/changes.yaml", kChanges);
  bench.options.profile = "changes";
  const auto& ended = bench.run();
  REQUIRE(!ended.ended.ok());
  CHECK(ended.run == 0);
  CHECK(bench.hosts.left() == 1);
}

TEST_CASE("accept session: a profile that does not exist is an error before any host is reached", "[hosts]") {
  SessionBench bench;
  bench.add("gpu01");
  bench.options.profile = "no-such";
  const auto opened = bench.open();
  REQUIRE(!opened.ok());
  CHECK(opened.error().code == Code::not_found);
  CHECK(bench.hosts.opened("gpu01") == 0);
}

TEST_CASE("accept session: only looking measures nothing, and finds what differs", "[hosts]") {
  SessionBench bench;
  for (const char* name : {"gpu01", "gpu02", "gpu03"}) bench.add(name);
  bench.hosts.at("gpu02").facts.kernel = "6.1.0-9-amd64";
  bench.hosts.at("gpu03").busy = "Slurm job 4711 is running";
  bench.options.drift_only = true;
  const auto& ended = bench.run();
  CHECK(ended.run == 0);
  CHECK(all_looked_at(ended.hosts));
  CHECK(ended.title == "hosts: 3 of 3 hosts looked at, not measured");
  REQUIRE(ended.drift.size() == 1);
  const auto& properties = ended.drift.front().properties;
  const auto kernel = std::find_if(properties.begin(), properties.end(),
                                   [](const DriftProperty& one) { return one.name == "kernel"; });
  REQUIRE(kernel != properties.end());
  CHECK(kernel->agreement == Agreement::outliers);
}

TEST_CASE("accept session: what will not be measured is said before anything is", "[hosts][gpu]") {
  SessionBench bench;
  bench.write("playbooks/acceptance/tiny.yaml",
              std::string(kTinyProfile) +
                  "  - name: products\n    phase: node\n    module: accept\n"
                  "    params: { kernel: gpu-gemm }\n    when: \"{{#own_gpus}}yes{{/own_gpus}}\"\n"
                  "    expect: { tflops: { min: 1, unit: TFLOP/s } }\n");
  for (const char* name : {"gpu01", "gpu02", "gpu03", "login"}) {
    auto& facts = bench.add(name).facts;
    if (std::string(name) == "login") continue;
    facts.gpus.emplace_back().model = "NVIDIA H100 80GB HBM3";
    facts.properties["GPU driver"] = "550.54.15";
    facts.gpu_libraries = {{"libcublasLt.so.12", "12.4.5.8", "/usr/lib64/libcublasLt.so.12"}};
  }
  bool before = true;
  bench.hosts.on_order = [&](const std::string&, int) { before = before && bench.foreseen; };
  std::vector<NotMeasured> found;
  SECTION("no program") {
    found = bench.run().not_measured;
    REQUIRE(found.size() == 1);
    CHECK(found[0].why.find("muster-accept-gpu") != std::string::npos);
    CHECK(found[0].remedy.find("--gpu-program") != std::string::npos);
    CHECK(found[0].remedy.find("gpu01") == std::string::npos);
    CHECK(to_text(found[0]).find("gpu[01-03]") != std::string::npos);
    CHECK(to_text(found[0]).find('\n') == std::string::npos);
  }
  SECTION("a program for a newer driver") {
    bench.write("gpu13", "13");
    bench.options.gpu.by_cuda[13] = bench.path("gpu13");
    found = bench.run().not_measured;
    REQUIRE(found.size() == 1);
    CHECK(found[0].why.find("CUDA 13") != std::string::npos);
    CHECK(found[0].why.find("550.54.15") != std::string::npos);
  }
  SECTION("one host without its driver, one with another cuBLASLt") {
    bench.write("gpu12", "12");
    bench.options.gpu.by_cuda[12] = bench.path("gpu12");
    bench.hosts.at("gpu01").facts.properties.erase("GPU driver");
    bench.hosts.at("gpu02").facts.gpu_libraries = {{"libcublasLt.so.13", "", "/opt/libcublasLt.so.13"}};
    found = bench.run().not_measured;
    REQUIRE(found.size() == 2);
    CHECK(found[0].hosts == std::vector<std::string>{"gpu01"});
    CHECK(found[1].hosts == std::vector<std::string>{"gpu02"});
    CHECK(found[1].why.find("/opt/libcublasLt.so.13") != std::string::npos);
    CHECK(found[1].remedy.find("--libs") != std::string::npos);
    return;
  }
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].hosts == std::vector<std::string>{"gpu01", "gpu02", "gpu03"});
  CHECK(to_json(found[0])["hosts"].size() == 3);
  CHECK(bench.hosts.steps("gpu01").find("gpu-gemm") != std::string::npos);
  CHECK(before);
}

TEST_CASE("accept session: with program and libraries in any of their places GPUs are measured",
          "[hosts][gpu]") {
  struct Place {
    const char *program, *given, *cublas, *nccl;  // `cublas`: "" is --libs
  };
  static const Place places[] = {
      {"elsewhere/gpu12", "elsewhere/gpu12", "/usr/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/"},
      {"elsewhere/lib/muster/muster-accept-gpu", "elsewhere", "/usr/local/cuda-12.4/lib64/",
       "/opt/nvidia/hpc_sdk/Linux_x86_64/24.5/comm_libs/nccl/lib/"},
      {"tools/muster-1/lib/muster/muster-accept-gpu", "",
       "/home/ops/.local/lib/python3.11/site-packages/nvidia/cublas/lib/",
       "/home/ops/.local/lib/python3.11/site-packages/nvidia/nccl/lib/"},
      {"tools/muster-gpu-1-cuda12-linux-x86_64/lib/muster/muster-accept-gpu", "",
       "/opt/conda/envs/torch/lib/", "/opt/conda/envs/torch/lib/"},
      {"tools/muster-1/muster-gpu-1-cuda12-linux-x86_64/lib/muster/muster-accept-gpu", "", "", ""}};
  const Place& place = places[GENERATE(0, 1, 2, 3, 4)];
  CAPTURE(place.program);
  SessionBench bench;
  bench.write("playbooks/acceptance/tiny.yaml",
              std::string(kTinyProfile) +
                  "  - name: products\n    phase: node\n    module: accept\n"
                  "    params: { kernel: gpu-gemm }\n    when: \"{{#own_gpus}}yes{{/own_gpus}}\"\n");
  const std::string content = "#!/bin/sh\n# @(#)muster-accept-gpu cuda 12.4\n";
  bench.write("tools/muster-1/lib/muster/muster-accept", "accept");
  bench.write(place.program, content);
  std::vector<std::string> given;
  if (*place.given) given.push_back(bench.path(place.given));
  const auto programs =
      find_gpu_programs(given, gpu_program_folders(bench.path("tools/muster-1/lib/muster/muster-accept")));
  REQUIRE(programs.ok());
  bench.options.gpu = *programs;

  const Files host(bench.path("host"));
  if (*place.cublas) {
    REQUIRE(host.write(std::string(place.cublas) + "libcublasLt.so.12", "").ok());
    REQUIRE(host.write(std::string(place.nccl) + "libnccl.so.2", "").ok());
  } else {
    bench.options.vars["libs"] = "/shared/lib";
  }
  auto& facts = bench.add("gpu01").facts;
  facts.gpus.emplace_back().model = "NVIDIA H100 80GB HBM3";
  facts.properties["GPU driver"] = "550.54.15";
  facts.gpu_libraries = gpu_libraries(host, {{"/home/ops"}, {}});
  CHECK(facts.gpu_libraries.size() == (*place.cublas ? 2 : 0));
  CHECK(bench.run().not_measured.empty());
  CHECK_FALSE(bench.foreseen);
  CHECK(bench.hosts.steps("gpu01").find("gpu-gemm") != std::string::npos);
  CHECK(bench.hosts.programs("gpu01").find(sha256(content).substr(7)) != std::string::npos);
}

TEST_CASE("accept session: nothing is measured before the last host has answered, which may be a second name",
          "[hosts]") {
  SessionBench bench;
  for (const char* name : {"gpu01", "gpu02", "gpu03"}) bench.add(name);
  FakeHost& last = bench.hosts.at("gpu03");
  last.refuses = fail(Code::unavailable, "not yet");
  bench.options.timing.first_tries = 1'000'000;
  const bool twin = GENERATE(true, false);
  if (twin) last.boot = bench.hosts.at("gpu01").boot;
  bool answers = false, early = false;
  bench.hosts.on_order = [&](const std::string&, int) { early = early || !answers; };
  std::vector<std::string> awaited;
  int rounds = 0;
  const std::function<void()> watch = [&] {
    const auto progress = bench.session->progress();
    if (progress.reached == 2 && ++rounds > 200) {
      awaited = progress.awaited;
      answers = true;
      last.refuses_times = 0;
      return;
    }
    bench.reactor->after(1, watch);
  };
  bench.reactor->post(watch);
  bench.run();
  CHECK_FALSE(early);
  CHECK(awaited == std::vector<std::string>{"gpu03"});
  CHECK(bench.verdict("gpu02") == HostVerdict::accepted);
  for (const char* name : {"gpu01", "gpu03"}) {
    CHECK(bench.verdict(name) == (twin ? HostVerdict::refused : HostVerdict::accepted));
    CHECK(bench.hosts.steps(name).empty() == twin);
  }
}

TEST_CASE("accept session: until the run, a host that comes back is looked at again", "[hosts]") {
  SessionBench bench;
  for (const char* name : {"gpu01", "gpu02", "gpu03"}) bench.add(name);
  bench.hosts.at("gpu03").refuses = fail(Code::unavailable, "not yet");
  bench.options.timing.first_tries = 1'000'000;
  bench.options.timing.give_up = 30 * kSecond;
  const bool restarted = GENERATE(true, false);
  bool cut = false;
  int rounds = 0;
  // The others are reached, gpu02 is lost and comes back, and only then gpu03 can be reached.
  const std::function<void()> watch = [&] {
    FakeHost& gpu02 = bench.hosts.at("gpu02");
    if (!cut && bench.session->progress().reached == 2) {
      cut = true;
      if (restarted)
        gpu02.boot = "boot-2";
      else
        gpu02.busy = "Slurm job 4711 is running";
      bench.hosts.cut("gpu02");
    }
    if (!bench.out.empty() || ++rounds > 1000) return bench.hosts.at("gpu03").refuses.reset();
    bench.reactor->after(1, watch);
  };
  bench.reactor->post(watch);
  bench.run();
  CHECK(bench.out == std::vector<std::string>{"gpu02"});
  CHECK(bench.verdict("gpu02") == (restarted ? HostVerdict::refused : HostVerdict::busy));
  CHECK(bench.hosts.opened("gpu02") == 2);
  CHECK(bench.verdict("gpu01") == HostVerdict::accepted);
  CHECK(bench.verdict("gpu03") == HostVerdict::accepted);
}
