// Acceptance kernels: small programs that load one part of a node, verify every byte or number they produce,
// and report what they measured. muster-accept (kernels/main.cc) runs exactly one per process and prints its
// Measurement as JSON.
//
// A kernel measures, it never judges: expectations live in the acceptance profile
// (controller/report/verdict.h). The one thing a kernel decides is whether the data was right: wrong data is
// `corrupt`, whatever the speed. Every kernel takes a time budget and keeps to it on a slow (emulated)
// processor by sizing its work from a short probe. Thread: each function blocks its caller and joins every
// thread it started.
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

namespace muster::kernels {

struct NvmlReading;  // kernels/nvml.h

enum class Outcome {
  measured,     // ran, every result was right
  corrupt,      // ran, and data was wrong: `blame` names the part, `error` the first mismatch
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
  std::vector<std::string> blame = {};         // "cpu 3", "direction 10.20.0.11 -> 10.20.0.12"
  std::map<std::string, Metric> metrics = {};  // what profiles refer to, by name
  // Several measurements of one kind, one per part: [{"subject", "like", "result"}]. Null: this is one
  // measurement.
  Json parts = nullptr;
  Json detail = Json::object();  // parameters, time series, per-part figures: evidence for the report
};
// {"check","version","outcome","error","blame","metrics":{name:{"value","unit"}},"detail"}
Json to_json(const Measurement& measurement);
// Process exit status: 0 measured, 1 corrupt or failed, 3 refused or unavailable (2 is bad usage).
int exit_status(Outcome outcome);

// Flips one bit of data the kernel is about to verify. Only for proving that a kernel can fail (tests,
// `--inject-flip`).
struct Flip {
  size_t part = 0;   // which core's, stream's or direction's data
  size_t index = 0;  // which element or byte, modulo what there is
  unsigned bit = 0;
};

// --- dgemm.cc
struct DgemmOptions {
  double seconds = 1.0;
  size_t n = 0;              // matrix edge, up to 1024; 0 = sized by a probe
  size_t threads = 0;        // 0 = one per processor this process may use
  std::string variant = {};  // one of dgemm_variants(); empty = the best
  std::optional<Flip> flip = {};
  Files files = Files();  // source of the processors' data
};
std::vector<std::string> dgemm_variants();  // what this processor can run, best first
// Metrics: gflops (sum over cores), slowest_core_ratio (slowest core / median core).
Measurement run_dgemm(const DgemmOptions& options);

// --- stream.cc
struct StreamOptions {
  double seconds = 1.0;
  size_t max_bytes = 0;  // for the three arrays together; 0 = a quarter of the available memory
  size_t threads = 0;
  std::optional<Flip> flip = {};
  Files files = Files();  // source of the memory's data
};
// Metrics: copy_mbps, scale_mbps, add_mbps, triad_mbps (best round; 1 MB = 10^6 bytes).
Measurement run_stream(const StreamOptions& options);

// --- link.cc
struct LinkServerOptions {
  std::string bind = {};  // numeric address
  uint16_t port = 0;      // 0: any free one (tests)
  double seconds = 60;    // no connection is accepted after this; one accepted before has the same time again
  int sessions = 0;       // exits after this many connections; 0 = only at the deadline
  std::string from = {};  // when set: connections from any other address are closed unanswered
  std::optional<Flip> flip = {};
};
// Binds at construction, so that a client started after it never races with it.
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
  double connect_seconds = 5;  // the peer's server may still be starting
  int pause_ms = 0;            // before it connects
  std::optional<Flip> flip = {};
};
// Metrics: send_mbps, receive_mbps (payload verified at its end; 1 MB = 10^6 bytes), rtt_ms (median),
// rtt_p99_ms. detail.own_port: own_port() of the local address.
Measurement run_link(const Files& files, const LinkOptions& options);

// --- own_port.cc
// The port with this address: {"interface", "mac", "speed_mbps" where it is known}; null: no port has it.
Json own_port(const Files& files, const std::string& address);
// Rates in Gb/s of the active RDMA ports: what NCCL uses between nodes.
Json active_rails(const Files& files);

