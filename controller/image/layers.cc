#include "controller/image/layers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/split.h"
#include "base/utf8.h"
#include "controller/image/recipe_tree.h"
#include "sys/contain.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr DurationMs kLayerDeadline =
    4 * 60 * kMinute;  // enough to download and install a driver and its toolkit on a slow machine
constexpr const char* kPolicy = "/usr/sbin/policy-rc.d";
constexpr const char* kResolver = "/etc/resolv.conf";

Status mounted(const std::string& source, const std::string& at, const char* type, unsigned long flags,
               const std::string& data = "") {
  if (::mount(source.c_str(), at.c_str(), type, flags, data.c_str()) == 0) return Ok{};
  return fail(errno == EPERM ? Code::denied : Code::failed,
              fmt::format("mounting {} at {}: {}", source, at, strerror(errno)));
}

Status bound(const std::string& source, const std::string& at) {
  return mounted(source, at, nullptr, MS_BIND | MS_REC);
}

// Returns the processes whose root directory is `tree` or below it.
std::vector<std::pair<pid_t, std::string>> processes_in(const std::string& tree) {
  std::vector<std::pair<pid_t, std::string>> out;
  const Files files("/");
  for (const auto& name : files.list("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string root = files.read_link("/proc/" + name + "/root").value_or("");
    if (root == tree || root.starts_with(tree + "/"))
      out.emplace_back(static_cast<pid_t>(std::stol(name)), files.read_line("/proc/" + name + "/comm"));
  }
  return out;
}

std::string hex_of(const std::string& digest) { return digest.substr(digest.find(':') + 1); }

// Temporary setup for installing packages in a chroot: prevents daemons from starting and makes names
// resolve. All of it is removed afterwards.
class Guest {
 public:
  explicit Guest(std::string root) : root_(std::move(root)), files_(root_) {}
  ~Guest() {
    for (auto it = mounts_.rbegin(); it != mounts_.rend(); ++it) ::umount2(it->c_str(), MNT_DETACH);
    for (const auto& path : written_) (void)files_.remove(path);
    if (!resolver_.empty()) (void)files_.symlink(resolver_, kResolver);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  // `ours` appears as /run/muster; `downloads` and `lists` hold what apt fetches.
  Status prepare(const std::string& ours, const std::string& downloads, const std::string& lists) {
    TRY_(bind("/proc", "/proc"));
    TRY_(bind("/sys", "/sys"));
    TRY_(bind("/dev", "/dev"));
    TRY_(files_.make_directories("/run", 0755));
    TRY_(mounted("tmpfs", root_ + "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"));
    mounts_.push_back(root_ + "/run");
    TRY_(files_.make_directories("/run/lock", 01777));
    TRY_(bind(ours, "/run/muster"));
    TRY_(bind(downloads, "/var/cache/apt/archives"));
    TRY_(bind(lists, "/var/lib/apt/lists"));
    TRY_(write(kPolicy, "#!/bin/sh\nexit 101\n", 0755));
    // If resolv.conf is a link, its target is written by a daemon, which does not run in the chroot.
    resolver_ = files_.read_link(kResolver).value_or("");
    if (!resolver_.empty()) TRY_(files_.remove(kResolver));
    return write(kResolver, Files("/").read(kResolver).value_or(""), 0644);
  }

 private:
  Status bind(const std::string& source, const std::string& at) {
    TRY_(files_.make_directories(at, 0755));
    TRY_(bound(source, root_ + at));
    mounts_.push_back(root_ + at);
    return Ok{};
  }
  Status write(const std::string& path, const std::string& text, unsigned mode) {
    if (files_.exists(path)) return Ok{};
    TRY_(files_.write(path, text, mode));
    written_.push_back(path);
    return Ok{};
  }

  std::string root_;
  Files files_;
  std::vector<std::string> mounts_ = {}, written_ = {};
  std::string resolver_ = {};  // target of the tree's own resolv.conf, if a link
};

// Puts all files on the drive, which dpkg does not do here (installation_environment()): after a power
// failure a kept layer would be reused with empty files.
Status synced(const std::string& tree) {
  const int fd = ::open(tree.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = fd >= 0 && ::syncfs(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  return done ? Status(Ok{}) : fail(Code::failed, tree + ": " + strerror(error));
}

// Collects output that arrives in pieces and calls `line` for each complete line.
struct LineSplitter {
  std::function<void(const std::string&)> line;
  std::string rest = {};
  void operator()(std::string_view text) {
    rest += text;
    for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      line(rest.substr(0, end));
  }
};

// The agent's error begins with the step; what apt says behind it is longer than run_ok keeps.
Status agent_ended(const Result<Output>& out) {
  constexpr size_t kMost = 2000;
  if (!out.ok()) return out.error();
  if (out->ok()) return Ok{};
  const std::string said = trim(out->err.empty() ? out->out : out->err);
  return fail(Code::failed,
              fmt::format("the agent exited with {}: {}", out->exit_code, end_of_output(said, kMost)));
}

}  // namespace

Json to_json(const ImageLayer& layer) {
  return {{"name", layer.name}, {"steps", layer.steps}, {"units", layer.units}};
}

std::vector<std::string> layer_keys(const Json& recipe_inputs, const std::vector<ImageLayer>& layers) {
  std::vector<std::string> keys = {hex_of(sha256(dump_json(recipe_inputs)))};
  for (const auto& layer : layers)
    keys.push_back(hex_of(
        sha256(dump_json(Json{{"below", keys.back()}, {"name", layer.name}, {"steps", layer.steps}}))));
  return keys;
}

Status in_private_mounts(const std::function<Status()>& work) {
  Status result = Ok{};
  std::thread thread([&] {
    // MS_PRIVATE: what is mounted here does not appear in the namespace this one was copied from.
    if (::unshare(CLONE_FS | CLONE_NEWNS) != 0)
      result = fail(Code::denied, std::string("creating a mount namespace: ") + strerror(errno));
    else if (auto own = mounted("none", "/", nullptr, MS_REC | MS_PRIVATE); !own.ok())
      result = std::move(own);
    else if (!contain_exceptions("building a layer of an image", [&] { result = work(); }))
      result = fail(Code::failed, "internal error: see musterd's log");
  });
  thread.join();
  return result;
}

bool Layers::kept(const std::string& key) const { return Files("/").is_directory(tree(key)); }

Status Layers::keep(const std::string& key, const std::string& from, const std::string& log) const {
  const Files files("/");
  const std::string folder = folder_ + "/.layers/" + key;
  std::error_code ec;
  fs::remove_all(folder, ec);
  TRY_(files.make_directories(folder, 0755));
  if (!log.empty()) fs::rename(log, folder + "/log", ec);
  TRY_(synced(from));
  fs::rename(from, folder + "/tree", ec);  // last: a layer exists once its tree exists
  if (ec) return fail(Code::failed, folder + ": " + ec.message());
  return Ok{};
}

void Layers::prune(const std::vector<std::string>& keys) const {
  const std::string folder = folder_ + "/.layers";
  for (const auto& name : Files("/").list(folder))
    if (std::find(keys.begin(), keys.end(), name) == keys.end())
      (void)process_.run(
          {.argv = {"rm", "-rf", "--one-file-system", folder + "/" + name}, .deadline = 10 * kMinute});
  (void)process_.run(
      {.argv = {"rm", "-rf", "--one-file-system", folder_ + "/.packages"}, .deadline = kMinute});
}

Status Layers::mount(const std::vector<std::string>& below, const std::string& at) const {
  const Files files("/");
  std::string lower;  // the topmost comes first
  for (const auto& key : below) lower = tree(key) + (lower.empty() ? "" : ":") + lower;
  for (const std::string& part : {stage_ + "/upper", stage_ + "/work", at})
    TRY_(files.make_directories(part, 0755));
  return mounted(
      "overlay", at, "overlay", 0,
      fmt::format("lowerdir={},upperdir={}/upper,workdir={}/work,index=off,metacopy=off,redirect_dir=off",
                  lower, stage_, stage_));
}

Status Layers::unmount(const std::string& at) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (::umount2(at.c_str(), 0) != 0) {
    const int error = errno;
    const auto left = processes_in(at);
    if (error != EBUSY || std::chrono::steady_clock::now() >= until) {
      std::string names;
      for (const auto& [pid, name] : left) names += fmt::format(" {} ({})", pid, name);
      return fail(Code::failed, fmt::format("unmounting {}: {}{}{}", at, strerror(error),
                                            names.empty() ? "" : "; processes that still use it:", names));
    }
    // A package's script may leave a daemon running, such as gpg-agent: end the process; its files stay in
    // the layer.
    for (const auto& [pid, name] : left) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return Ok{};
}

Status Layers::run(const ImageLayer& layer, const std::string& agent, const std::string& root,
                   const std::function<void(const std::string&)>& said) const {
  const std::string ours = stage_ + "/ours", downloads = folder_ + "/.packages", lists = stage_ + "/lists",
                    log = stage_ + "/log";
  for (const auto& folder : {ours, downloads, lists}) TRY_(Files("/").make_directories(folder, 0755));
  std::error_code ec;
  fs::copy_file(agent, ours + "/agent", fs::copy_options::overwrite_existing, ec);
  if (ec) return fail(Code::not_found, agent + ": " + ec.message());
  fs::permissions(ours + "/agent", fs::perms(0755), ec);
  Status ended = Ok{};
  {
    Guest guest(root);
    TRY_(guest.prepare(ours, downloads, lists));
    Command c;
    c.argv = {"chroot", root, "/run/muster/agent", "apply", "--log", "/run/muster/log"};
    c.input = dump_json(Json{{"steps", layer.steps}, {"stop_on_failure", true}});
    c.env = installation_environment();
    c.env.insert({{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                  {"HOME", "/root"},
                  {"TMPDIR", "/tmp"},
                  {"LC_ALL", "C.UTF-8"}});
    c.deadline = kLayerDeadline;
    LineSplitter lines{said};
    c.on_output = std::ref(lines);
    if (Status done = agent_ended(process_.run(c)); !done.ok())
      ended = std::move(done).error().with("layer " + layer.name);
  }
  fs::rename(ours + "/log", log, ec);
  if (ended.ok()) return ended;
  const std::string kept = fmt::format("{}/failed-{}.log", folder_, layer.name);
  fs::rename(log, kept, ec);
  return ec ? ended
            : fail(ended.error().code,
                   ended.error().message + "\nlog of all commands of this layer: " + kept);
}

}  // namespace muster
