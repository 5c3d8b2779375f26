// Local or shared storage through fio: sequential write, then read back with every block verified.
//
// How to run:  muster-accept fio --path /scratch --size 16 --fstype xfs --source /dev/md/scratch
// [--random-seconds 0] [--jobs-per-drive 4]
// Reference:   fio's own verification (xxhash per 1 MiB block, offset in each block header), reading from
//              the device: direct I/O, or, on file systems without direct I/O, after invalidating the page
//              cache (see detail.direct).
// Before:      the path must be a mount point with the declared type and source, checked before and after;
//              there must be room for twice the file.
// Expected:    for a file system on an array, the sum of its drives as read in parallel by `drives`;
//              a result equal to one drive means a wrong chunk or a narrow PCIe link. Under emulation the
//              speeds are meaningless, the verification is not.
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>

#include "base/digest.h"
#include "kernels/common/kernels.h"
#include "kernels/drives/drives.h"

namespace muster::kernels {
namespace {

constexpr const char* kByHand = "by-hand-";
constexpr uint64_t kFioBlock = 1 << 20;
constexpr uint64_t kMostJobs = 64;

// Jobs that write and read at the same time, each in its own part of the file.
struct Jobs {
  uint64_t count = 1, bytes_each = 0;
  uint64_t bytes() const { return count * bytes_each; }
};
Jobs jobs_of(const FioOptions& options, const BackingDrives& under) {
  const uint64_t wanted = static_cast<uint64_t>(std::max(options.jobs_per_drive, 0)) * under.drives.size();
  const uint64_t most = std::min(options.size_bytes / kFioBlock, kMostJobs);
  const uint64_t count = std::min(wanted, most);
  if (count < 2) return {1, options.size_bytes};
  return {count, options.size_bytes / count / kFioBlock * kFioBlock};
}

Command fio_command(const FioOptions& options, const Jobs& jobs, const std::string& file, bool direct) {
  Command command;
  command.argv = {"fio",
                  "--output-format=json",
                  "--name=sequential",
                  "--filename=" + file,
                  fmt::format("--size={}", jobs.bytes_each),
                  "--rw=write",
                  "--bs=1M",
                  "--ioengine=psync",
                  fmt::format("--direct={}", direct ? 1 : 0),
                  "--end_fsync=1",
                  "--fallocate=none",
                  "--allow_file_create=0",
                  "--invalidate=1",
                  "--verify=xxhash",
                  "--do_verify=1",
                  "--verify_fatal=1",
                  "--verify_state_save=0"};
  if (jobs.count > 1)
    for (const auto& argument :
         {fmt::format("--numjobs={}", jobs.count), fmt::format("--offset_increment={}", jobs.bytes_each),
          std::string("--thread"), std::string("--group_reporting")})
      command.argv.push_back(argument);
  if (options.random_seconds > 0) {
    for (const auto& argument :
         {std::string("--name=random"), "--filename=" + file, fmt::format("--size={}", jobs.bytes()),
          std::string("--stonewall"), std::string("--rw=randread"), std::string("--bs=4k"),
          std::string("--ioengine=psync"), std::string("--allow_file_create=0"),
          fmt::format("--direct={}", direct ? 1 : 0), fmt::format("--runtime={}", options.random_seconds),
          std::string("--time_based")})
      command.argv.push_back(argument);
    // Each job reads one block at a time, anywhere in the file.
    if (jobs.count > 1)
      for (const auto& argument : {fmt::format("--numjobs={}", jobs.count), std::string("--thread"),
                                   std::string("--group_reporting")})
        command.argv.push_back(argument);
  }
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
  const Json value = job.value(Json::json_pointer(fmt::format("/{}/{}", direction, key)), Json());
  return value.is_number() ? value.get<double>() : 0;
}

void read_jobs(const Json& report, uint64_t size_bytes, Measurement& out) {
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
  const bool complete = out.detail.value("verified_bytes", 0.0) >= static_cast<double>(size_bytes);
  if (out.outcome == Outcome::measured && !complete) {
    out.outcome = Outcome::failed;
    out.error =
        fmt::format("fio read back {} of {} bytes", out.detail.value("verified_bytes", 0.0), size_bytes);
  }
}

Status check_room(const Files& files, const FioOptions& options) {
  struct statvfs fs = {};
  if (::statvfs(files.real(options.mount.path).c_str(), &fs) != 0)
    return fail(Code::failed, "cannot read free space");
  const uint64_t free_bytes = static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
  if (free_bytes < 2 * options.size_bytes)
    return fail(Code::denied,
                fmt::format("{} has {} bytes free, but the test needs twice {} bytes; nothing was written",
                            options.mount.path, free_bytes, options.size_bytes));
  return Ok{};
}

// Replaces every character other than letters, digits, '.', '_' and '-' by '-'.
std::string word(const std::string& text) {
  std::string out = text;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '-';
  return out;
}

// On shared storage, a process id is not unique: two nodes with the same id would remove each other's file in
// the middle of the test. Node and order are; manual runs use a random number. No node's name contains '@'.
struct TestFile {
  std::string folder, name, own;  // own: prefix of all files of this node; empty: manual run
  std::string path() const { return folder + "/" + name; }
};
TestFile test_file(const Files& files, const FioOptions& options) {
  const std::string node =
      options.node.empty() ? files.read_line("/proc/sys/kernel/hostname", "localhost") : options.node;
  const std::string own = ".muster-fio." + word(node) + "@";
  if (!options.order.empty()) return {options.mount.path, own + word(options.order), own};
  return {options.mount.path, own + kByHand + random_hex(8), ""};
}

// An agent has one order at a time: files of this node's other orders were left behind by attempts that died.
void remove_leftovers(const Files& files, const TestFile& file) {
  if (file.own.empty()) return;
  for (const auto& name : files.list(file.folder))
    if (name.starts_with(file.own) && !name.starts_with(file.own + kByHand))
      (void)files.remove(file.folder + "/" + name);
}

// Creates the file, which must not exist yet, in its full size before fio starts: fio neither creates it,
// unlinks it, nor lays it out. The kernel refuses to open an existing file for creation where root is mapped
// to `nobody` and the folder is world-writable (fs.protected_regular), as on shared storage.
Status create(const Files& files, const TestFile& file, uint64_t size) {
  const std::string where = files.real(file.path());
  const auto error = [&](const char* what) {
    return fail(Code::failed, fmt::format("{} {}: {}", what, file.path(), std::strerror(errno)));
  };
  const int fd = ::open(where.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return error("creating");
  const bool sized = ::ftruncate(fd, static_cast<off_t>(size)) == 0;
  const Status status = sized ? Status(Ok{}) : Status(error("sizing"));
  ::close(fd);
  if (!sized) ::unlink(where.c_str());
  return status;
}

Measurement& give_up(Measurement& out, Outcome outcome, std::string why) {
  out.outcome = outcome;
  out.error = std::move(why);
  return out;
}

Measurement& with_faulty_part(Measurement& out, const FioOptions& options) {
  out.faulty_parts.push_back(fmt::format("{} ({})", options.mount.path, options.mount.source));
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
  const TestFile file = test_file(files, options);
  const std::string name = file.path();
  remove_leftovers(files, file);
  if (auto room = check_room(files, options); !room)
    return give_up(out, Outcome::refused, room.error().message);
  if (auto made = create(files, file, options.size_bytes); !made)
    return with_faulty_part(give_up(out, Outcome::failed, made.error().message), options);
  const BackingDrives under = drives_under(files, mounted_source(files, options.mount.path));
  if (!under.drives.empty()) out.detail["drives"] = under.drives;
  if (!under.level.empty()) out.detail["level"] = under.level;
  const Jobs jobs = jobs_of(options, under);
  out.detail["jobs"] = jobs.count;
  if (options.random_seconds > 0) out.detail["random_jobs"] = jobs.count;
  Result<Output> ran = fail(Code::failed, "not run");
  Result<Json> report = fail(Code::failed, "not run");
  // FUSE file systems may reject O_DIRECT: then I/O is buffered, and detail.direct is false.
  for (const bool direct : {true, false}) {
    out.detail["direct"] = direct;
    ran = process.run(fio_command(options, jobs, files.real(name), direct));
    report = ran ? parse_output(ran->out) : Result<Json>(ran.error());
    const bool refused_direct =
        ran && !ran->ok() && (ran->out + ran->err).find("O_DIRECT") != std::string::npos;
    const bool invalid_argument =
        ran && !ran->ok() && (ran->out + ran->err).find("Invalid argument") != std::string::npos;
    if (!refused_direct && !invalid_argument) break;
  }
  const Status removed = files.remove(name);
  const Status still = check_mount(files, options.mount);

  if (!ran)
    return give_up(out, ran.error().code == Code::not_found ? Outcome::unavailable : Outcome::failed,
                   ran.error().message);
  if (!report)
    return give_up(out, Outcome::failed,
                   fmt::format("{} (exit {}): {}", report.error().message, ran->exit_code, ran->err));
  read_jobs(*report, jobs.bytes(), out);
  if (out.outcome == Outcome::measured && !ran->ok())
    give_up(out, Outcome::failed, fmt::format("fio exited with status {}: {}", ran->exit_code, ran->err));
  if (out.outcome == Outcome::measured && !still)
    give_up(out, Outcome::failed, "while fio ran: " + still.error().message);
  if (out.outcome == Outcome::measured && !removed)
    give_up(out, Outcome::failed, "the test file could not be removed: " + removed.error().message);
  return out.outcome == Outcome::measured ? out : with_faulty_part(out, options);
}

}  // namespace muster::kernels