// --- rdma.cc
struct RdmaServerOptions {
  std::string bind = {};  // numeric address
  uint16_t port = 0;      // perftest uses those above it, one per rail; 0: any free one (tests)
  double seconds = 600;   // accepts no connection after this deadline; exits when the last one ends
  int sessions = 0;       // exits after this many connections; 0 = only at the deadline
  std::string from = {};  // when set: connections from any other address are closed unanswered
  double idle_seconds =
      60;  // a partner that sends no request for this long, outside its tests, no longer reserves this node
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
  int iterations = 1000;       // latency
  double connect_seconds = 5;  // the partner's server may still be starting
  double busy_seconds = 300;   // the partner may be busy with other nodes
  double total_seconds = 585;  // in total; what has not begun by then is not measured
  bool gpu_memory =
      false;  // host memory against GPU memory instead; unavailable where that cannot be measured
};
// One part per rail: {"subject": "", "like": "rail 0", "result": of check "rdma-link" (or
// "rdma-gpu-memory")}. Their metrics: send_gbps, receive_gbps, latency_us, latency_p99_us; with gpu_memory:
// send_gbps, gdr_gbps, gdr_ratio. detail.at_fault says which side ("here", "peer") keeps a rail from being
// measured, where that is known; detail.inconclusive: true where the reason says nothing about the link
// (others were using it, the partner was lost, perftest printed no figure). Without parts this node itself
// cannot measure: no RDMA device, no perftest.
Measurement run_rdma(const Files& files, Process& process, const RdmaOptions& options);

// --- mount.cc
struct MountRule {  // what a path must be before anything is written there
  std::string path = {};
  std::string fstype = {};  // as in mountinfo: "xfs", "fuse*"
  // "*10.20.0.11:9421", "/dev/disk/by-id/..." (links are followed), "disks:..." (base/disk_source.h)
  std::string source = {};
};
// Reads /proc/self/mountinfo below `files`. Code::denied, naming what is there instead, unless `rule.path` is
// itself a mount point whose topmost mount has that type and source.
Status check_mount(const Files& files, const MountRule& rule);
// The source that is mounted there ("/dev/md127"); "" if nothing is.
std::string mounted_source(const Files& files, const std::string& path);

// --- fio.cc
struct FioOptions {
  MountRule mount = {};
  uint64_t size_bytes = 16 << 20;
  double random_seconds = 0;  // > 0: also 4 KiB random reads for this long
  double timeout = 60;
  // Jobs for each drive under the file system, each with its own part of the file; 0: one job in total. One
  // job waits for one block at a time and never uses more than a drive or two.
  int jobs_per_drive = 0;
  // The name of the file, on storage that several nodes share: ".muster-fio.NODE@ORDER". With an order, files
  // left by dead orders of this node are removed first. Empty: this host's name; without an order, a random
  // one.
  std::string node = {}, order = {};
};
// Metrics: write_mbps, read_mbps (1 MB = 10^6 bytes), with random_seconds also random_read_iops and
// random_read_p99_ms. Removes its file in every case. Errors are final: nothing is read or written a second
// time. detail.drives: the serials of the drives under the file system, detail.level: the array's, where they
// are this machine's.
Measurement run_fio(const Files& files, Process& process, const FioOptions& options);

// --- under.cc
struct Under {                           // a file system
  std::vector<std::string> drives = {};  // serials of whole disks, else kernel names; sorted
  std::string level = {};                // of an md array, as the kernel calls it; empty: none
};
// What this block device ("/dev/md127") is made of. Nothing for what is not one.
Under drives_under(const Files& files, const std::string& device);

// --- checksum.cc
struct ChecksumOptions {
  MountRule mount = {};
  std::string name = {};  // file name inside the mount, no slash
  uint64_t size_bytes = 4 << 20;
  uint64_t seed = 1;
  // Reader: "sha256:<hex>" the writer returned; empty: computed from size and seed, with the same result.
  std::string expect = {};
  bool remove_after = false;  // reader
};
// Writes seeded content and syncs it; detail.sha256 is its digest. Metric: write_mbps.
Measurement run_checksum_write(const Files& files, const ChecksumOptions& options);
// Drops the file's cached pages, reads it, compares its digest with `expect`. Metric: read_mbps.
Measurement run_checksum_read(const Files& files, const ChecksumOptions& options);

