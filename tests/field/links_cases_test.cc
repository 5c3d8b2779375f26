// Field cases of root's steps below the folder of a user: what the user puts there leads root nowhere.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "agent/core/step.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMpi = 65534;
constexpr const char* kAptFolder = "/etc/apt/apt.conf.d";
constexpr const char* kAptFile = "/etc/apt/apt.conf.d/id_ed25519";

// A node with the account that the playbook mpi makes, and its steps. Only root gives files away.
struct MpiNode {
  FakeMachine machine;
  StepContext context = machine.context();
  const bool can_run = ::geteuid() == 0;
  const Json user = {{"name", "mpi"}, {"uid", kMpi}, {"keys", {"ssh-ed25519 AAAA x"}}};
  const Json key = of_mpi("/home/mpi/.ssh/id_ed25519", "KEY\n");
  const Json config = of_mpi("/home/mpi/.ssh/config", "Host *\n");
  const Json folder = {{"path", "/home/mpi/.ssh/d"}, {"mode", "0700"}, {"owner", "mpi"}, {"group", "mpi"}};
  const Json line = {{"path", "/home/mpi/.ssh/environment"}, {"line", "A=1"}};
  const Json values = {{"path", "/home/mpi/.ssh/x.json"}, {"format", "json"}, {"values", {{"a", 1}}}};

  MpiNode() {
    if (!can_run) WARN("skipped: needs root");
    const std::string ids = ":x:" + std::to_string(kMpi) + ":";
    machine.put("/etc/passwd",
                machine.get("/etc/passwd") + "mpi" + ids + std::to_string(kMpi) + "::/home/mpi:/bin/bash\n");
    machine.put("/etc/group", machine.get("/etc/group") + "mpi" + ids + "\n");
    machine.put("/etc/shadow", machine.get("/etc/shadow") + "mpi:*:1::::::\n");
    machine.put(kAptFile, "root's");
    if (!can_run) return;
    REQUIRE(machine.files().set_permissions(kAptFile, 0600));
    REQUIRE(machine.files().set_permissions(kAptFolder, 0755));
    REQUIRE(machine.files().make_directories("/home/mpi", 0755, {kMpi, kMpi}));
  }
  static Json of_mpi(const char* path, const char* content) {
    return {{"path", path}, {"mode", "0600"}, {"owner", "mpi"}, {"group", "mpi"}, {"content", content}};
  }
  std::vector<std::pair<const char*, Json>> steps() const {
    return {{"user", user},        {"file", key},  {"file", config},
            {"directory", folder}, {"line", line}, {"config", values}};
  }
  Status apply(const char* module, const Json& params) {
    return find_step_module(module)->apply(context, params);
  }
  Result<CheckResult> check(const char* module, const Json& params) {
    return find_step_module(module)->check(context, params);
  }
  std::string real(const std::string& path) const { return machine.files().real(path); }
  void link(const std::string& target, const std::string& path) const {
    fs::create_symlink(target, real(path));
    REQUIRE(::lchown(real(path).c_str(), kMpi, kMpi) == 0);
  }
  bool is_apt_intact() const {
    const FileState file = *machine.files().look(kAptFile), folder_now = *machine.files().look(kAptFolder);
    return machine.get(kAptFile) == "root's" && file.uid == 0 && file.mode == 0600 && folder_now.uid == 0 &&
           folder_now.mode == 0755 && machine.files().list(kAptFolder).size() == 1;
  }
};

}  // namespace

