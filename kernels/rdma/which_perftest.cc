#include "kernels/rdma/which_perftest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/perftest_files.h"
#include "base/record.h"
#include "base/utf8.h"

namespace muster::kernels {
namespace {

constexpr int kNoLibrary = 127;    // exit status of the dynamic loader, and of `env` without the program
constexpr int kNoExecution = 126;  // of `env`, for a file that may not be executed
// What the loader prints where glibc or a library is older than a program needs. It then exits with 1, which
// perftest's --version does too.
constexpr const char* kTooOld = "' not found (required by ";
constexpr const char* kUnknown = "unknown";
// A device that no host has, and what perftest prints, before it looks for that one, where libibverbs finds
// none at all. The kernel may have devices: without its provider libibverbs does not see one.
constexpr const char* kNoSuchDevice = "muster-none";
constexpr const char* kFindsNone = "Did not detect devices";

struct Announced {
  std::string own = {}, carried = {};
};
MUSTER_RECORD(Announced, lenient, sparse(own), sparse(carried))

struct Started {
  bool starts = false;
  std::string version = {}, said = {};
};

std::string word_behind(const std::string& text, const std::string& mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  const size_t begin = text.find_first_not_of(' ', at + mark.size());
  return begin == std::string::npos ? "" : text.substr(begin, text.find_first_of(" :\r\n", begin) - begin);
}

// Apart from that of loader and `env` the exit status is ignored, since --version fails in perftest 4.5: it
// only matters that the program runs.
bool was_started(const Output& output) {
  return output.exit_code >= 0 && output.exit_code != kNoLibrary && output.exit_code != kNoExecution &&
         output.err.find(kTooOld) == std::string::npos;
}

Started start(Process& process, std::vector<std::string> words) {
  words.push_back("--version");
  const auto output = process.run({.argv = std::move(words)});
  if (!output.ok()) return {false, "", output.error().message};
  const std::string said = output->err + output->out;
  if (!was_started(*output)) return {false, "", said};
  const std::string version = word_behind(said, "Version:");
  return {true, version.empty() ? kUnknown : version, said};
}

// A file that only root, this user or the owner of this program can have put there; they decide what it runs
// anyway.
bool is_ours(const std::string& path) {
  struct stat file = {}, program = {};
  if (::stat(path.c_str(), &file) != 0 || (file.st_mode & S_IWOTH) != 0) return false;
  if (file.st_uid == 0 || file.st_uid == ::geteuid()) return true;
  return ::stat("/proc/self/exe", &program) == 0 && file.st_uid == program.st_uid;
}

std::string problem_of(const Perftest& found, const std::string& said) {
  if (!found.files.present()) return "perftest (ib_write_bw) is not installed";
  const std::string library = word_behind(said, "error while loading shared libraries:");
  if (library.empty())
    return "install the package perftest: this host has none that runs, and the one that muster carries does "
           "not start: " +
           end_of_output(said, 300);
  return fmt::format(
      "this host has no {}, which perftest loads: install libibverbs with its providers (with apt: "
      "ibverbs-providers, with dnf: libibverbs), or perftest",
      library);
}

bool finds_devices(Process& process, std::vector<std::string> words) {
  words.insert(words.end(), {"-d", kNoSuchDevice});
  const auto output = process.run({.argv = std::move(words)});
  return !output.ok() || (output->err + output->out).find(kFindsNone) == std::string::npos;
}

}  // namespace

std::vector<std::string> CarriedPerftest::words(PerfTest test) const {
  // As an argument of `env`, so that setpriv and taskset, which start it, do not load them.
  return {"env", fmt::format("LD_PRELOAD={}", fmt::join(libraries, ":")),
          test == PerfTest::bandwidth ? bandwidth : latency};
}

CarriedPerftest carried_perftest(const std::vector<std::string>& paths, const std::string& folder) {
  const auto from = [](const std::vector<std::string>& files) -> CarriedPerftest {
    if (files.size() != std::size(kPerftestFiles)) return {};
    for (const auto& file : files)
      if (::access(file.c_str(), R_OK) != 0) return {};
    return {files[0], files[1], {files.begin() + 2, files.end()}};
  };
  if (!paths.empty()) return from(paths);
  for (const std::string& place : {folder, folder + "/perftest"}) {
    std::vector<std::string> files;
    for (const char* name : kPerftestFiles) files.push_back(place + "/" + name);
    if (!std::all_of(files.begin(), files.end(), is_ours)) continue;
    if (auto found = from(files); found.present()) return found;
  }
  return {};
}

std::vector<std::string> Perftest::words(PerfTest test, bool wanted) const {
  if (uses_carried(wanted)) return files.words(test);
  return {test == PerfTest::bandwidth ? kPerftestBandwidth : kPerftestLatency};
}

std::string Perftest::text(bool wanted) const {
  return uses_carried(wanted) ? this->carried + " carried by muster" : own + " of this host";
}

Perftest find_perftest(Process& process, const CarriedPerftest& files) {
  Perftest out{.files = files};
  const auto help = process.run({.argv = {kPerftestBandwidth, "--help"}});
  if (help.ok() && was_started(*help)) {
    out.help = help->out + help->err;
    out.own = start(process, {kPerftestBandwidth}).version;
  }
  std::string said;
  if (files.present()) {
    const Started carried = start(process, files.words(PerfTest::bandwidth));
    out.carried = carried.version;
    said = carried.said;
  }
  if (out.own.empty() && out.carried.empty())
    out.problem = problem_of(out, said);
  else if (!finds_devices(process, out.words(PerfTest::bandwidth, false)))
    out.problem =
        "libibverbs finds no RDMA device on this host: install its providers (with apt: ibverbs-providers, "
        "with dnf: libibverbs)";
  return out;
}

Json to_json(const Perftest& perftest) { return record_json(Announced{perftest.own, perftest.carried}); }

bool agree_on_carried(const Perftest& own, const Json& partner, bool gpu_memory) {
  const auto other = read_record<Announced>(partner.is_object() ? partner : Json::object(), "perftest");
  if (gpu_memory || !other.ok() || own.carried.empty() || other->carried.empty()) return false;
  return own.own.empty() || own.own != other->own;
}

}  // namespace muster::kernels
