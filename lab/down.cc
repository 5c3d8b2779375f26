#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "lab/child.h"
#include "lab/lab.h"
#include "lab/lab_network.h"

namespace muster::lab {
namespace {

// Ends the process recorded in a PID file, if it is still the same one, and removes the file. True if it was
// still running.
Result<bool> end_recorded(const std::string& pid_file, DurationMs grace) {
  auto id = read_pid_file(pid_file);
  if (!id) {
    if (id.error().code == Code::not_found) return false;
    TRY_(Files("/").remove(pid_file));  // damaged in a crash; the process is still found by its namespace
    return false;
  }
  const bool was_alive = alive(*id);
  TRY_(terminate(*id, grace));
  TRY_(Files("/").remove(pid_file));
  return was_alive;
}

Result<int> end_namespace_processes(const Namespace& space) {
  int ended = 0;
  for (int round = 0; round < 5; ++round) {  // processes that start meanwhile are found in the next round
    const auto found = processes_in_namespace(space.inode);
    int others = 0;
    for (const auto& id : found) {
      if (id.pid == getpid()) continue;
      ++others;
      TRY_(terminate(id, round == 0 ? kSecond : 0));
      ++ended;
    }
    if (others == 0) break;
  }
  return ended;
}

}  // namespace

Result<Json> down(Process& process, const DownOptions& options) {
  auto found = LabDir::find(options.dir);
  if (!found) {
    if (found.error().code != Code::not_found) return std::move(found).error();
    return Json{
        {"dir", nullptr}, {"ended", Json::array()}, {"removed", false}, {"note", found.error().message}};
  }
  const LabDir dir = *found;
  Files files("/");
  if (!files.exists(dir.root()))
    return Json{
        {"dir", dir.root()}, {"ended", Json::array()}, {"removed", false}, {"note", "nothing to take down"}};
  if (!files.exists(dir.spec()) && !files.exists(dir.space()))
    return fail(Code::denied, dir.root() + " does not contain a lab (no lab.json); nothing was changed");
  Json ended = Json::array();
  const auto end = [&](const std::string& name, const std::string& pid_file, DurationMs grace) -> Status {
    TRY(const bool was_alive, end_recorded(pid_file, grace));
    if (was_alive) ended.push_back(name);
    return Ok{};
  };
  TRY_(end("musterd", dir.path("musterd.pid"), 10 * kSecond));
  TRY_(end("serve", dir.path("serve.pid"), 10 * kSecond));
  for (const auto& node : files.list(dir.path("nodes"))) TRY_(end(node, dir.node(node, "qemu.pid"), 0));
  TRY_(end("apt proxy (lab side)", dir.path("apt/lab.pid"), kSecond));
  TRY_(end("apt proxy (host side)", dir.path("apt/host.pid"), kSecond));
  auto space = recorded_namespace(dir);
  if (space) {
    TRY(const int others, end_namespace_processes(*space));
    if (others) ended.push_back(fmt::format("{} more process(es) in the namespace", others));
    TRY_(delete_namespace(process, *space));
    TRY_(files.remove(dir.space()));
  }
  std::error_code error;
  if (!options.keep) {
    std::filesystem::remove_all(dir.root(), error);
    if (error) return fail(Code::failed, dir.root() + ": " + error.message());
  }
  return Json{{"dir", dir.root()}, {"ended", ended}, {"removed", !options.keep}};
}

}  // namespace muster::lab
