// Acceptance kernels: small programs that load one part of a node, verify every byte or number they produce,
// and report what they measured. muster-accept (kernels/main.cc) runs exactly one per process and prints its
// Measurement as JSON.
//
// A kernel measures and does not judge: expected values are in the acceptance profile
// (controller/report/verdict.h). A kernel decides only whether the data was right: wrong data is `corrupt`,
// whatever the speed. Every kernel has a time budget, and meets it even on a slow (emulated) processor by
// sizing its work from a short probe. Thread safety: each function blocks its caller and joins every thread
// that it started.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/os.h"
#include "base/result.h"
#include "kernels/connection.h"
#include "kernels/turns.h"

namespace muster::kernels {

struct NvmlReading;  // kernels/nvml.h

enum class Outcome {
  measured,     // ran, every result was right
  corrupt,      // ran, and data was wrong: `faulty_parts` names the part, `error` the first mismatch
  failed,       // ran, and the part under test returned an error or hung
  refused,      // a precondition does not hold (wrong mount); nothing was written
  unavailable,  // could not run (no peer, program missing, not enough memory)
};
std::string_view to_string(Outcome outcome);

struct Metric {
  double value = 0;
  std::string unit = {};
};

struct Measurement {
  std::string check = {};  // "dgemm", "stream", "link", "fio", "checksum"
  Outcome outcome = Outcome::measured;
  std::string error = {};                      // for people; empty when measured
  std::vector<std::string> faulty_parts = {};  // "cpu 3", "direction 10.20.0.11 -> 10.20.0.12"
  std::map<std::string, Metric> metrics = {};  // by the names that profiles use
  // Several measurements of the same kind, one per part: [{"subject", "like", "result"}]. Null: a single
  // measurement.
  Json parts = nullptr;
  Json detail = Json::object();  // parameters, time series, per-part figures: evidence for the report
};
// {"check","version","outcome","error","blame","metrics":{name:{"value","unit"}},"detail"}
Json to_json(const Measurement& measurement);
// Process exit status: 0 measured, 1 corrupt or failed, 3 refused or unavailable (2 is bad usage).
int exit_status(Outcome outcome);

// Flips one bit of the data that a kernel is about to verify, to show that the kernel detects it (tests,
// `--inject-flip`).
struct Flip {
  size_t part = 0;   // the core, stream or direction whose data is changed
  size_t index = 0;  // the element or byte, modulo their number
  unsigned bit = 0;
};

// --- dgemm.cc
struct DgemmOptions {
  double seconds = 1.0;
  size_t n = 0;              // matrix edge, up to 1024; 0 = sized by a probe
  size_t threads = 0;        // 0 = one per processor this process may use
  std::string variant = {};  // one of dgemm_variants(); empty = the best
  std::optional<Flip> flip = {};
  Files files = Files();  // root of /proc and /sys for processor data
};
std::vector<std::string> dgemm_variants();  // those that this processor supports, best first
// Metrics: gflops (sum over cores), slowest_core_ratio (slowest core / median core).
Measurement run_dgemm(const DgemmOptions& options);

// --- stream.cc
struct StreamOptions {
  double seconds = 1.0;
  size_t max_bytes = 0;  // for the three arrays together; 0 = a quarter of the available memory
  size_t threads = 0;
  std::optional<Flip> flip = {};
  Files files = Files();  // root of /proc and /sys for memory data
};
// Metrics: copy_mbps, scale_mbps, add_mbps, triad_mbps (best round; 1 MB = 10^6 bytes).
Measurement run_stream(const StreamOptions& options);

// --- link.cc
struct LinkServerOptions {
  std::string bind = {};  // numeric address
  uint16_t port = 0;      // 0: any free one (tests)
  double seconds = 60;    // stops accepting after this time; each accepted connection may take as long again
  int sessions = 0;       // exits after this many connections; 0 = only at the deadline
  std::string from = {};  // when set: connections from any other address are closed unanswered
  std::optional<Flip> flip = {};
};
// Listens once open() has returned, so a client that is started afterwards never finds the port closed.
class LinkServer {
 public:
  static Result<LinkServer> open(LinkServerOptions options);
  uint16_t port() const { return listener_.port(); }
  // Serves until the deadline or the last session.
  Measurement run();

