// Each whole disk of the node on its own: direct reads, so that an array that is slow shows which of its
// drives is.
//
// How to run:  muster-accept drives --seconds 2 [--streams 4]
// Reference:   none: what is on a disk is not ours to know, so only that every read returns. Nothing is ever
//              written: disks are opened for reading only. Content is verified by `fio` on the file system
//              above.
// Structure:   one drive after the other; `streams` threads read 1 MiB blocks round robin over the first GiB.
// Expected:    PCIe 4.0 x4 NVMe: 5 to 7 GB/s; a drive at a fraction of its like is worn, throttled or on a
//              narrow link.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <mutex>
#include <thread>

#include "kernels/kernels.h"

namespace muster::kernels {
namespace {

constexpr uint64_t kBlock = 1 << 20, kSpan = uint64_t{1} << 30;

// Kernel names of whole disks: what has a device behind it. Arrays, loops and mapped devices have none.
std::vector<std::string> whole_disks(const Files& files) {
  std::vector<std::string> out;
  for (const auto& name : files.list("/sys/block")) {
    const std::string folder = "/sys/block/" + name;
    if (!files.exists(folder + "/device") || files.read_line(folder + "/removable", "0") == "1") continue;
    if (files.read_line(folder + "/size", "0") == "0") continue;
    if (files.read_line(folder + "/hidden") == "1")
      continue;  // one path of a multipath NVMe, which is listed itself
    out.push_back(name);
  }
  return out;
}

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
};

void read_stream(int fd, uint64_t blocks, std::atomic<uint64_t>& next, double until, Reading& out) {
  void* buffer = std::aligned_alloc(4096, kBlock);
  std::vector<double> times;
  uint64_t bytes = 0;
  std::string error;
  do {
    const double start = seconds_now();
    const ssize_t n = ::pread(fd, buffer, kBlock, static_cast<off_t>(next++ % blocks * kBlock));
    if (n <= 0) {
      error = n == 0 ? "the disk ended early" : std::strerror(errno);
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

Measurement read_drive(const Files& files, const Drive& drive, const DrivesOptions& options) {
  Measurement out;
  out.check = "drives";
  const std::string part = fmt::format("drive {} ({}{}{})", drive.serial.empty() ? drive.name : drive.serial,
                                       drive.model, drive.address.empty() ? "" : ", ", drive.address);
  out.detail = {{"part", part},
                {"kernel_name", drive.name},
                {"streams", options.streams},
                {"verified", "every read returned; what is on a disk is not ours to know"}};
  const std::string device = files.real("/dev/" + drive.name);
  int fd = ::open(device.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  out.detail["direct"] = fd >= 0;
  if (fd < 0 && errno == EINVAL) fd = ::open(device.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    out.outcome = Outcome::failed;
    out.error = fmt::format("{} cannot be read: {}", drive.name, std::strerror(errno));
    out.blame = {part};
    return out;
  }
  Reading reading;
  std::atomic<uint64_t> next{0};
  const uint64_t blocks = std::max<uint64_t>(std::min(drive.bytes, kSpan) / kBlock, 1);
  const double start = seconds_now();
  std::vector<std::thread> threads;
  for (int i = 0; i < std::max(options.streams, 1); ++i)
    threads.emplace_back([&] { read_stream(fd, blocks, next, start + options.seconds, reading); });
  for (auto& t : threads) t.join();
  ::close(fd);
  const double took = std::max(seconds_now() - start, 1e-9);
  out.metrics["read_mbps"] = {static_cast<double>(reading.bytes) / took / 1e6, "MB/s"};
  out.metrics["read_p99_ms"] = {percentile(reading.milliseconds, 0.99), "ms"};
  out.detail["bytes"] = reading.bytes;
  if (reading.error.empty()) return out;
  out.outcome = Outcome::failed;
  out.error = fmt::format("reading {}: {}", drive.name, reading.error);
  out.blame = {part};
  return out;
}

}  // namespace

Measurement run_drives(const Files& files, const DrivesOptions& options) {
  Measurement out;
  out.check = "drives";
  out.parts = Json::array();
  for (const auto& name : whole_disks(files)) {
    const Drive drive = describe(files, name);
    out.parts.push_back({{"subject", drive.serial.empty() ? drive.name : drive.serial},
                         {"like", fmt::format("{} {}", drive.model, drive.bytes)},
                         {"result", to_json(read_drive(files, drive, options))}});
  }
  return out;
}

}  // namespace muster::kernels
