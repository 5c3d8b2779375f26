// Reads each whole disk of the node by itself, with direct I/O, to show which drive slows an array down.
//
// How to run:  muster-accept drives --seconds 2 [--streams 4] [--parallel-seconds 2]
// Reference:   none: the content of a disk is unknown, so only the success of each read is checked. Nothing
//              is ever written: disks are opened for reading only. Content is verified by `fio` on the file
//              system above.
// Structure:   one drive after the other; `streams` threads read 1 MiB blocks round robin over the first GiB.
//              Then, with --parallel-seconds, all drives of the same model and size in parallel: the sum is
//              what an array of them can be expected to reach.
// Expected:    PCIe 4.0 x4 NVMe: 5 to 7 GB/s; a drive much slower than others of its model is worn, throttled
//              or on a narrow link.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "host/real_drives.h"
#include "kernels/drives/drives.h"

namespace muster::kernels {

namespace {

constexpr uint64_t kBlock = 1 << 20, kSpan = uint64_t{1} << 30;

struct Drive {
  std::string name = {}, serial = {}, model = {}, address = {};
  uint64_t bytes = 0;
};

Drive describe(const Files& files, const std::string& name) {
  const std::string device = "/sys/block/" + name + "/device";
  Drive d;
  d.name = name;
  d.serial = files.read_line(device + "/serial");
  if (d.serial.empty()) d.serial = files.read_line("/sys/block/" + name + "/serial");
  d.model = files.read_line(device + "/model");
  d.address = files.read_line(device + "/address");
  d.bytes = std::strtoull(files.read_line("/sys/block/" + name + "/size", "0").c_str(), nullptr, 10) * 512;
  return d;
}

struct Reading {
  std::mutex mutex = {};
  std::vector<double> milliseconds = {};
  std::string error = {};
  uint64_t bytes = 0;
  double mbps = 0;
};

// Opened for reading only; closes it.
class Disk {
 public:
  Disk(const Files& files, const Drive& drive)
      : blocks_(std::max<uint64_t>(std::min(drive.bytes, kSpan) / kBlock, 1)) {
    const std::string device = files.real("/dev/" + drive.name);
    fd_ = ::open(device.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    direct_ = fd_ >= 0;
    if (fd_ < 0 && errno == EINVAL) fd_ = ::open(device.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) errno_ = errno, error_ = std::strerror(errno);
  }
  ~Disk() {
    if (fd_ >= 0) ::close(fd_);
  }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  int fd() const { return fd_; }
  bool direct() const { return direct_; }
  uint64_t blocks() const { return blocks_; }
  const std::string& error() const { return error_; }
  // True if a cgroup, a sandbox or the file's mode denied access, which is no evidence against the drive.
  bool is_forbidden() const { return errno_ == EPERM || errno_ == EACCES; }
  std::atomic<uint64_t> next{0};  // block

 private:
  int fd_ = -1;
  bool direct_ = false;
  uint64_t blocks_;
  int errno_ = 0;  // of open
  std::string error_;
};

void read_stream(Disk& disk, double until, Reading& out) {
  void* buffer = std::aligned_alloc(4096, kBlock);
  std::vector<double> times;
  uint64_t bytes = 0;
  std::string error;
  do {
    const double start = seconds_now();
    const ssize_t n =
        ::pread(disk.fd(), buffer, kBlock, static_cast<off_t>(disk.next++ % disk.blocks() * kBlock));
    if (n <= 0) {
      error = n == 0 ? "unexpected end of disk" : std::strerror(errno);
      break;
    }
    bytes += static_cast<uint64_t>(n);
    times.push_back((seconds_now() - start) * 1000);
  } while (seconds_now() < until);
  std::free(buffer);
  const std::lock_guard hold(out.mutex);
  out.bytes += bytes;
  out.milliseconds.insert(out.milliseconds.end(), times.begin(), times.end());
  if (out.error.empty()) out.error = error;
}

// Reads all drives of the group at the same time, each with its own streams.
std::vector<Reading> read_together(const std::vector<Disk*>& disks, double seconds, int streams) {
  std::vector<Reading> out(disks.size());
  std::vector<std::thread> threads;
  const double start = seconds_now();
  for (size_t i = 0; i < disks.size(); ++i)
    for (int n = 0; n < std::max(streams, 1); ++n)
      threads.emplace_back([&, i] { read_stream(*disks[i], start + seconds, out[i]); });
  for (auto& t : threads) t.join();
  const double took = std::max(seconds_now() - start, 1e-9);
  for (auto& reading : out) reading.mbps = static_cast<double>(reading.bytes) / took / 1e6;
  return out;
}

std::string part_name(const Drive& drive) {
  return fmt::format("drive {} ({}{}{})", drive.serial.empty() ? drive.name : drive.serial, drive.model,
                     drive.address.empty() ? "" : ", ", drive.address);
}

void set_failed(Measurement& out, const Drive& drive, std::string error) {
  out.outcome = Outcome::failed;
  out.error = std::move(error);
  out.faulty_parts = {part_name(drive)};
}

Measurement read_drive(const Files& files, const Drive& drive, const DrivesOptions& options) {
  Measurement out;
  out.check = "drives";
  out.detail = {{"part", part_name(drive)},
                {"kernel_name", drive.name},
                {"streams", options.streams},
                {"absent", {"parallel_mbps"}},
                {"verified", "every read succeeded; the content is not compared"}};
  Disk disk(files, drive);
  out.detail["direct"] = disk.direct();
  if (disk.is_forbidden()) {
    out.outcome = Outcome::unavailable;
    out.error = fmt::format("no permission to open {}: {}", drive.name, disk.error());
    out.detail["not_looked_at"] = out.error;
    return out;
  }
  if (disk.fd() < 0) {
    set_failed(out, drive, fmt::format("{} cannot be read: {}", drive.name, disk.error()));
    return out;
  }
  const auto readings = read_together({&disk}, options.seconds, options.streams);
  const Reading& reading = readings.front();
  out.metrics["read_mbps"] = {reading.mbps, "MB/s"};
  out.metrics["read_p99_ms"] = {percentile(reading.milliseconds, 0.99), "ms"};
  out.detail["bytes"] = reading.bytes;
  if (!reading.error.empty())
    set_failed(out, drive, fmt::format("reading {}: {}", drive.name, reading.error));
  return out;
}

struct Measured {
  Drive drive = {};
  std::string like = {};
  Measurement result = {};
};

// Measures drives of the same kind in parallel, since they share switches and processors, and an array uses
// all of them. Drives that failed when read alone are left out.
void read_side_by_side(const Files& files, std::vector<Measured>& all, const DrivesOptions& options) {
  std::map<std::string, std::vector<Measured*>> kinds;
  for (auto& one : all)
    if (one.result.outcome == Outcome::measured) kinds[one.like].push_back(&one);
  for (auto& [like, group] : kinds) {
    if (group.size() < 2) continue;
    std::vector<std::unique_ptr<Disk>> open;
    std::vector<Disk*> disks;
    for (const auto* one : group) {
      open.push_back(std::make_unique<Disk>(files, one->drive));
      disks.push_back(open.back().get());
    }
    const auto readings = read_together(disks, options.parallel_seconds, options.streams);
    for (size_t i = 0; i < group.size(); ++i) {
      Measurement& out = group[i]->result;
      out.metrics["parallel_mbps"] = {readings[i].mbps, "MB/s"};
      out.detail["side_by_side"] = group.size();
      out.detail.erase("absent");
      if (!readings[i].error.empty())
        set_failed(out, group[i]->drive,
                   fmt::format("reading {} at the same time as {} others: {}", group[i]->drive.name,
                               group.size() - 1, readings[i].error));
    }
  }
}

}  // namespace

Measurement run_drives(const Files& files, const DrivesOptions& options) {
  Measurement out;
  out.check = "drives";
  out.parts = Json::array();
  std::vector<Measured> all;
  std::set<std::string> serials;
  for (const auto& name : real_drives(files)) {
    Drive drive = describe(files, name);
    // All namespaces of an NVMe drive have its serial number.
    if (!drive.serial.empty() && !serials.insert(drive.serial).second)
      drive.serial += "/" + files.read_line("/sys/block/" + name + "/nsid", name);
    all.push_back({drive, fmt::format("{} {}", drive.model, drive.bytes), read_drive(files, drive, options)});
  }
  if (options.parallel_seconds > 0) read_side_by_side(files, all, options);
  for (const auto& one : all)
    out.parts.push_back({{"subject", one.drive.serial.empty() ? one.drive.name : one.drive.serial},
                         {"like", one.like},
                         {"result", to_json(one.result)}});
  return out;
}

}  // namespace muster::kernels