// --- drives.cc
struct DrivesOptions {
  double seconds = 2.0;  // per drive
  int streams = 4;
  double parallel_seconds = 0;  // > 0: then all drives of one model and size side by side
};
// One part per whole disk, by serial. Metrics: read_mbps, read_p99_ms, and parallel_mbps of drives that were
// read side by side (else detail.absent names it). Opens disks for reading only.
Measurement run_drives(const Files& files, const DrivesOptions& options);

// --- counters.cc
struct CountersOptions {
  std::string save = {};   // save the counters to this file
  std::string since = {};  // or: how much they rose since that file was written
  // How NVIDIA's driver is queried (kernels/nvml.h); empty: it is not.
  std::function<Result<NvmlReading>()> ask_nvml = {};
  bool gpus = false;  // only the driver's counters; unavailable without it
};
// Metrics with `since`: memory_corrected, memory_uncorrected, pcie_corrected, pcie_uncorrected,
// network_errors, link_down, cpu_throttled; lines of the kernel's log: gpu_xids, machine_checks,
// drive_errors (detail.kernel_log; Xids that stand for no broken hardware: detail.kernel_log_noted, by their
// class); where there is a driver, those of kernels/gpu_counters.h. Where there are RDMA ports also,
// per hour of the time between: rdma_symbol_errors, rdma_receive_errors, rdma_link_recoveries,
// rdma_link_downs, rdma_overruns, rdma_rnr_errors, rdma_retransmissions. What could not be read has no
// metric; what only root may read is listed with the reason in detail.not_looked_at: {METRIC: "needs root:
// ..."}.
Measurement run_counters(const Files& files, const CountersOptions& options);

// A removable USB medium, such as a stick or a BMC's virtual disk: not a drive of this machine. What the
// kernel calls removable may also be a drive in a hot-swap bay, or a volume of a RAID controller (aacraid).
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
  bool denied = false;           // this user may not read it; otherwise it does not exist
  uint64_t next = 0;             // sequence number of the record that is not there yet
  std::vector<Line> lines = {};  // about broken hardware
  std::vector<Note> noted = {};  // Xids and SXids that are not, by their class in hardware/xids.yaml
};
// From record `since` on; what the kernel has overwritten is lost.
KernelLog read_kernel_log(const Files& files, uint64_t since);

// --- pcie.cc
// One part per link of a GPU, NIC, storage controller or switch, by PCI address. Metrics: width (lanes),
// speed (GT/s) and ratio, of what both ends can do: width times speed, of GPUs the width alone.
Measurement run_pcie(const Files& files);

// --- expected_machine.cc
struct Machine {                                 // 0: not known
  size_t physical_cores = 0, machine_cores = 0;  // those that were counted; all that are online
  double cpu_mhz = 0;
  bool base_clock = false;  // of all cores under load; else the highest of one
  int units_512 = 0;        // multiply-add units of 512 bits in a core, as far as its model is known
  unsigned dimms = 0, dimm_mt_s = 0, channels = 0;
  bool dimms_denied = false;  // only root may read their table
};
// With `cpus` only the cores that these belong to are counted.
Machine look_at_machine(const Files& files, const std::vector<int>& cpus = {});
// Double precision operations of a core per cycle with a variant of dgemm or of the training load; single
// precision: twice as many. Of AVX-512 what every processor with it does, where the model is not known.
int flops_per_cycle(const std::string& variant, const Machine& machine);

// --- tools.cc: shared by the kernels
double seconds_now();                       // monotonic
std::vector<int> usable_cpus();             // this process's affinity mask
void pin_to_cpu(int cpu);                   // best effort
double median(std::vector<double> values);  // 0 for none
double rounded(double value);               // four significant digits: more would be noise
double percentile(std::vector<double> values, double p);
// Bytes: MemAvailable of /proc/meminfo, and no more than this process's cgroups leave it.
uint64_t available_memory(const Files& files = Files());
// Cheap, good enough generator for content: the same sequence for the same seed on every machine.
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
