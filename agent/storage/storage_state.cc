#include "agent/storage/storage_state.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "agent/steps/accounts.h"
#include "agent/steps/disk/array_health.h"
#include "base/json_dump.h"
#include "base/slurm_state.h"

namespace muster {
namespace {

constexpr DurationMs kToolAnswer = 3 * kSecond, kEnginesAnswer = 60 * kSecond;
constexpr int64_t kAskAgain = 60, kLongestRest = 400;  // seconds
constexpr int64_t kShare = 20;                         // queries may run for 1/20 of the time at most
constexpr size_t kLongest = 2048;  // bytes of the text, which is longer when encoded in a request
constexpr size_t kWords = 400;     // bytes of an engine's message
constexpr const char* kSlurm = "slurm";

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

bool is_systems(const std::string& target) {
  // /srv/mfs: MooseFS' own disks, which its master reports.
  for (const char* folder : {"/boot", "/efi", "/state", "/var", "/usr", "/run", "/srv/mfs"})
    if (is_below(target, folder)) return true;
  return target == "/";
}

bool is_local(const MountEntry& mount) {
  return (mount.fs == "xfs" || mount.fs == "ext4") && mount.source.starts_with("/dev/");
}

bool is_served(const MountEntry& mount) {
  return mount.fs == "nfs" || mount.fs == "nfs4" || mount.fs == "ceph" || mount.fs == "lustre" ||
         mount.fs == "beegfs" || mount.fs == "fuse.mfs" ||
         (mount.fs == "fuse" && mount.source.starts_with("mfs#"));
}

}  // namespace

StorageState::~StorageState() {
  for (auto& [target, answer] : answers_)
    if (answer.helper.joinable()) answer.helper.join();
}

// Queries the size and use of a mount: block size, number of blocks, number of free blocks.
StorageState::Question StorageState::of_mount(const std::string& target) {
  Command command;
  command.argv = {"stat", "--file-system", "--format=%S %b %a", target};
  command.deadline = kToolAnswer;
  return {target, command, [](const std::string& out) -> Json {
            const auto words = split(out, ' ');
            if (words.size() != 3) return nullptr;
            const auto number = [&](size_t at) { return std::strtoull(words[at].c_str(), nullptr, 10); };
            const uint64_t size = number(0) * number(1);
            return {{"size", size}, {"used", size - std::min<uint64_t>(size, number(0) * number(2))}};
          }};
}

StorageState::Question StorageState::of_engine(const HealthQuestion& question) {
  Command command;
  command.argv = question.argv;
  command.deadline = kEnginesAnswer;
  return {question.engine, command, [wrong = question.wrong](const std::string& out) -> Json {
            const auto words = wrong(out);
            if (!words.ok()) return nullptr;
            if (words->empty()) return {{"ok", true}};
            return {{"ok", false}, {"health", words->substr(0, kWords)}};
          }};
}

// Queries this node's state in Slurm, and whose drain it is, if it is a compute node.
StorageState::Question StorageState::of_scheduler(const std::string& host) {
  Command command;
  command.argv = {"sinfo", "-h", "-N", "-n", host, "-o", slurm::kNodeLine};
  command.deadline = kEnginesAnswer;
  return {kSlurm, command, [](const std::string& out) -> Json {
            const slurm::NodeLine node = slurm::read_node_line(out.substr(0, out.find('\n')));
            if (node.word.empty()) return nullptr;
            return {{"state", node.word},
                    {"reason", node.reason.substr(0, kWords)},
                    {"user", node.user.substr(0, kWords)},
                    {"since", node.since.substr(0, kWords)}};
          }};
}

// True if the process of an earlier query is still there: in uninterruptible sleep it cannot be killed. Of
// other processes only the name is read: the command line is in the memory of the process, and reading it may
// hang if that process hangs.
bool StorageState::still_querying(const Command& command) const {
  std::string line;
  for (const std::string& word : command.argv) line += word + '\0';
  // A script's command line begins with the interpreter, followed by the script's path.
  const std::string script = "/" + line;
  const auto is_it = [&](const std::string& have) {
    return have == line || (have.size() > script.size() &&
                            have.compare(have.size() - script.size(), script.size(), script) == 0);
  };
  for (const auto& name : files_.list("/proc")) {
    if (!isdigit(static_cast<unsigned char>(name[0]))) continue;
    const std::string process = "/proc/" + name;
    if (files_.read_line(process + "/comm") != command.argv[0]) continue;
    if (steps::look(files_, process).uid != ::geteuid()) continue;  // a query has the UID of this process
    if (const auto have = files_.read(process + "/cmdline"); have.ok() && is_it(*have)) return true;
  }
  return false;
}

void StorageState::query(Question question, int64_t seconds) {
  Answer& answer = answers_[question.of];
  if (answer.busy || (answer.queried >= 0 && seconds - answer.queried < answer.rest)) return;
  const bool first = answer.queried < 0;
  answer.queried = seconds;
  if ((first || answer.silent) && still_querying(question.command)) {
    answer.silent = true;
    return;
  }
  if (answer.helper.joinable()) answer.helper.join();  // does not block: this query has ended
  answer.busy = true;
  answer.helper = std::thread([this, question = std::move(question), seconds] { run(question, seconds); });
}

int64_t StorageState::steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void StorageState::run(const Question& question, int64_t seconds) {
  const int64_t begun = clock_();
  const auto out = process_.run(question.command);
  const int64_t took = clock_() - begun;
  Json said = out.ok() && out->ok() ? question.read(out->out) : Json();
  const std::lock_guard<std::mutex> lock(mutex_);
  Answer& answer = answers_[question.of];
  answer.busy = false;
  answer.silent = said.is_null();
  // A query that gave up by itself only waited, which uses no CPU time, and may soon be repeated. One that
  // was killed at its timeout may be the reason why the machine is slow.
  const bool gave_up = answer.silent && out.ok();
  answer.rest = gave_up ? kAskAgain : std::clamp(took * kShare / kSecond, kAskAgain, kLongestRest);
  if (!answer.silent) {
    answer.answered = seconds;
    answer.said = std::move(said);
  }
  done_.notify_all();
}

Json StorageState::mount_entry(const MountEntry& mount, int64_t seconds) {
  Json one = {{"at", mount.target}, {"fs", mount.fs}, {"from", mount.source}};
  if (is_local(mount)) {
    struct statvfs fs = {};
    if (::statvfs(files_.real(mount.target).c_str(), &fs) == 0)
      one.update({{"size", static_cast<uint64_t>(fs.f_blocks) * fs.f_frsize},
                  {"used", static_cast<uint64_t>(fs.f_blocks - fs.f_bfree) * fs.f_frsize}});
    const ArrayHealth health = array_health(files_, kernel_name(files_, mount.source));
    if (!health.level.empty()) one["array"] = health.level;
    if (const std::string words = in_words(health); !words.empty()) one["health"] = words;
    if (!health.ok) one["ok"] = false;
    return one;
  }
  const Answer& answer = answers_[mount.target];
  const bool late = answer.busy || answer.silent;
  if (answer.silent || (late && answer.answered < 0)) one["silent"] = true;
  if (late && answer.answered >= 0) one["age"] = seconds - answer.answered;
  if (!one.contains("silent")) one.update(answer.said);
  return one;
}

Json StorageState::look(int64_t seconds) {
  const auto mounts = all_mounts(files_);
  const auto engines = health_questions(files_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (const auto& [target, mount] : mounts)
    if (!is_systems(target) && is_served(mount)) query(of_mount(target), seconds);
  for (const auto& engine : engines) query(of_engine(engine), seconds);
  const bool computes = files_.exists("/etc/slurm/slurm.conf") && files_.exists("/usr/sbin/slurmd");
  const std::string host = computes ? files_.read_line("/proc/sys/kernel/hostname") : "";
  if (!host.empty()) query(of_scheduler(host), seconds);
  done_.wait_for(lock, std::chrono::milliseconds(patience_), [&] {
    return std::none_of(answers_.begin(), answers_.end(),
                        [&](const auto& one) { return one.second.busy && one.second.queried == seconds; });
  });
  Json out = Json::array();
  for (const auto& engine : engines) {
    const Answer& answer = answers_[engine.engine];
    Json one = {{"engine", engine.engine}};
    if (answer.silent)
      one["silent"] = true;
    else if (answer.answered >= 0)
      one.update(answer.said);
    else
      continue;  // the first query has just been sent
    out.push_back(std::move(one));
  }
  if (!host.empty()) {
    const Answer& slurm = answers_[kSlurm];
    Json one = slurm.answered >= 0 ? slurm.said : Json::object();
    one["scheduler"] = kSlurm;
    if (slurm.silent || slurm.answered < 0) one["silent"] = true;
    out.push_back(std::move(one));
  }
  for (const auto& [target, mount] : mounts)
    if (!is_systems(target) && (is_local(mount) || is_served(mount)))
      out.push_back(mount_entry(mount, seconds));
  return out;
}

std::string StorageState::text(int64_t seconds) {
  Json all = look(seconds);
  std::string out = dump_json(all);
  if (out.size() <= kLongest) return out;
  all.push_back({{"cut", true}});
  while (out.size() > kLongest && all.size() > 1) {
    all.erase(all.size() - 2);
    out = dump_json(all);
  }
  return out;
}

}  // namespace muster