FIELD_CASE("root-writes-in-user-folder") {
  MpiNode node;
  if (!node.can_run) return;
  REQUIRE(node.machine.files().make_directories("/home/mpi/.ssh", 0700, {kMpi, kMpi}));
  node.link("../../etc/apt/apt.conf.d", "/home/mpi/.evil");
  constexpr int kSwaps = 20000;
  std::atomic<bool> done = false;
  std::thread attacker([&, folder = node.real("/home/mpi/.ssh"), link = node.real("/home/mpi/.evil")] {
    for (int i = 0; i < kSwaps; ++i)
      (void)::renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
    done = true;
  });
  while (!done)
    for (const auto& [module, params] : node.steps()) (void)node.apply(module, params).ok();
  attacker.join();
  CHECK(node.is_apt_intact());
  // Left alone, the same steps are done.
  if (node.machine.files().look("/home/mpi/.ssh")->link)
    REQUIRE(node.machine.files().move("/home/mpi/.evil", "/home/mpi/away").ok());
  REQUIRE(node.machine.files().remove_tree("/home/mpi/.ssh").ok());
  for (const auto& [module, params] : node.steps()) {
    INFO(module);
    REQUIRE(node.apply(module, params).ok());
    CHECK(node.check(module, params)->holds == Holds::yes);
  }
  CHECK(node.machine.files().look("/home/mpi/.ssh/id_ed25519")->uid == kMpi);
}

FIELD_CASE("ssh-folder-is-a-link") {
  MpiNode node;
  if (!node.can_run) return;
  node.link("../../etc/apt/apt.conf.d", "/home/mpi/.ssh");
  for (const auto& [module, params] : node.steps()) {
    INFO(module);
    CHECK(node.apply(module, params).error().code == Code::denied);
    CHECK(node.check(module, params).error().code == Code::denied);
  }
  CHECK(node.is_apt_intact());
}

FIELD_CASE("second-name-of-roots-file") {
  MpiNode node;
  if (!node.can_run) return;
  REQUIRE(node.machine.files().make_directories("/home/mpi/.ssh", 0700, {kMpi, kMpi}));
  fs::create_hard_link(node.real(kAptFile), node.real("/home/mpi/.ssh/id_ed25519"));
  SECTION("with another content") {
    REQUIRE(node.apply("file", node.key).ok());
    CHECK(node.machine.files().look("/home/mpi/.ssh/id_ed25519")->uid == kMpi);
  }
  SECTION("with the same content") {
    const Json same = MpiNode::of_mpi("/home/mpi/.ssh/id_ed25519", "root's");
    CHECK(node.check("file", same)->holds == Holds::no);
    CHECK(node.apply("file", same).error().code == Code::denied);
  }
  CHECK(node.is_apt_intact());
}

FIELD_CASE("key-is-a-link-to-nothing") {
  MpiNode node;
  if (!node.can_run) return;
  REQUIRE(node.machine.files().make_directories("/home/mpi/.ssh", 0700, {kMpi, kMpi}));
  node.link("../../../etc/apt/apt.conf.d/new", "/home/mpi/.ssh/id_ed25519");
  CHECK(node.check("file", node.key)->holds == Holds::no);
  REQUIRE(node.apply("file", node.key).ok());
  CHECK(node.check("file", node.key)->holds == Holds::yes);
  node.link("../../../etc/apt/apt.conf.d/new", "/home/mpi/.ssh/authorized_keys");
  CHECK(node.apply("user", node.user).error().code == Code::denied);
  CHECK(node.is_apt_intact());
}

FIELD_CASE("link-to-a-missing-disk") {
  FakeMachine machine;
  StepContext context = machine.context();
  REQUIRE(machine.files().make_directories("/mnt").ok());
  REQUIRE(machine.files().symlink("/mnt/nvme/scratch", "/scratch").ok());
  const Json folder = {{"path", "/scratch/containers"}, {"mode", "0755"}};
  const Json file = {{"path", "/scratch/containers/x.conf"}, {"content", "x\n"}};
  for (const auto& [module, params] :
       std::vector<std::pair<const char*, Json>>{{"directory", folder}, {"file", file}}) {
    INFO(module);
    const StepModule* step = find_step_module(module);
    CHECK(step->check(context, params)->holds == Holds::no);
    const Status done = step->apply(context, params);
    REQUIRE_FALSE(done.ok());
    CHECK(done.error().code == Code::conflict);
    CHECK(done.error().message.find("/mnt/nvme/scratch") != std::string::npos);
    CHECK(machine.files().list("/mnt").empty());
    REQUIRE(machine.files().make_directories("/mnt/nvme/scratch").ok());  // it is mounted
    REQUIRE(step->apply(context, params).ok());
    REQUIRE(machine.files().remove_tree("/mnt/nvme").ok());
  }
}

}  // namespace muster::tests
