// Local or shared storage through fio: sequential write, then read back with every block verified.
//
// How to run:  muster-accept fio --path /scratch --size 16 --fstype xfs --source /dev/md/scratch [--random-seconds 0]
// Reference:   fio's own verification (xxhash per 1 MiB block, offset in each block header), reading from the device: direct
//              I/O, or, where the file system has none, after invalidating the page cache (detail.direct says which).
// Before:      the path must be a mount point with the declared type and source, checked before and after; there must be
//              room for twice the file.
// Expected:    local RAID0 >= 3.2 x one drive with four drives; a result equal to one drive means a wrong chunk or a
//              narrow PCIe link. Under emulation the numbers mean nothing, the verification does.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fmt/format.h>
#include <thread>

#include "kernels/kernels.h"

namespace muster::kernels {
namespace {

Command fio_command(const FioOptions& options, const std::string& file, bool direct) {
  Command command;
  command.argv = {"fio",
                  "--output-format=json",
                  "--name=sequential",
                  "--filename=" + file,
                  fmt::format("--size={}", options.size_bytes),
                  "--rw=write",
                  "--bs=1M",
                  "--ioengine=psync",
                  fmt::format("--direct={}", direct ? 1 : 0),
                  "--end_fsync=1",
                  "--fallocate=none",
                  "--invalidate=1",
                  "--verify=xxhash",
                  "--do_verify=1",
                  "--verify_fatal=1",
                  "--verify_state_save=0"};
  if (options.random_seconds > 0)
    for (const auto& argument :
         {std::string("--name=random"), "--filename=" + file, fmt::format("--size={}", options.size_bytes),
          std::string("--stonewall"), std::string("--rw=randread"), std::string("--bs=4k"),
          std::string("--ioengine=psync"), fmt::format("--direct={}", direct ? 1 : 0),
          fmt::format("--runtime={}", options.random_seconds), std::string("--time_based")})
      command.argv.push_back(argument);
  command.deadline = static_cast<DurationMs>(options.timeout * 1000);
  return command;
}

// fio prints notes before the JSON text.
Result<Json> parse_output(const std::string& text) {
  const size_t brace = text.find('{');
  if (brace == std::string::npos) return fail(Code::failed, "fio printed no JSON");
  return parse_json(std::string_view(text).substr(brace));
}

double number(const Json& job, const char* direction, const char* key) {
  const auto pointer = Json::json_pointer(fmt::format("/{}/{}", direction, key));
  return job.contains(pointer) && job[pointer].is_number() ? job[pointer].get<double>() : 0;
}

void read_jobs(const Json& report, const FioOptions& options, Measurement& out) {
  for (const auto& job : report.value("jobs", Json::array())) {
    const int error = job.value("error", 0);
    if (error != 0) {
      out.outcome = error == EILSEQ ? Outcome::corrupt : Outcome::failed;
      out.error = fmt::format(
          "fio job {} ended with error {} ({})", job.value("jobname", "?"), error,
          error == EILSEQ ? "data read back differs from what was written" : "input/output error");
    }
    if (job.value("jobname", "") == "sequential") {
      out.metrics["write_mbps"] = {number(job, "write", "bw_bytes") / 1e6, "MB/s"};
      out.metrics["read_mbps"] = {number(job, "read", "bw_bytes") / 1e6, "MB/s"};
      out.detail["written_bytes"] = number(job, "write", "io_bytes");
      out.detail["verified_bytes"] = number(job, "read", "io_bytes");
      out.detail["write_latency_ms"] = number(job, "write", "clat_ns/mean") / 1e6;
    } else {
      out.metrics["random_read_iops"] = {number(job, "read", "iops"), "1/s"};
      out.metrics["random_read_p99_ms"] = {number(job, "read", "clat_ns/percentile/99.000000") / 1e6, "ms"};
    }
  }
  const bool complete = out.detail.value("verified_bytes", 0.0) >= static_cast<double>(options.size_bytes);
  if (out.outcome == Outcome::measured && !complete) {
    out.outcome = Outcome::failed;
    out.error = fmt::format("fio read back {} of {} bytes", out.detail.value("verified_bytes", 0.0),
                            options.size_bytes);
  }
}

Status check_room(const Files& files, const FioOptions& options) {
  struct statvfs fs = {};
  if (::statvfs(files.real(options.mount.path).c_str(), &fs) != 0)
    return fail(Code::failed, "cannot read free space");
  const uint64_t free_bytes = static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
  if (free_bytes < 2 * options.size_bytes)
    return fail(Code::denied,
                fmt::format("{} has {} bytes free, the test wants twice {}; nothing was written",
                            options.mount.path, free_bytes, options.size_bytes));
  return Ok{};
}

// The error of the first job; 0: it had none, or there is no report.
int first_error(const Result<Json>& report) {
  const auto pointer = Json::json_pointer("/jobs/0/error");
  return report && report->contains(pointer) && (*report)[pointer].is_number() ? (*report)[pointer].get<int>() : 0;
}

// The only file systems that get a second chance: what is written there crosses a network. Local drives do not.
bool may_lose_writes(const FioOptions& options, const Result<Json>& report) {
  return options.mount.fstype.rfind("fuse", 0) == 0 && first_error(report) == EIO;
}

// The file's size as the file system says it now, not as the kernel remembers it; -1 when it does not say.
int64_t size_now(const std::string& path) {
  struct statx about = {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_FORCE_SYNC, STATX_SIZE, &about) != 0) return -1;
  return static_cast<int64_t>(about.stx_size);
}

// A network file system's client may hold attributes that are older than the last write: a read then ends at once, which fio calls an
// input/output error. Seen on MooseFS under emulation. The bytes are read once more, by a fio of its own; only when every block
// verifies then does the measurement stand, and it says so. Local drives get no second chance.
//
// Not before the file has its whole size: fio unlinks a file that looks shorter than --size and makes an empty one.
void read_again(const Files& files, Process& process, const FioOptions& options, const std::string& name, Measurement& out,
                Result<Output>& ran, Result<Json>& report) {
  if (!may_lose_writes(options, report)) return;
  Json& jobs = (*report)["jobs"];
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.settle_seconds);
  int64_t size = size_now(files.real(name));
  out.detail["size_after_error"] = size;
  while (size < static_cast<int64_t>(options.size_bytes)) {
    if (std::chrono::steady_clock::now() >= until) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    size = size_now(files.real(name));
  }
  Command command = fio_command(options, files.real(name), out.detail.value("direct", false));
  command.argv.push_back("--verify_only");
  auto again = process.run(command);
  auto second = again ? parse_output(again->out) : Result<Json>(again.error());
  if (!second || !second->contains("jobs") || (*second)["jobs"].empty()) return;
  const Json& reread = (*second)["jobs"][0];
  out.detail["read_again"] = "the first read after writing ended with an input/output error";
  jobs[0]["read"] = reread.value("read", Json::object());
  jobs[0]["error"] = reread.value("error", EIO);
  ran = std::move(again);
}