 private:
  LinkServer(LinkServerOptions options, Listener listener)
      : options_(std::move(options)), listener_(std::move(listener)) {}
  LinkServerOptions options_;
  Listener listener_;
};

struct LinkOptions {
  std::string to = {};
  uint16_t port = 0;
  double seconds = 1.0;        // for both directions together
  std::string bind = {};       // local address, to choose the path; empty: the system's choice
  double connect_seconds = 5;  // how long to retry: the peer's server may still be starting
  WantedTurn turn = {};        // needs a link-serve at `bind` and `port` as well
  std::optional<Flip> flip = {};
};
// Metrics: send_mbps, receive_mbps (payload verified on receipt; 1 MB = 10^6 bytes), rtt_ms (median),
// rtt_p99_ms. detail.own_port: own_port() of the local address; detail.turn: the turn that was granted, if
// one was wanted.
Measurement run_link(const Files& files, const LinkOptions& options);

// --- own_port.cc
// Returns the port with this address: {"interface", "mac", "speed_mbps" if known}; null: no port has it.
Json own_port(const Files& files, const std::string& address);
// Returns the rates in Gb/s of the active RDMA ports, which NCCL uses between nodes.
Json active_rails(const Files& files);

// --- rdma.cc
struct RdmaServerOptions {
  std::string bind = {};  // numeric address
  uint16_t port = 0;      // perftest uses the ports above it, one per rail; 0: any free port (tests)
  double seconds = 600;   // accepts no connection after this deadline; exits when the last one ends
  int sessions = 0;       // exits after this many connections; 0 = only at the deadline
  std::string from = {};  // when set: connections from any other address are closed unanswered
  // A partner that sends no request for this long between tests loses its reservation of this node.
  double idle_seconds = 60;
};
class RdmaServer {
 public:
  static Result<RdmaServer> open(RdmaServerOptions options);
  uint16_t port() const { return listener_.port(); }
  Measurement run(const Files& files, Process& process);

