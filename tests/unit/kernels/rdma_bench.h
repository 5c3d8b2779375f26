// Two nodes with RDMA devices on loopback, and a perftest under the test's control. Header-only; tests only.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/common/kernels.h"
#include "kernels/rdma/rdma.h"
#include "kernels/rdma/rdma_link.h"
#include "tests/catch.h"

namespace muster::tests {

using namespace kernels;

// As printed by perftest 4.5 of Debian 12 between two emulated machines over soft-RoCE.
inline constexpr const char* kBandwidth =
    R"(---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF		Device         : rxe0
 Number of qps   : 1		Transport type : IB
 Connection type : RC		Using SRQ      : OFF
 PCIe relax order: ON
 ibv_wr* API     : OFF
 TX depth        : 128
 CQ Moderation   : 1
 Mtu             : 1024[B]
 Link type       : Ethernet
 GID index       : 1
 Max inline data : 0[B]
 rdma_cm QPs	 : OFF
 Data ex. method : Ethernet
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x00ad PSN 0xe6e732 RKey 0x0014d6 VAddr 0x007f5d8a790000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:20:00:13
 remote address: LID 0000 QPN 0x00ad PSN 0x6a3c26 RKey 0x0014ff VAddr 0x007f7d5c5a5000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:20:00:11
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      242           0.000000            0.062939            0.000120
---------------------------------------------------------------------------------------
)";
inline constexpr const char* kLatency =
    R"(---------------------------------------------------------------------------------------
                    RDMA_Write Latency Test
 Dual-port       : OFF		Device         : rxe0
 Number of qps   : 1		Transport type : IB
 Connection type : RC		Using SRQ      : OFF
 PCIe relax order: OFF
 ibv_wr* API     : OFF
 TX depth        : 1
 Mtu             : 1024[B]
 Link type       : Ethernet
 GID index       : 1
 Max inline data : 0[B]
 rdma_cm QPs	 : OFF
 Data ex. method : Ethernet
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x00ae PSN 0xa77be2 RKey 0x001510 VAddr 0x0055bede6c2000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:20:00:13
 remote address: LID 0000 QPN 0x00ae PSN 0xe4fc80 RKey 0x0015b5 VAddr 0x00556c78f7b000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:20:00:11
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 8       200          414.56         24873.46      6303.89  	       6498.33     	3878.43		22576.68 		24873.46
---------------------------------------------------------------------------------------
)";
inline constexpr const char* kGbps = "0.062939";  // its average

class RdmaNode {  // a folder that plays a machine with RDMA devices
 public:
  RdmaNode() {
    char pattern[] = "/tmp/muster-rdma-test.XXXXXX";
    path_ = ::mkdtemp(pattern);
    REQUIRE(files().make_directories("/run").ok());
  }
  ~RdmaNode() { (void)make_process()->run({.argv = {"rm", "-rf", "--", path_}}); }
  Files files() const { return Files(path_); }
  void write(const std::string& path, const std::string& text) const {
    REQUIRE(files().write(path, text).ok());
  }
  // InfiniBand, at a place on PCI.
  void placed(const std::string& name, const std::string& pci,
              const std::string& rate = "400 Gb/sec (4X NDR)") const {
    const std::string at = "/sys/class/infiniband/" + name;
    write(at + "/ports/1/state", "4: ACTIVE\n");
    write(at + "/ports/1/rate", rate + "\n");
    write(at + "/ports/1/link_layer", "InfiniBand\n");
    REQUIRE(files().make_directories("/sys/devices/pci0000:00/" + pci).ok());
    REQUIRE(files().symlink("../../../devices/pci0000:00/" + pci, at + "/device").ok());
  }
  void device(const std::string& name, const std::string& rate = "200 Gb/sec (4X HDR)",
              const std::string& state = "4: ACTIVE") const {
    const std::string port = "/sys/class/infiniband/" + name + "/ports/1";
    write(port + "/state", state + "\n");
    write(port + "/rate", rate + "\n");
    write(port + "/link_layer", "Ethernet\n");
    const std::string gids[] = {"fe80:0000:0000:0000:5054:00ff:fe20:0001",
                                "0000:0000:0000:0000:0000:ffff:0a14:000b",
                                "0000:0000:0000:0000:0000:ffff:0a14:000b"};
    const std::string types[] = {"RoCE v2", "IB/RoCE v1", "RoCE v2"};
    for (int i = 0; i < 3; ++i) {
      write(port + "/gids/" + std::to_string(i), gids[i] + "\n");
      write(port + "/gid_attrs/types/" + std::to_string(i), types[i] + "\n");
    }
  }

