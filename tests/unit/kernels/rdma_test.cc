// RDMA: which ports there are, which belong together, how perftest is called and what it prints; and two
// nodes on loopback with a perftest under the test's control.
#include "kernels/rdma/rdma.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/perftest_files.h"
#include "kernels/common/connection.h"
#include "kernels/common/kernels.h"
#include "kernels/counters/counters.h"
#include "kernels/rdma/rdma_link.h"
#include "tests/catch.h"
#include "tests/unit/kernels/rdma_bench.h"

using namespace muster;
using namespace muster::kernels;
using namespace muster::tests;
using Node = RdmaNode;

namespace {

// Waits for a connection. -1: none came.
int accept_one(const Listener& listening) {
  pollfd p{listening.fd(), POLLIN, 0};
  return ::poll(&p, 1, 60'000) == 1 ? ::accept(listening.fd(), nullptr, nullptr) : -1;
}

bool has(const std::vector<std::string>& words, const std::vector<std::string>& sequence) {
  return std::search(words.begin(), words.end(), sequence.begin(), sequence.end()) != words.end();
}

}  // namespace

TEST_CASE(
    "RDMA ports as sysfs shows them: in the order of their numbers, with the GID that routes through IPv4") {
  const Node node;
  CHECK(rdma_ports(node.files()).empty());
  for (const char* name : {"mlx5_10", "mlx5_2", "mlx5_0"}) node.device(name);
  node.device("mlx5_1", "10 Gb/sec (4X SDR)", "1: DOWN");
  const auto ports = rdma_ports(node.files());
  REQUIRE(ports.size() == 4);
  const std::vector<std::string> order = {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_10"};
  for (size_t i = 0; i < order.size(); ++i) CHECK(ports[i].label == order[i]);
  CHECK_FALSE(ports[1].active);
  CHECK(ports[0].active);
  CHECK(ports[0].rate_gbps == 200);
  CHECK(ports[0].ethernet());
  REQUIRE(ports[0].gids.size() == 1);  // 0 is link-local, 1 is the same address by the first version
  CHECK(ports[0].gids[0].index == 2);
  CHECK(ports[0].gids[0].address == "10.20.0.11");
  node.write("/sys/class/infiniband/mlx5_0/ports/2/state", "4: ACTIVE");
  node.write("/sys/class/infiniband/mlx5_0/ports/2/link_layer", "InfiniBand");
  const auto two = rdma_ports(node.files());
  CHECK(two[0].label == "mlx5_0/1");
  CHECK(two[1].label == "mlx5_0/2");
  CHECK(two[1].gids.empty());
}

TEST_CASE("a missing RDMA port does not move those behind it to another rail") {
  const auto same = pair_rails({"rxe0", "rxe1"}, {"mlx5_0", "mlx5_1"});
  CHECK(same[1].there == "mlx5_1");
  const auto less = pair_rails({"a", "b", "c"}, {"a", "c"});
  REQUIRE(less.size() == 3);
  CHECK(less[1].there == "");
  CHECK(less[2].here == "c");
  CHECK(less[2].there == "c");
  const auto more = pair_rails({"a", "c"}, {"a", "b", "c"});
  CHECK(more[1].here == "");
  CHECK(more[1].there == "b");
  CHECK(more[2].number == 2);
  // As many on either side, but not the same ones: other cables are not taken for a rail.
  const std::vector<std::string> a = {"mlx5_0", "mlx5_5", "mlx5_10"}, b = {"mlx5_0", "mlx5_2", "mlx5_10"};
  const auto one = pair_rails(a, b), other = pair_rails(b, a);
  REQUIRE(one.size() == 4);
  for (size_t i : {0, 3}) CHECK((one[i].here == one[i].there && one[i].here == other[i].here));
  CHECK((one[1].here == "" && one[1].there == "mlx5_2" &&
         other[1].here == "mlx5_2"));  // the same numbers from both ends
  CHECK((one[2].here == "mlx5_5" && one[2].there == "" && other[2].there == "mlx5_5"));
  const auto ports = pair_rails({"mlx4_10/1", "mlx4_2/2"}, {"mlx4_2/1", "mlx4_2/2", "mlx4_10/1"});
  CHECK((ports[0].there == "mlx4_2/1" && ports[1].here == "mlx4_2/2" && ports[2].here == "mlx4_10/1"));
}

TEST_CASE("perftest's options and tables are those of perftest 4.5") {
  RdmaPort port;
  port.device = "mlx5_3";
  port.pci = "0000:5e:00.0";
  port.cpus = "0-15";
  const Command serve = perftest_command({.on = port, .port = 7496, .seconds = 3, .gid = 5});
  CHECK(serve.argv == std::vector<std::string>{"taskset", "-c", "0-15", "ib_write_bw", "-F", "-d", "mlx5_3",
                                               "-i", "1", "-p", "7496", "-x", "5", "-s", "65536", "-D", "3",
                                               "--report_gbits"});
  RdmaPort soft;  // soft-RoCE, in a lab: its machines may stand still for longer than an adapter
  soft.device = "rxe0";
  CHECK(has(perftest_command({.on = soft, .port = 7496}).argv,
            {"-d", "rxe0", "-i", "1", "-p", "7496", "-u", "18"}));
  const Command tied = perftest_command({.on = port, .port = 7496, .tied = true});
  CHECK(has(tied.argv, {"setpriv", "--pdeathsig", "KILL", "taskset", "-c", "0-15", "ib_write_bw"}));
  const Command marked = perftest_command({.on = port, .port = 7496, .gid = 5, .traffic_class = 106});
  CHECK(has(marked.argv, {"-x", "5", "--tclass=106"}));
  port.cpus.clear();  // InfiniBand
  const Command lat = perftest_command(
      {.test = PerfTest::latency, .on = port, .port = 7496, .partner = "10.0.0.1", .iterations = 500});
  CHECK(lat.argv == std::vector<std::string>{"ib_write_lat", "-F", "-d", "mlx5_3", "-i", "1", "-p", "7496",
                                             "-s", "8", "-n", "500", "10.0.0.1"});
  const Command gpu = perftest_command({.on = port, .gpu = 4, .dma_buf = true});
  CHECK(has(gpu.argv, {"--use_cuda=4", "--use_cuda_dmabuf"}));
  CHECK(gpu.env.at("CUDA_DEVICE_ORDER") == "PCI_BUS_ID");

  const auto bandwidth = parse_perftest(kBandwidth, PerfTest::bandwidth);
  REQUIRE(bandwidth.ok());
  CHECK(bandwidth->gbps == 0.062939);
  CHECK(bandwidth->mtu == 1024);
  const auto latency = parse_perftest(kLatency, PerfTest::latency);
  REQUIRE(latency.ok());
  CHECK(latency->typical_us == 6303.89);
  CHECK(latency->mtu == 1024);
  CHECK(latency->p99_us == 22576.68);
  CHECK_FALSE(parse_perftest(kBandwidth, PerfTest::latency).ok());
  CHECK_FALSE(parse_perftest("", PerfTest::bandwidth).ok());
  std::string zero = kBandwidth;
  zero.replace(zero.find(kGbps), 8, "0.000000");
  const auto timeless =
      parse_perftest(zero, PerfTest::bandwidth);  // messages went through, in no time: no result
  REQUIRE_FALSE(timeless.ok());
  CHECK(timeless.error().message.find("time-stamp counter") != std::string::npos);
  for (const char* endless : {"inf     ", "nan     "}) {
    std::string other = kBandwidth;
    CHECK_FALSE(parse_perftest(other.replace(other.find(kGbps), 8, endless), PerfTest::bandwidth).ok());
  }
  std::string mib = kBandwidth;
  mib.replace(mib.find("BW average[Gb/sec]"), 18, "BW average[MB/sec]");
  CHECK_FALSE(parse_perftest(mib, PerfTest::bandwidth).ok());  // another unit is not taken for ours
}

TEST_CASE("RDMA is measured both ways and for latency, rail by rail, by perftest on both nodes") {
  Two two;
  for (const char* name : {"mlx5_0", "mlx5_1"}) two.here.device(name), two.there.device(name);
  const Measurement m = two.run();
  CHECK(m.error == "");
  REQUIRE(m.outcome == Outcome::measured);
  REQUIRE(m.parts.size() == 2);
  CHECK(m.parts[1]["like"] == "rail 1");
  const Json& result = m.parts[1]["result"];
  CHECK(result["check"] == "rdma-link");
  for (const char* rate : {"send_gbps", "receive_gbps"}) CHECK(result["metrics"][rate]["value"] == 0.06294);
  CHECK(result["metrics"]["latency_us"]["value"] == 6304);
  CHECK(result["metrics"]["latency_p99_us"]["value"] == 22580);
  CHECK(result["detail"]["rate_gbps"] == 200);
  CHECK(result["detail"]["mtu"] == 1024);
  CHECK(result["detail"]["device"] == "mlx5_1");
  CHECK(result["detail"]["gpu_direct"] == "not measured: there is no GPU with NVIDIA's driver");
  // Sending and latency: served there; receiving: served here. Each rail has a port of its own.
  REQUIRE(two.near.runs.size() == 6);
  REQUIRE(two.far.runs.size() == 6);
  const auto measuring = [](const FakePerftest& perftest) {
    return std::count_if(perftest.runs.begin(), perftest.runs.end(),
                         [](const auto& argv) { return argv.back() == "127.0.0.1"; });
  };
  CHECK(measuring(two.near) == 4);
  CHECK(measuring(two.far) == 2);
  const auto on_second = std::find_if(two.far.runs.begin(), two.far.runs.end(), [](const auto& argv) {
    return has(argv, {"-d", "mlx5_1"});
  });
  REQUIRE(on_second != two.far.runs.end());
  CHECK(has(*on_second, {"-p", std::to_string(two.options.port + 2)}));
  CHECK(has(*on_second, {"-x", "2"}));
  CHECK(two.served.detail["sessions"][0]["tests"] == 3);
}

TEST_CASE(
    "a node without RDMA device, port or perftest has measured nothing, and says so without a partner") {
  const Node node;
  FakePerftest perftest(node);
  const RdmaOptions nobody = {.to = "127.0.0.1", .port = 1, .connect_seconds = 0};
  const auto says = [&] {
    const Measurement m = run_rdma(node.files(), perftest, nobody);
    CHECK(m.check == "rdma");
    CHECK(m.outcome == Outcome::unavailable);
    CHECK(m.parts.is_null());
    return m.error;
  };
  CHECK(says() == "this node has no RDMA device");
  node.device("mlx5_0", "40 Gb/sec", "1: DOWN");
  CHECK(says() == "this node has no active RDMA port: [\"mlx5_0 is 1: DOWN\"]");
  node.device("mlx5_0");
  perftest.installed = false;
  CHECK(says() == "perftest (ib_write_bw) is not installed");
  perftest.installed = true;
  const Measurement alone =
      run_rdma(node.files(), perftest, nobody);  // its partner is not there: that is about both
  REQUIRE(alone.parts.size() == 1);
  CHECK(alone.parts[0]["result"]["outcome"] == "unavailable");
  CHECK_FALSE(alone.parts[0]["result"]["detail"].contains("at_fault"));
}

TEST_CASE("the perftest that muster carries measures where both ends could not run the same one") {
  Two two;
  two.here.device("mlx5_0"), two.there.device("mlx5_0");
  two.options.perftest =
      two.carried_there = {"/c/ib_write_bw", "/c/ib_write_lat", {"/c/librdmacm", "/c/libpci"}};
  const auto part = [](const Measurement& m, size_t i) { return m.parts[i]["result"]; };
  const auto carried_runs = [](const FakePerftest& perftest) {
    return std::count_if(perftest.runs.begin(), perftest.runs.end(), [](const auto& argv) {
      return std::any_of(argv.begin(), argv.end(), [](const auto& word) { return word.starts_with("/c/"); });
    });
  };
  two.near.carried_version = two.far.carried_version = "6.06";
  SECTION("the same version on both hosts") {
    CHECK(part(two.run(), 0)["detail"]["perftest"] == "6.06 of this host");
    CHECK(carried_runs(two.near) + carried_runs(two.far) == 0);
  }
  SECTION("different versions") {
    two.near.version = "6.20";
    const Json result = part(two.run(), 0);
    CHECK(result["outcome"] == "measured");
    CHECK(result["detail"]["perftest"] == "6.06 carried by muster");
    CHECK(carried_runs(two.near) == 3);
    CHECK(carried_runs(two.far) == 3);
    CHECK(has(two.near.runs.front(), {"env", "LD_PRELOAD=/c/librdmacm:/c/libpci", "/c/ib_write_bw"}));
  }
  SECTION("none on one host, and nothing carried by the other's muster") {
    two.near.installed = false;
    two.carried_there = {};
    CHECK(part(two.run(), 0)["outcome"] == "measured");
    CHECK(carried_runs(two.near) == 3);
    CHECK(carried_runs(two.far) == 0);
  }
  SECTION("none on one host, which lacks what it loads") {
    two.near.installed = false;
    two.near.carried_version.clear();
    two.near.carried_error =
        "/c/ib_write_bw: error while loading shared libraries: libibverbs.so.1: cannot open shared object "
        "file\n";
    const Measurement m = run_rdma(two.here.files(), two.near, two.options);
    CHECK(m.outcome == Outcome::unavailable);
    CHECK(m.error.find("libibverbs.so.1") != std::string::npos);
    CHECK(two.near.runs.empty());
  }
  SECTION("GPU memory is measured by the host's own") {
    CHECK_FALSE(
        agree_on_carried({.own = "6.20", .carried = "6.06"}, {{"own", "6.06"}, {"carried", "6.06"}}, true));
  }
}

TEST_CASE("the carried perftest is there as a whole or not at all") {
  const RdmaNode node;
  const std::string folder = node.files().real("/lib/muster");
  std::vector<std::string> paths;
  for (const char* name : kPerftestFiles) {
    CHECK_FALSE(carried_perftest({}, folder).present());
    node.write(std::string("/lib/muster/perftest/") + name, "program");
    paths.push_back(folder + "/perftest/" + name);
  }
  CHECK(carried_perftest({}, folder).latency == paths[1]);
  CHECK(carried_perftest(paths, "").libraries.size() == 2);
  paths.pop_back();
  CHECK_FALSE(carried_perftest(paths, folder).present());
}

TEST_CASE("a perftest beside the program is not run if a different user can have put it there") {
  const RdmaNode node;
  const std::string folder = node.files().real("/lib/muster"), latency = folder + "/ib_write_lat";
  std::vector<std::string> paths;
  for (const char* name : kPerftestFiles) {
    node.write(std::string("/lib/muster/") + name, "program");
    paths.push_back(folder + "/" + name);
  }
  REQUIRE(carried_perftest({}, folder).present());
  if (::geteuid() == 0) {
    REQUIRE(::chown(latency.c_str(), 65533, 65533) == 0);
    CHECK_FALSE(carried_perftest({}, folder).present());
    REQUIRE(::chown(latency.c_str(), 0, 0) == 0);
  }
  REQUIRE(::chmod(latency.c_str(), 0666) == 0);
  CHECK_FALSE(carried_perftest({}, folder).present());
  CHECK(carried_perftest(paths, "").present());  // named; memory of the agent has such a mode
}

TEST_CASE("a perftest that was left behind is ended before another is started in its place") {
  Two two;
  two.here.device("mlx5_0"), two.there.device("mlx5_0");
  const auto serve_once = [] {
    return RdmaServer::open({.bind = "127.0.0.1", .seconds = 60, .sessions = 1});
  };
  const auto first_rail = [](const Result<RdmaServer>& of) {
    return Listener::open("0.0.0.0", static_cast<uint16_t>(of->port() + 1));
  };
  auto server = serve_once();
  REQUIRE(server.ok());
  auto orphan = first_rail(server);
  for (int i = 0; i < 20 && !orphan.ok(); ++i) {  // the port beside it may be in use
    server = serve_once();
    REQUIRE(server.ok());
    orphan = first_rail(server);
  }
  REQUIRE(orphan.ok());
  two.options.port = server->port();
  // As perftest does: the first connection is its partner, and when that says nothing it ends.
  bool started_after = false, connected = false;
  std::thread left_behind([&] {
    const int fd = accept_one(*orphan);
    connected = fd >= 0;
    {
      const std::lock_guard hold(two.far.mutex);
      started_after = two.far.runs.empty();
    }
    orphan = fail(Code::unavailable, "closed");
    ::close(fd);
  });
  const Files there = two.there.files();
  std::thread serving([&] { (void)server->run(there, two.far); });
  const Measurement m = run_rdma(two.here.files(), two.near, two.options);
  serving.join();
  left_behind.join();
  CHECK(m.outcome == Outcome::measured);
  CHECK(connected);
  CHECK(started_after);
}

TEST_CASE("what the partner lacks is the partner's fault, rail by rail, and the other rails are measured") {
  Two two;
  for (const char* name : {"mlx5_0", "mlx5_1"}) two.here.device(name);
  const auto part = [](const Measurement& m, size_t i) { return m.parts[i]["result"]; };
  SECTION("no device at all") {
    const Measurement m = two.run();
    REQUIRE(m.parts.size() == 2);
    for (size_t i : {0, 1}) {
      CHECK(part(m, i)["error"] == "the partner has no RDMA device");
      CHECK(part(m, i)["detail"]["at_fault"] == "peer");
    }
    CHECK(two.near.runs.empty());
  }
  SECTION("one of two") {
    two.there.device("mlx5_1");
    const Measurement m = two.run();
    CHECK(m.outcome == Outcome::unavailable);  // some of it was not measured
    CHECK(part(m, 0)["error"] == "the partner has no active port mlx5_0");
    CHECK(part(m, 0)["detail"]["at_fault"] == "peer");
    CHECK(part(m, 1)["outcome"] == "measured");
  }
  SECTION("perftest") {
    for (const char* name : {"mlx5_0", "mlx5_1"}) two.there.device(name);
    two.far.installed = false;
    CHECK(part(two.run(), 0)["error"] == "on the partner: perftest (ib_write_bw) is not installed");
  }
  SECTION("an address") {
    for (const char* name : {"mlx5_0", "mlx5_1"}) two.there.device(name);
    two.there.write("/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/2", "IB/RoCE v1");
    const Measurement m = two.run();
    CHECK(part(m, 0)["outcome"] == "measured");
    CHECK(part(m, 1)["error"] == "on the partner: mlx5_1 has no RoCE v2 GID with an address of a network");
    CHECK(part(m, 1)["detail"]["at_fault"] == "peer");
  }
}

TEST_CASE("a port without an address at both ends is no rail, and no fault") {
  Two two;
  for (RdmaNode* node : {&two.here, &two.there}) {
    for (const char* name : {"mlx5_0", "mlx5_1"}) node->device(name);
    node->write("/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/2", "IB/RoCE v1");
  }
  const Measurement m = two.run();
  REQUIRE(m.parts.size() == 2);
  CHECK(m.parts[0]["result"]["outcome"] == "measured");
  const Json unused = m.parts[1]["result"];
  CHECK(unused["outcome"] == "unavailable");
  CHECK(unused["detail"].value("not_looked_at", "") != "");
  CHECK_FALSE(unused["detail"].contains("at_fault"));
  for (const auto& argv : two.near.runs) CHECK_FALSE(has(argv, {"mlx5_1"}));
}

TEST_CASE("where no port has an address any more, that is a finding") {
  Two two;
  for (RdmaNode* node : {&two.here, &two.there}) {
    node->device("mlx5_0");
    node->write("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2", "IB/RoCE v1");
  }
  const Measurement m = two.run();
  REQUIRE(m.parts.size() == 1);
  CHECK(m.parts[0]["result"]["detail"]["at_fault"] == "here");
  CHECK_FALSE(m.parts[0]["result"]["detail"].contains("not_looked_at"));
}

TEST_CASE("of a perftest that says a lot, the end is kept, and marked as such") {
  Two two;
  two.here.device("mlx5_0"), two.there.device("mlx5_0");
  two.near.broken = "mlx5_0";
  two.near.says = std::string(700, 'x') + "y";
  const std::string error = two.run().parts[0]["result"].value("error", "");
  CHECK(error.find("..." + std::string(599, 'x') + "y") != std::string::npos);
}

TEST_CASE("a rail on which perftest fails is a failed link, and no single node's fault") {
  Two two;
  for (const char* name : {"mlx5_0", "mlx5_1"}) two.here.device(name), two.there.device(name);
  SECTION("here") { two.near.broken = "mlx5_1"; }
  SECTION("on the partner") { two.far.broken = "mlx5_1"; }
  const Measurement m = two.run();
  CHECK(m.outcome == Outcome::failed);
  const Json& bad = m.parts[1]["result"];
  CHECK(bad["outcome"] == "failed");
  CHECK(bad["error"].get<std::string>().find("Completion with error") != std::string::npos);
  CHECK_FALSE(bad["detail"].contains("at_fault"));
  CHECK(bad["blame"] == Json{"RDMA link mlx5_1 - mlx5_1 of 127.0.0.1"});
}

TEST_CASE("a perftest server that ends at once fails its own rail, and the others are measured") {
  Two two;
  for (const char* name : {"mlx5_0", "mlx5_1", "mlx5_2"}) two.here.device(name), two.there.device(name);
  SECTION("on the partner") { two.far.ends = "mlx5_1"; }
  SECTION("here") { two.near.ends = "mlx5_1"; }
  const Measurement m = two.run();
  for (size_t i : {0, 1, 2}) {
    const Json& part = m.parts[i]["result"];
    CHECK(part["outcome"] == (i == 1 ? "failed" : "measured"));
  }
  CHECK(m.parts[1]["result"]["error"].get<std::string>().find("Couldn't allocate MR") != std::string::npos);
}

TEST_CASE("ports are paired by their place: an adapter that one node lacks does not shift the others") {
  Two two;
  two.here.placed("mlx5_0", "0000:18:00.0");
  two.here.placed("mlx5_1", "0000:2a:00.0");
  two.here.placed("mlx5_2", "0000:41:00.0");
  two.there.placed("mlx5_0", "0000:18:00.0");
  two.there.placed("mlx5_1", "0000:41:00.0");
  const Measurement m = two.run();
  REQUIRE(m.parts.size() == 3);
  CHECK(m.parts[0]["like"] == "port 0000:18:00.0");
  CHECK(m.parts[2]["like"] == "port 0000:41:00.0");
  CHECK(m.parts[2]["result"]["outcome"] == "measured");
  CHECK(m.parts[2]["result"]["detail"]["device"] == "mlx5_2");
  CHECK(m.parts[2]["result"]["detail"]["peer_device"] == "mlx5_1");
  CHECK(m.parts[2]["result"]["detail"]["peer_rate_gbps"] == 400);
  const Json& lost = m.parts[1]["result"];
  CHECK(lost["error"] == "the partner has no active port at 0000:2a:00.0, where this node has mlx5_1");
  CHECK(lost["detail"]["at_fault"] == "peer");
}

TEST_CASE("places decide only among machines that are alike") {
  const auto pairs = [](const std::vector<RailEnd>& a, const std::vector<RailEnd>& b) {
    return pair_places(a, b).size();
  };
  const RailEnd at18{"mlx5_0", "18"}, at2a{"mlx5_1", "2a"}, at3b{"mlx5_1", "3b"}, soft{"rxe0", ""};
  CHECK(pairs({at18}, {at18}) == 1);
  CHECK(pairs({at18, at2a}, {at18}) == 2);
  CHECK(pairs({at18, at2a}, {at18, at3b}) == 0);  // other slots: by name
  CHECK(pairs({at18}, {at3b}) == 0);
  CHECK(pairs({at18, soft}, {at18, soft}) == 0);
  CHECK(pairs({}, {}) == 0);
}

TEST_CASE("each end uses the GID of the network that both are in") {
  Two two;
  for (RdmaNode* node : {&two.here, &two.there}) node->device("mlx5_0");
  // The first address of the port here belongs to a network that the partner is not in.
  const std::string gids = "/sys/class/infiniband/mlx5_0/ports/1/";
  two.here.write(gids + "gids/2", "0000:0000:0000:0000:0000:ffff:ac1e:0509");
  two.here.write(gids + "gids/3", "0000:0000:0000:0000:0000:ffff:0a14:000c");
  two.here.write(gids + "gid_attrs/types/3", "RoCE v2");
  SECTION("IPv4") {}
  SECTION("IPv6 on a VLAN") {
    two.here.write(gids + "gids/3", "fd00:0100:0000:0000:0000:0000:0000:000c");
    two.there.write(gids + "gids/2", "fd00:0100:0000:0000:0000:0000:0000:000b");
  }
  const Measurement m = two.run();
  CHECK(m.error == "");
  REQUIRE(m.parts.size() == 1);
  CHECK(m.parts[0]["result"]["detail"]["gid_index"] == 3);
  REQUIRE_FALSE(two.near.runs.empty());
  for (const auto& argv : two.near.runs) CHECK(has(argv, {"-x", "3"}));
  for (const auto& argv : two.far.runs) CHECK(has(argv, {"-x", "2"}));
}

TEST_CASE("a perftest that succeeds without a figure is run again, and its link does not count as faulty") {
  Two two;
  two.here.device("mlx5_0"), two.there.device("mlx5_0");
  SECTION("twice in vain") {
    two.near.zeros = 2;
    const Measurement m = two.run();
    CHECK(m.outcome == Outcome::measured);
    CHECK(m.parts[0]["result"]["detail"]["repeated"] == 2);
    CHECK(m.parts[0]["result"]["metrics"]["send_gbps"]["value"] == 0.06294);
    CHECK(two.near.runs.size() == 5);
  }
  SECTION("always") {
    two.far.zeros = 1000;
    const Measurement m = two.run();
    CHECK(m.outcome == Outcome::unavailable);
    CHECK(m.error.find("perftest printed no bandwidth for ") == 0);
    CHECK(m.error.find("time-stamp counter") != std::string::npos);
    CHECK(m.parts[0]["result"]["detail"]["inconclusive"] == true);
    CHECK(m.parts[0]["result"]["blame"].empty());
  }
}

TEST_CASE("who works with one partner is not measured with by another at the same time") {
  Two two;
  two.here.device("mlx5_0"), two.there.device("mlx5_0");
  Node third;
  third.device("mlx5_0");
  FakePerftest other(third);
  struct Busy : Process {
    FakePerftest& inner;
    int under_way = 0, most = 0;
    std::mutex mutex;
    explicit Busy(FakePerftest& p) : inner(p) {}
    Result<Output> run(const Command& command) override {
      for (const char* look : {"--help", "--version", "muster-none"})
        if (command.argv.back() == look) return inner.run(command);
      {
        const std::lock_guard hold(mutex);
        most = std::max(most, ++under_way);
      }
      auto out = inner.run(command);
      const std::lock_guard hold(mutex);
      --under_way;
      return out;
    }
  } far(two.far);
  auto server = RdmaServer::open({.bind = "127.0.0.1", .seconds = 60, .sessions = 2});
  REQUIRE(server.ok());
  const Files there = two.there.files();
  std::thread serving([&] { (void)server->run(there, far); });
  two.options.port = server->port();
  Measurement one, two_of;
  std::thread first([&] { one = run_rdma(two.here.files(), two.near, two.options); });
  two_of = run_rdma(third.files(), other, two.options);
  first.join();
  serving.join();
  CHECK(one.outcome == Outcome::measured);
  CHECK(two_of.outcome == Outcome::measured);
  CHECK(far.most == 1);
}

TEST_CASE(
    "a partner that is lost in the middle says nothing about its links, and is waited for no longer than the "
    "whole may take") {
  Two two;
  two.here.device("mlx5_0");
  auto listening = Listener::open("127.0.0.1", 0);
  REQUIRE(listening.ok());
  two.options.port = listening->port();
  const auto result = [&] {
    const Measurement m = run_rdma(two.here.files(), two.near, two.options);
    REQUIRE(m.parts.size() == 1);
    CHECK(m.outcome == Outcome::unavailable);
    return m.parts[0]["result"];
  };
  SECTION("gone") {
    const auto answer = [](Connection& link, const Json& json) {
      (void)link.receive();
      const std::string text = json.dump();
      (void)link.send(2, 0, text.data(), text.size());
    };
    std::thread partner([&] {
      Connection link(accept_one(*listening), seconds_now() + 60);
      answer(link, {{"rails", {{{"label", "mlx5_0"}, {"problem", ""}}}}});
      answer(link, {{"granted", true}});
      (void)link.receive();
    });
    const Json lost = result();
    partner.join();
    CHECK(lost["outcome"] == "unavailable");
    CHECK(lost["error"].get<std::string>().find("the partner did not answer request 'serve': ") == 0);
    CHECK(lost["detail"]["inconclusive"] == true);
    CHECK(lost["blame"].empty());
  }
  SECTION("answers of another shape") {
    const auto [hello, granted] = GENERATE(
        std::pair<const char*, const char*>{R"([{"label":"mlx5_0"}])", R"({})"}, std::pair{"7", "{}"},
        std::pair{R"({"rails":{"mlx5_0":7},"perftest_problem":7})", R"({"granted":true})"},
        std::pair{R"({"rails":[{"label":"mlx5_0"}]})", R"({"granted":"yes"})"},
        std::pair{R"({"rails":[{"label":"mlx5_0"}],"perftest_problem":7})", R"({"granted":true})"});
    std::thread partner([&, first = std::string(hello), second = std::string(granted)] {
      Connection link(accept_one(*listening), seconds_now() + 60);
      for (const std::string& text : {first, second})
        if (link.receive().ok()) (void)link.send(2, 0, text.data(), text.size());
    });
    const Json invalid = result();
    partner.join();
    CHECK(invalid["outcome"] == "unavailable");
    CHECK(invalid["blame"].empty());
  }
  SECTION("its server never answers") {
    two.options.total_seconds = two.options.connect_seconds = 0;
    const Json silent = result();
    CHECK(silent["error"].get<std::string>().find("127.0.0.1 does not answer: ") == 0);
    CHECK_FALSE(silent["detail"].contains("inconclusive"));  // either of both may be at fault
  }
  SECTION("no time is left for a test") {
    two.there.device("mlx5_0");
    two.options.total_seconds = 30;  // less than perftest may take
    const Measurement m = two.run();
    CHECK(m.parts[0]["result"]["error"] == "no time was left for this test within the limit of 30 s");
    CHECK(m.parts[0]["result"]["detail"]["inconclusive"] == true);
    CHECK(two.near.runs.empty());
  }
}

TEST_CASE("a partner that holds a node and asks nothing does not keep it from others") {
  const Node node;
  node.device("mlx5_0");
  FakePerftest perftest(node);
  auto server = RdmaServer::open({.bind = "127.0.0.1", .seconds = 60, .sessions = 1, .idle_seconds = 0});
  REQUIRE(server.ok());
  std::thread serving([&] { (void)server->run(node.files(), perftest); });
  const auto fd = connect_until({"127.0.0.1", server->port(), "", 5});
  REQUIRE(fd.ok());
  Connection link(*fd, seconds_now() + 60);
  const std::string reserve = R"({"op":"reserve"})";
  REQUIRE(link.send(1, 0, reserve.data(), reserve.size()).ok());
  REQUIRE(link.receive().ok());
  CHECK(link.receive().error().message == "the peer closed the connection");
  serving.join();  // and with it the lock is free
}

TEST_CASE("a server that no longer accepts takes no connection from the next one on its port") {
  auto first = Listener::open("127.0.0.1", 0);
  REQUIRE(first.ok());
  const uint16_t port = first->port();
  const auto second = Listener::open("127.0.0.1", port);  // as after a restart: both share the port
  REQUIRE(second.ok());
  first->serve_until({.until = 0, .sessions = 0, .from = ""},
                     [](int fd, const std::string&) { ::close(fd); });
  CHECK(first->fd() == -1);
  for (int i = 0; i < 20; ++i) {  // all of them, however they are shared out
    const auto fd = connect_until({"127.0.0.1", port, "", 0});
    REQUIRE(fd.ok());
    const int taken = accept_one(*second);
    CHECK(taken >= 0);
    ::close(taken);
    ::close(*fd);
  }
}

TEST_CASE("GPU memory is measured only where GPU, driver and perftest can, and else the reason is said") {
  const Node node;
  CHECK(gpu_direct(node.files(), "--use_cuda=<id>").problem == "there is no GPU with NVIDIA's driver");
  for (const char* gpu : {"0000:41:00.0", "0000:17:00.0"})
    node.write(std::string("/proc/driver/nvidia/gpus/") + gpu + "/information", "x");
  CHECK(gpu_direct(node.files(), "--report_gbits").problem.find("perftest is built without CUDA") == 0);
  CHECK(gpu_direct(node.files(), "--use_cuda=<id>").problem.find("nvidia_peermem is not loaded") == 0);
  node.write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64\n");
  CHECK(gpu_direct(node.files(), "--use_cuda=<id>\n--use_cuda_dmabuf").dma_buf);
  node.write("/sys/module/nvidia_peermem/version", "550");
  GpuDirect direct = gpu_direct(node.files(), "--use_cuda=<id>\n--use_cuda_dmabuf");
  CHECK(direct.problem == "");
  CHECK_FALSE(direct.dma_buf);
  // The GPU behind the same switch as the port; without any such, the rails take turns.
  const Files files = node.files();
  REQUIRE(files.make_directories("/sys/bus/pci/devices").ok());
  REQUIRE(files
              .symlink("../../../devices/pci0000:40/0000:40:01.0/0000:41:00.0",
                       "/sys/bus/pci/devices/0000:41:00.0")
              .ok());
  REQUIRE(files
              .symlink("../../../devices/pci0000:15/0000:15:01.0/0000:17:00.0",
                       "/sys/bus/pci/devices/0000:17:00.0")
              .ok());
  REQUIRE(files
              .symlink("../../../devices/pci0000:40/0000:40:01.0/0000:42:00.0",
                       "/sys/bus/pci/devices/0000:42:00.0")
              .ok());
  RdmaPort port;
  port.pci = "0000:42:00.0";
  CHECK(nearest_gpu(files, direct, port, 0) == 1);
  port.pci.clear();
  CHECK(nearest_gpu(files, direct, port, 0) == 0);
  CHECK(nearest_gpu(files, direct, port, 1) == 1);

  Two two;
  two.options.gpu_memory = true;
  two.here.device("mlx5_0"), two.there.device("mlx5_0");
  CHECK(run_rdma(two.here.files(), two.near, two.options).error == "there is no GPU with NVIDIA's driver");
  for (const Node* n : {&two.here, &two.there}) {
    n->write("/proc/driver/nvidia/gpus/0000:17:00.0/information", "x");
    n->write("/sys/module/nvidia_peermem/version", "550");
  }
  two.near.help += "  --use_cuda=<cuda device id>\n";
  two.far.help = two.near.help;
  const Measurement m = two.run();
  REQUIRE(m.outcome == Outcome::measured);
  CHECK(m.parts[0]["result"]["check"] ==
        "rdma-gpu-memory");  // one direction only: no link to be weighed against others
  CHECK(m.parts[0]["result"]["metrics"]["gdr_gbps"]["value"] == 0.0315);
  CHECK(m.parts[0]["result"]["metrics"]["gdr_ratio"]["value"].get<double>() == Approx(0.5).epsilon(0.01));
  CHECK(has(two.far.runs.back(), {"--use_cuda=0"}));
}

TEST_CASE("errors of RDMA ports are rates per hour of the worst port, which is named") {
  const Node node;
  const Files files = node.files();
  node.write("/proc/uptime", "1000.50 2000\n");
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    node.device(name);
    node.write(std::string("/sys/class/infiniband/") + name + "/ports/1/counters/symbol_error", "7");
    node.write(std::string("/sys/class/infiniband/") + name + "/ports/1/counters/link_downed", "0");
    node.write(std::string("/sys/class/infiniband/") + name + "/ports/1/hw_counters/rnr_nak_retry_err", "0");
    node.write(std::string("/sys/class/infiniband/") + name + "/ports/1/hw_counters/out_of_sequence", "3");
    node.write(std::string("/sys/class/infiniband/") + name + "/ports/1/hw_counters/packet_seq_err", "1");
  }
  REQUIRE(run_counters(files, {.save = "/run/before.json"}).outcome == Outcome::measured);
  node.write("/proc/uptime", "2800.10 5600\n");  // half an hour later
  node.write("/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "17");
  node.write("/sys/class/infiniband/mlx5_1/ports/1/counters/symbol_error", "107");
  node.write("/sys/class/infiniband/mlx5_1/ports/1/hw_counters/out_of_sequence", "4");
  node.write("/sys/class/infiniband/mlx5_1/ports/1/hw_counters/packet_seq_err", "2");
  const Measurement m = run_counters(files, {.since = "/run/before.json"});
  REQUIRE(m.outcome == Outcome::measured);
  CHECK(m.metrics.at("rdma_symbol_errors").value == 200);
  CHECK(m.metrics.at("rdma_symbol_errors").unit == "/h");
  CHECK(m.metrics.at("rdma_retransmissions").value == 4);
  CHECK(m.metrics.at("rdma_link_downs").value == 0);
  CHECK(m.detail["part"] == "RDMA port mlx5_0 1, RDMA port mlx5_1 1");
  CHECK(m.detail["moved"]["RDMA port mlx5_1 1"]["rdma_symbol_errors"] == 100);
  CHECK(std::count(m.detail["absent"].begin(), m.detail["absent"].end(), "rdma_overruns") == 1);
  CHECK(m.metrics.count("rdma_overruns") == 0);  // not counted is not zero
  CHECK(std::count(m.detail["absent"].begin(), m.detail["absent"].end(), "RDMA ports") == 0);
}