 private:
  RdmaServer(RdmaServerOptions options, Listener listener)
      : options_(std::move(options)), listener_(std::move(listener)) {}
  RdmaServerOptions options_;
  Listener listener_;
};

struct RdmaOptions {
  std::string to = {};
  uint16_t port = 0;
  std::string bind = {};
  double seconds = 3;          // whole seconds, each direction
  int iterations = 1000;       // of the latency test
  double connect_seconds = 5;  // how long to retry: the partner's server may still be starting
  double busy_seconds = 300;   // how long to wait for a partner that is busy with other nodes
  double total_seconds = 585;  // overall limit; tests that have not begun by then are skipped
  bool gpu_memory =
      false;  // instead compares GPU memory with host memory; `unavailable` where that is impossible
};
// One part per rail: {"subject": "", "like": "rail 0", "result": of check "rdma-link" (or
// "rdma-gpu-memory")}. Their metrics: send_gbps, receive_gbps, latency_us, latency_p99_us; with gpu_memory:
// send_gbps, gdr_gbps, gdr_ratio. detail.at_fault: the side ("here", "peer") that prevents the measurement of
// a rail, if known; detail.inconclusive: true if the failure is not evidence against the link (other traffic
// on it, connection to the partner lost, no figure from perftest). No parts: this node itself cannot measure
// (no RDMA device, no perftest).
Measurement run_rdma(const Files& files, Process& process, const RdmaOptions& options);

// --- mount.cc
struct MountRule {  // what must be mounted at a path before anything is written there
  std::string path = {};
  std::string fstype = {};  // as in mountinfo: "xfs", "fuse*"
  // "*10.20.0.11:9421", "/dev/disk/by-id/..." (links are followed), "disks:..." (base/disk_source.h)
  std::string source = {};
};
// Checks /proc/self/mountinfo below `files`. Code::denied, naming what is mounted instead, unless `rule.path`
// is itself a mount point whose topmost mount has that type and source.
Status check_mount(const Files& files, const MountRule& rule);
// Returns the source that is mounted at `path` ("/dev/md127"); "" if nothing is.
std::string mounted_source(const Files& files, const std::string& path);

// --- fio.cc
struct FioOptions {
  MountRule mount = {};
  uint64_t size_bytes = 16 << 20;
  double random_seconds = 0;  // > 0: also 4 KiB random reads for this long
  double timeout = 60;
  // fio jobs per drive under the file system, each with its own part of the file; 0: one job in total. A
  // single job has one block in flight at a time, and so never keeps more than a drive or two busy.
  int jobs_per_drive = 0;
  // These make the file's name unique on storage that several nodes share: ".muster-fio.NODE@ORDER". With
  // an order, files left behind by ended orders of this node are removed first. Empty node: this host's name;
  // empty order: a random one.
  std::string node = {}, order = {};
};
// Metrics: write_mbps, read_mbps (1 MB = 10^6 bytes), with random_seconds also random_read_iops and
// random_read_p99_ms. Always removes its file. Errors are final: no read or write is retried.
// detail.drives: serials of the drives under the file system; detail.level: its RAID level; both for local
// drives only.
Measurement run_fio(const Files& files, Process& process, const FioOptions& options);

// --- under.cc
struct Under {                           // what a file system is stored on
  std::vector<std::string> drives = {};  // serials of whole disks, else kernel names; sorted
  std::string level = {};                // RAID level of an md array ("raid5"); empty: no md array
};
// Returns the drives that back this block device ("/dev/md127"); empty if it is not a block device.
Under drives_under(const Files& files, const std::string& device);

// --- checksum.cc
struct ChecksumOptions {
  MountRule mount = {};
  std::string name = {};  // file name inside the mount, no slash
  uint64_t size_bytes = 4 << 20;
  uint64_t seed = 1;
  // Reader: the writer's "sha256:<hex>"; empty: computed from size and seed, with the same result.
  std::string expect = {};
  bool remove_after = false;  // reader
};
// Writes content generated from the seed and syncs it; detail.sha256 is its digest. Metric: write_mbps.
Measurement run_checksum_write(const Files& files, const ChecksumOptions& options);
// Drops the file's cached pages, reads it, compares its digest with `expect`. Metric: read_mbps.
Measurement run_checksum_read(const Files& files, const ChecksumOptions& options);

// --- drives.cc
struct DrivesOptions {
  double seconds = 2.0;  // per drive
  int streams = 4;
  double parallel_seconds = 0;  // > 0: afterwards all drives of the same model and size in parallel
};
// One part per whole disk, by serial. Metrics: read_mbps, read_p99_ms, and parallel_mbps for drives that were
// read in parallel (for others detail.absent names it). Opens disks for reading only.
Measurement run_drives(const Files& files, const DrivesOptions& options);

// --- counters.cc
struct CountersOptions {
  std::string save = {};   // save the counters to this file
  std::string since = {};  // or report the increase since this file was saved
  // Queries NVIDIA's driver (kernels/nvml.h); empty: the driver is not queried.
  std::function<Result<NvmlReading>()> query_nvml = {};
  bool gpus = false;  // read only the GPU driver's counters; `unavailable` without a driver
};
// Metrics with `since`: memory_corrected, memory_uncorrected, pcie_corrected, pcie_uncorrected,
// network_errors, link_down, cpu_throttled; from lines in the kernel log: gpu_xids, machine_checks,
// drive_errors (detail.kernel_log; Xids that do not indicate broken hardware: detail.kernel_log_noted, by
// class); with a GPU driver, those of kernels/gpu_counters.h. With RDMA ports also, as rates per hour since
// the saved counters: rdma_symbol_errors, rdma_receive_errors, rdma_link_recoveries, rdma_link_downs,
// rdma_overruns, rdma_rnr_errors, rdma_retransmissions. A counter that cannot be read has no metric; one that
// only root may read is listed with the reason in detail.not_looked_at: {METRIC: "needs root:
// ..."}.
Measurement run_counters(const Files& files, const CountersOptions& options);

// True if it is a removable USB medium (a stick, a BMC's virtual disk), which does not belong to the machine.
// The kernel's `removable` flag alone may also mark a hot-swap drive or a RAID controller's volume (aacraid).
bool is_removable_medium(const Files& files, const std::string& name);

// --- kernel_log.cc
struct KernelLog {
  struct Line {
    std::string metric = {}, part = {}, text = {};
  };
  struct Note {
    std::string group = {}, part = {}, text = {};  // "application", "event", "unknown", "fatal", "nonfatal"
  };
  bool readable = false;
  bool denied = false;           // if not readable: true if permission is missing, false if there is no log
  uint64_t next = 0;             // sequence number that the next new record will have
  std::vector<Line> lines = {};  // about broken hardware
  std::vector<Note> noted = {};  // Xids and SXids of any other class in hardware/xids.yaml
};
// Reads the kernel log from record `since` on; records that the kernel has overwritten are lost.
KernelLog read_kernel_log(const Files& files, uint64_t since);

// --- pcie.cc
// One part per link of a GPU, NIC, storage controller or switch, by PCI address. Metrics: width (lanes),
// speed (GT/s), and ratio: width times speed (GPUs: width only) relative to the maximum of both ends.
Measurement run_pcie(const Files& files);

// --- expected_machine.cc
struct Machine {                                 // 0: not known
  size_t physical_cores = 0, machine_cores = 0;  // cores of the selected CPUs; all online cores
  double cpu_mhz = 0;
  bool base_clock = false;  // true: all cores sustain cpu_mhz under load; false: it is one core's maximum
  int units_512 = 0;        // 512-bit multiply-add units per core; 0 for unknown models
  unsigned dimms = 0, dimm_mt_s = 0, channels = 0;
  bool dimms_denied = false;  // the SMBIOS table is readable by root only
};
// Reads the machine's properties; with `cpus`, physical_cores counts only the cores of these CPUs.
Machine look_at_machine(const Files& files, const std::vector<int>& cpus = {});
// Returns the double precision operations per core and cycle for a variant of dgemm or the training load
// (single precision: twice as many). AVX-512 on an unknown model: the rate that all such processors reach.
int flops_per_cycle(const std::string& variant, const Machine& machine);

// --- tools.cc: shared by the kernels
double seconds_now();                       // monotonic
std::vector<int> usable_cpus();             // this process's affinity mask
void pin_to_cpu(int cpu);                   // best effort
double median(std::vector<double> values);  // 0 for none
double rounded(double value);               // four significant digits: more would be noise
double percentile(std::vector<double> values, double p);
// Returns the smaller of /proc/meminfo's MemAvailable and what this process's cgroups leave free, in bytes.
uint64_t available_memory(const Files& files = Files());
// A cheap pseudo-random generator for test data: the same seed gives the same sequence on every machine.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};
void fill_random(SplitMix& random, char* out, size_t bytes);

}  // namespace muster::kernels