 private:
  std::string path_;
};

// A serving perftest is listening as soon as it was started; a measuring one prints its table.
struct FakePerftest : Process {
  explicit FakePerftest(const RdmaNode& on) : node(on) {}
  const RdmaNode& node;
  bool installed = true;
  std::string finds = "IB device muster-none not found\n";  // for a device that is not there
  std::string broken = {};                                  // device on which it fails
  std::string says = " Completion with error at client\n";  // on that one
  std::string ends = {};                                    // device on which its server ends at once
  int zeros = 0;                                            // so many times it ends well and tells no figure
  std::string help = "Usage:\n  --report_gbits\n";
  std::string version = "6.06", carried_version = {}, carried_error = {};  // "": there is none
  int carried_status = 127;                                                // with `carried_error`
  std::string listening = {};
  std::vector<std::vector<std::string>> runs = {};
  std::mutex mutex = {};

  Result<Output> run(const Command& command) override {
    const std::lock_guard hold(mutex);
    const bool carried = command.argv[0] == "env";
    if (command.argv.back() == "--version" && carried)
      return carried_version.empty() ? Output{carried_status, "", carried_error}
                                     : Output{1, "Version: " + carried_version + "\n", ""};
    const bool starts_own = std::count(command.argv.begin(), command.argv.end(), "ib_write_bw") +
                                std::count(command.argv.begin(), command.argv.end(), "ib_write_lat") >
                            0;
    if (!installed && starts_own) return fail(Code::not_found, command.argv[0] + ": not found");
    if (command.argv.back() == "--help") return Output{1, help, ""};
    if (command.argv.back() == "--version") return Output{1, "Version: " + version + "\n", ""};
    if (command.argv.back() == "muster-none") return Output{1, "", finds};
    runs.push_back(command.argv);
    if (std::count(command.argv.begin(), command.argv.end(), broken)) return Output{1, "", says};
    if (std::count(command.argv.begin(), command.argv.end(), ends) && command.argv.back() != "127.0.0.1")
      return Output{1, "", " Couldn't allocate MR\n"};
    const bool latency = std::any_of(command.argv.begin(), command.argv.end(),
                                     [](const auto& word) { return word.ends_with("ib_write_lat"); });
    const bool gpu = std::any_of(command.argv.begin(), command.argv.end(),
                                 [](const auto& word) { return word.starts_with("--use_cuda="); });
    if (command.argv.back() == "127.0.0.1") {
      std::string text = latency ? kLatency : kBandwidth;
      if (!latency && zeros > 0) --zeros, text.replace(text.find(kGbps), 8, "0.000000");
      if (gpu) text.replace(text.find(kGbps), 8, "0.031500");
      return Output{0, text, ""};
    }
    const auto port = std::find(command.argv.begin(), command.argv.end(), "-p") + 1;
    char line[100];
    snprintf(line, sizeof line, "   0: 00000000:%04X 00000000:0000 0A 00000000:00000000\n",
             static_cast<unsigned>(std::stoi(*port)));
    node.write("/proc/net/tcp", listening += line);
    return Output{0, "", ""};
  }
};

struct Two {
  RdmaNode here, there;
  FakePerftest near{here}, far{there};
  RdmaOptions options = {.to = "127.0.0.1", .seconds = 2, .connect_seconds = 1, .busy_seconds = 20};
  CarriedPerftest carried_there = {};
  Measurement served = {};
  Measurement run() {
    auto server =
        RdmaServer::open({.bind = "127.0.0.1", .seconds = 60, .sessions = 1, .perftest = carried_there});
    REQUIRE(server.ok());
    const Files there_files = there.files();
    std::thread serving([&] { served = server->run(there_files, far); });
    options.port = server->port();
    Measurement out = run_rdma(here.files(), near, options);
    serving.join();
    return out;
  }
};

}  // namespace muster::tests