// A network file system that loses a write says so with an input/output error: to whom that happens once on a busy cluster, the second
// attempt works. It is made, and counted: a profile decides what one is worth. What fio and the file system's client said about the
// first one is kept either way. A local drive gets no second chance.
void try_again(const Files& files, Process& process, const FioOptions& options, const std::string& name, Measurement& out,
               Result<Output>& ran, Result<Json>& report) {
  if (!may_lose_writes(options, report)) return;
  constexpr size_t kMost = 2000;
  const auto client = process.run(
      {.argv = {"journalctl", "-q", "--no-pager", "-o", "cat", "-n", "20", "--since=-5min", "-t", "mfsmount"}, .deadline = 20 * kSecond});
  out.detail["first_attempt"] = {{"written_bytes", number((*report)["jobs"][0], "write", "io_bytes")},
                                 {"read_bytes", number((*report)["jobs"][0], "read", "io_bytes")},
                                 {"fio", ran ? ran->err.substr(0, kMost) : ""},
                                 {"client_log", client ? client->out.substr(0, kMost) : client.error().message}};
  if (!files.remove(name).ok()) return;
  out.metrics["attempts"] = {2, ""};
  ran = process.run(fio_command(options, files.real(name), out.detail.value("direct", false)));
  report = ran ? parse_output(ran->out) : Result<Json>(ran.error());
}

Measurement& give_up(Measurement& out, Outcome outcome, std::string why) {
  out.outcome = outcome;
  out.error = std::move(why);
  return out;
}

}  // namespace

Measurement run_fio(const Files& files, Process& process, const FioOptions& options) {
  Measurement out;
  out.check = "fio";
  out.detail = {{"path", options.mount.path},
                {"fstype", options.mount.fstype},
                {"source", options.mount.source},
                {"size_bytes", options.size_bytes},
                {"verified", "xxhash of every 1 MiB block, read back by fio"}};
  if (auto mount = check_mount(files, options.mount); !mount)
    return give_up(out, Outcome::refused, mount.error().message);
  if (auto room = check_room(files, options); !room)
    return give_up(out, Outcome::refused, room.error().message);

  const std::string name = fmt::format("{}/.muster-fio.{}", options.mount.path, ::getpid());
  Result<Output> ran = fail(Code::failed, "not run");
  Result<Json> report = fail(Code::failed, "not run");
  // FUSE file systems may refuse O_DIRECT: then buffered, and it is said.
  for (const bool direct : {true, false}) {
    out.detail["direct"] = direct;
    ran = process.run(fio_command(options, files.real(name), direct));
    report = ran ? parse_output(ran->out) : Result<Json>(ran.error());
    const bool refused_direct =
        ran && !ran->ok() && (ran->out + ran->err).find("O_DIRECT") != std::string::npos;
    const bool invalid_argument =
        ran && !ran->ok() && (ran->out + ran->err).find("Invalid argument") != std::string::npos;
    if (!refused_direct && !invalid_argument) break;
  }
  out.metrics["attempts"] = {1, ""};
  read_again(files, process, options, name, out, ran, report);
  try_again(files, process, options, name, out, ran, report);
  const Status removed = files.remove(name);
  const Status still = check_mount(files, options.mount);

  if (!ran)
    return give_up(out, ran.error().code == Code::not_found ? Outcome::unavailable : Outcome::failed,
                   ran.error().message);
  if (!report)
    return give_up(out, Outcome::failed,
                   fmt::format("{} (exit {}): {}", report.error().message, ran->exit_code, ran->err));
  read_jobs(*report, options, out);
  if (out.outcome == Outcome::measured && !ran->ok())
    give_up(out, Outcome::failed, fmt::format("fio exited {}: {}", ran->exit_code, ran->err));
  if (out.outcome == Outcome::measured && !still)
    give_up(out, Outcome::failed, "while fio ran: " + still.error().message);
  if (out.outcome == Outcome::measured && !removed)
    give_up(out, Outcome::failed, "the test file stays: " + removed.error().message);
  if (out.outcome != Outcome::measured)
    out.blame.push_back(fmt::format("{} ({})", options.mount.path, options.mount.source));
  return out;
}

}  // namespace muster::kernels
