// FakeMachine: md arrays as /sys shows them, and file systems that a site serves.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "agent/steps/step_modules.h"
#include "tests/fakes/fake_machine.h"

namespace muster::tests {
namespace {

namespace fs = std::filesystem;

const std::string kMd = "md127", kFolder = "/sys/block/" + kMd;

Output good(std::string out = "") { return {0, std::move(out), ""}; }
Output bad(std::string err) { return {1, "", std::move(err)}; }

bool has(const std::vector<std::string>& argv, const std::string& word) {
  return std::find(argv.begin(), argv.end(), word) != argv.end();
}
std::string value_of(const std::vector<std::string>& argv, const std::string& prefix) {
  for (const auto& word : argv)
    if (word.starts_with(prefix)) return word.substr(prefix.size());
  return "";
}
std::string little(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}
size_t parity_of(const std::string& level) { return level == "raid5" ? 1 : level == "raid6" ? 2 : 0; }

}  // namespace

// As md shows it. A new raid5 lacks its last member, which it fills in from the others; other levels with
// redundancy bring all members into step.
void FakeMachine::show_array(const std::string& level, const std::vector<std::string>& members) {
  put(kFolder + "/md/level", level + "\n");
  put(kFolder + "/dev", "9:127\n");
  put(kFolder + "/size", std::to_string((1u << 30) / 512) + "\n");
  if (!fs::is_symlink(root_ + "/sys/class/block/" + kMd))
    fs::create_symlink("../../block/" + kMd, root_ + "/sys/class/block/" + kMd);
  put(kFolder + "/md/array_state", "clean\n");
  put(kFolder + "/md/raid_disks", std::to_string(members.size()) + "\n");
  for (const auto& member : members) {
    put(kFolder + "/slaves/" + member, "");
    put("/sys/block/" + member + "/holders/" + kMd, "");
    put(kFolder + "/md/dev-" + member + "/state", "in_sync\n");
  }
  if (level == "raid0") return;
  put(kFolder + "/md/degraded", level == "raid5" ? "1\n" : "0\n");
  put(kFolder + "/md/sync_action", level == "raid5" ? "recover\n" : "resync\n");
  put(kFolder + "/md/sync_completed", "1024 / 8192\n");
  if (level == "raid5") put(kFolder + "/md/dev-" + members.back() + "/state", "spare\n");
}

// A superblock of version 1.2 at 4 KiB, as far as a probe reads it, on every member; the level with it.
Output FakeMachine::mdadm(const std::vector<std::string>& argv) {
  std::vector<std::string> members;
  for (const auto& word : argv)
    if (word.starts_with("/dev/") && !word.starts_with("/dev/md")) members.push_back(word.substr(5));
  if (has(argv, "--stop")) {
    for (const auto& slave : files().list(kFolder + "/slaves"))
      fs::remove(root_ + "/sys/block/" + slave + "/holders/" + kMd);
    fs::remove_all(root_ + kFolder);
    fs::remove(root_ + "/sys/class/block/" + kMd);
    return good();
  }
  std::string level = "raid0";
  if (has(argv, "--create")) {
    level = value_of(argv, "--level=");
    if (members.size() < parity_of(level) + 2 && level != "raid0") return bad("at least more devices needed");
    for (const auto& member : members) {
      std::string block(256, '\0');
      block.replace(0, 4, little(0xa92b4efc, 4));
      block.replace(4, 4, little(1, 4));
      block.replace(16, 16, "0123456789abcdef");
      const std::string name = "any:" + value_of(argv, "--name=");
      block.replace(32, name.size(), name);
      block.replace(72, 4, little(std::stoul(level.substr(4)), 4));
      block.replace(92, 4, little(members.size(), 4));
      block.replace(128, 8, little(kArrayData / 512, 8));
      block.replace(136, 8, little((fs::file_size(root_ + "/dev/" + member) - kArrayData) / 512, 8));
      write_disk(member, 4096, block);
    }
  } else {
    level = fmt::format("raid{}", static_cast<int>(disk_bytes(members[0], 4096 + 72, 1)[0]));
  }
  show_array(level, members);
  if (has(argv, "--create") || !files().exists("/dev/" + kMd)) {
    put("/dev/" + kMd, "");
    fs::resize_file(root_ + "/dev/" + kMd, 1u << 30);
    // A RAID0 over disks with a former life shows what that left on them.
    write_disk(kMd, 0, disk_bytes(members[0], kArrayData, 4096));
  }
  return good();
}

void FakeMachine::fail_member(const std::string& name) {
  put(kFolder + "/md/dev-" + name + "/state", "faulty\n");
  put(kFolder + "/md/degraded", "1\n");
  put(kFolder + "/md/sync_action", "idle\n");
}

void FakeMachine::remove_member(const std::string& name) {
  fail_member(name);
  fs::remove_all(root_ + kFolder + "/md/dev-" + name);
  fs::remove(root_ + kFolder + "/slaves/" + name);
  fs::remove(root_ + "/sys/block/" + name + "/holders/" + kMd);
}

void FakeMachine::add_member(const std::string& name) {
  write_disk(name, 4096, disk_bytes(files().list(kFolder + "/slaves").front(), 4096, 256));
  put(kFolder + "/slaves/" + name, "");
  put("/sys/block/" + name + "/holders/" + kMd, "");
  put(kFolder + "/md/dev-" + name + "/state", "spare\n");
  put(kFolder + "/md/sync_action", "recover\n");
}

void FakeMachine::in_step() {
  for (const auto& name : files().list(kFolder + "/slaves"))
    put(kFolder + "/md/dev-" + name + "/state", "in_sync\n");
  put(kFolder + "/md/degraded", "0\n");
  put(kFolder + "/md/sync_action", "idle\n");
  put(kFolder + "/md/sync_completed", "none\n");
}

// Storage of the site: /site/gone: its server does not answer, and calls to it hang; /site/closed: no client
// may write; /site/capacity: what stat says of it. "mount" is what a unit file of muster's does when it
// is started.
Output FakeMachine::site(const Command& command) {
  const auto& argv = command.argv;
  if (argv[0] == "journalctl")
    return good(files().exists("/site/gone") ? "mount.nfs4: Connection timed out for 10.0.0.5\n" : "");
  if (argv[0] == "stat") return good(files().exists("/site/capacity") ? get("/site/capacity") : "nfs\n");
  if (argv[0] == "dd") {
    if (files().exists("/site/closed")) return bad("dd: failed to open: Permission denied");
    return put(value_of(argv, "of="), command.input), good();
  }
  if (argv[0] == "cat") return good(get(argv.back()));
  if (files().exists("/site/gone")) return bad("Job failed because a timeout was exceeded.");
  for (const auto& line : split_lines(argv[1])) {
    if (!line.starts_with("ExecStart=")) continue;
    const auto words = split(line.substr(10), ' ');
    std::string flags = "rw";
    for (const auto& option : split(words[4], ','))
      if (option == "nosuid" || option == "nodev" || option == "noexec") flags += "," + option;
    fs::permissions(root_ + words[6], fs::perms{0755});  // what is mounted has a mode of its own
    append("/proc/self/mountinfo",
           fmt::format("41 1 0:51 / {} {} - {} {} rw\n", words[6], flags, words[2], words[5]));
  }
  return good();
}

}  // namespace muster::tests
