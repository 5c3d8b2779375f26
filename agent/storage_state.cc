#include "agent/storage_state.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "agent/steps/accounts.h"
#include "agent/steps/array_health.h"
#include "agent/steps/mounts.h"
#include "base/json_dump.h"

namespace muster {
namespace {

constexpr DurationMs kAnswer = 3 * kSecond;
constexpr int64_t kAskAgain = 60;  // seconds
constexpr size_t kLongest = 2048;  // of the text; in a request it becomes longer

// Block size, blocks, free ones.
std::vector<std::string> question(const std::string& target) {
  return {"stat", "--file-system", "--format=%S %b %a", target};
}

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || path.rfind(folder + "/", 0) == 0;
}

bool is_systems(const std::string& target) {
  // /srv/mfs: MooseFS' own disks, of which its master tells.
  for (const char* folder : {"/boot", "/efi", "/state", "/var", "/usr", "/run", "/srv/mfs"})
    if (is_below(target, folder)) return true;
  return target == "/";
}

bool is_local(const steps::MountEntry& mount) {
  return (mount.fs == "xfs" || mount.fs == "ext4") && mount.source.rfind("/dev/", 0) == 0;
}

bool is_served(const steps::MountEntry& mount) {
  return mount.fs == "nfs" || mount.fs == "nfs4" || mount.fs == "ceph" || mount.fs == "lustre" ||
         mount.fs == "beegfs" || mount.fs == "fuse.mfs" ||
         (mount.fs == "fuse" && mount.source.rfind("mfs#", 0) == 0);
}

}  // namespace

StorageState::~StorageState() {
  for (auto& [target, answer] : answers_)
    if (answer.helper.joinable()) answer.helper.join();
}

// The process of an earlier question: in uninterruptible sleep it does not die. Of others only the name is
// read: a command line lies in the memory of its process, and who reads it can hang with one that hangs.
bool StorageState::still_asks(const std::string& target) const {
  std::string line;
  for (const std::string& word : question(target)) line += word + '\0';
  for (const auto& name : files_.list("/proc")) {
    if (!isdigit(static_cast<unsigned char>(name[0]))) continue;
    const std::string process = "/proc/" + name;
    if (files_.read_line(process + "/comm") != "stat") continue;
    if (steps::look(files_, process).uid != ::geteuid()) continue;  // root, who started it, too
    if (const auto have = files_.read(process + "/cmdline"); have.ok() && *have == line) return true;
  }
  return false;
}

void StorageState::ask(const std::string& target, int64_t seconds) {
  Answer& answer = answers_[target];
  if (answer.busy || (answer.asked >= 0 && seconds - answer.asked < kAskAgain)) return;
  const bool first = answer.asked < 0;
  answer.asked = seconds;
  if ((first || answer.silent) && still_asks(target)) {
    answer.silent = true;
    return;
  }
  if (answer.helper.joinable()) answer.helper.join();  // it has ended: it was the one that was busy
  answer.busy = true;
  answer.helper = std::thread([this, target, seconds] { run(target, seconds); });
}

void StorageState::run(const std::string& target, int64_t seconds) {
  Command command;
  command.argv = question(target);
  command.deadline = kAnswer;
  const auto out = process_.run(command);
  const auto words = out.ok() && out->ok() ? steps::split(out->out, ' ') : std::vector<std::string>{};
  const auto number = [&](size_t at) { return std::strtoull(words[at].c_str(), nullptr, 10); };
  const std::lock_guard<std::mutex> lock(mutex_);
  Answer& answer = answers_[target];
  answer.busy = false;
  answer.silent = words.size() != 3;
  if (!answer.silent) {
    answer.answered = seconds;
    answer.size = number(0) * number(1);
    answer.used = answer.size - std::min<uint64_t>(answer.size, number(0) * number(2));
  }
  done_.notify_all();
}

Json StorageState::look(int64_t seconds) {
  Json out = Json::array();
  const auto mounts = steps::all_mounts(files_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (const auto& [target, mount] : mounts)
    if (!is_systems(target) && is_served(mount)) ask(target, seconds);
  done_.wait_for(lock, std::chrono::milliseconds(patience_), [&] {
    return std::none_of(answers_.begin(), answers_.end(),
                        [&](const auto& one) { return one.second.busy && one.second.asked == seconds; });
  });
  for (const auto& [target, mount] : mounts) {
    const bool local = is_local(mount);
    if (is_systems(target) || (!local && !is_served(mount))) continue;
    Json one = {{"at", target}, {"fs", mount.fs}, {"from", mount.source}};
    if (local) {
      struct statvfs fs = {};
      if (::statvfs(files_.real(target).c_str(), &fs) == 0)
        one.update({{"size", static_cast<uint64_t>(fs.f_blocks) * fs.f_frsize},
                    {"used", static_cast<uint64_t>(fs.f_blocks - fs.f_bfree) * fs.f_frsize}});
      const ArrayHealth health = array_health(files_, steps::kernel_name(files_, mount.source));
      if (!health.level.empty()) one["array"] = health.level;
      if (const std::string words = in_words(health); !words.empty()) one["health"] = words;
      if (!health.ok) one["ok"] = false;
    } else {
      const Answer& answer = answers_[target];
      const bool late = answer.busy || answer.silent;
      if (answer.silent || (late && answer.answered < 0)) one["silent"] = true;
      if (late && answer.answered >= 0) one["age"] = seconds - answer.answered;
      if (!one.contains("silent")) one.update({{"size", answer.size}, {"used", answer.used}});
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::string StorageState::text(int64_t seconds) {
  Json all = look(seconds);
  std::string out = dump_json(all);
  while (out.size() > kLongest && !all.empty()) {
    all.erase(all.size() - 1);
    out = dump_json(all);
  }
  return out;
}

}  // namespace muster
