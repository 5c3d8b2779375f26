// What the acceptance profiles ask of a mount is what the engines really mount: each profile we ship, planned
// for each engine, against the lines the kernel shows there. Otherwise a healthy node is refused, or a test
// writes to something else.
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "controller/engines/ceph_engine.h"
#include "controller/plan/context.h"
#include "controller/spec/reader/parse_playbook.h"
#include "kernels/common/kernels.h"
#include "kernels/drives/drives.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

const char* const kEngines[] = {"moosefs", "nfs", "ceph", "beegfs", "external"};

// "type source", as /proc/self/mountinfo has it. node01 is the leader: an NFS server has the file system
// itself.
std::vector<std::string> mounted_by(const std::string& engine, const std::string& node) {
  if (engine == "moosefs")
    return {"fuse mfs#10.20.0.11:9421", "fuse.mfs 10.20.0.11:9421"};  // Debian 12's client, and later ones
  if (engine == "ceph") return {"ceph muster@" + ceph_fsid("gaggle", "shared") + ".shared=/"};
  if (engine == "external") return {"nfs4 [fd00::5]:/export"};  // of the site, by an address with brackets
  if (engine == "beegfs") return {"beegfs beegfs_nodev"};
  return {node == "node01" ? "xfs /dev/sdq1" : "nfs4 10.20.0.11:/shared"};
}

struct Machine {
  std::string path;
  Machine() {
    char pattern[] = "/tmp/muster-mounts-test.XXXXXX";
    path = ::mkdtemp(pattern);
    std::filesystem::create_directories(path + "/dev");
    std::filesystem::create_directories(path + "/shared");
    std::ofstream(path + "/dev/sdq1") << "";
    // The first partition of node01's disk.
    const std::string disk = path + "/sys/devices/sdq", block = path + "/sys/class/block/";
    std::filesystem::create_directories(disk + "/sdq1");
    std::filesystem::create_directories(disk + "/device");
    std::filesystem::create_directories(block);
    std::ofstream(disk + "/wwid") << "eui.BULKnode01\n";
    std::ofstream(disk + "/device/serial") << "BULKnode01\n";
    std::ofstream(disk + "/sdq1/partition") << "1\n";
    std::filesystem::create_symlink("../../devices/sdq", block + "sdq");
    std::filesystem::create_symlink("../../devices/sdq/sdq1", block + "sdq1");
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() { std::filesystem::remove_all(path); }
  bool refuses(const std::string& mount, const Json& options) const {
    const Status status = check(mount, options);
    return !status.ok() && status.error().code == Code::denied;
  }
  Status check(const std::string& mount, const Json& options) const {
    const Files files(path);
    REQUIRE(
        files.write("/proc/self/mountinfo", "36 1 0:41 / /shared rw,noatime shared:9 - " + mount + " rw\n")
            .ok());
    return kernels::check_mount(files,
                                {options["path"].get<std::string>(), options["fstype"].get<std::string>(),
                                 options["source"].get<std::string>()});
  }
};

PlannerInput with(const std::string& engine, const std::string& profile) {
  PlannerInput in = with_nodes(installed);
  for (auto& [name, seen] : in.nodes)
    seen.facts->disks[3] = disk("BULK" + name, 2ull << 30);  // what is on them is not the question here
  for (size_t i = 0; i < in.spec.nodes.size(); ++i)
    in.spec.nodes[i].address = "10.20.0.1" + std::to_string(i + 1);
  StorageSpec& shared = in.spec.storage.back();
  shared.engine = engine;
  if (engine == "nfs") shared.server = "node01";
  if (engine == "external")
    shared.disks.clear(), shared.fstype = "nfs4", shared.source = "[fd00::5]:/export", shared.writable = true;
  in.playbooks["shared"].steps = {step("leaves", "drain", {{"node", "{{node.name}}"}})};
  std::ifstream file(source_dir() + "/playbooks/acceptance/" + profile + ".yaml");
  std::stringstream text;
  text << file.rdbuf();
  auto parsed = parse_playbook(text.str());
  REQUIRE(parsed.errors.empty());
  in.playbooks["acceptance/" + profile] = parsed.playbook;
  in.spec.acceptance_profile = profile;
  in.request.kind = RequestKind::accept;
  return in;
}

}  // namespace

TEST_CASE("every profile takes what each engine mounts, and nothing that another one does",
          "[plan][acceptance]") {
  const std::string profile = GENERATE(as<std::string>{}, "quick", "standard", "burn", "lab");
  for (const std::string engine : kEngines) {
    CAPTURE(profile, engine);
    const Plan plan = planned(with(engine, profile));
    const Machine machine;
    std::map<std::string, int> tested;
    for (const auto& action : plan.actions) {
      if (action.kind != ActionKind::check) continue;
      for (const Json& step : action.params["steps"]) {
        const Json options = step["params"].value("options", Json::object());
        if (options.value("path", "") != "/shared") continue;
        CAPTURE(action.node, step["id"].get<std::string>(), options.dump());
        ++tested[action.node];
        for (const auto& mount : mounted_by(engine, action.node)) CHECK(machine.check(mount, options).ok());
        for (const std::string other : kEngines)
          if (other != engine)
            for (const auto& mount : mounted_by(other, action.node)) CHECK(machine.refuses(mount, options));
        CHECK(machine.refuses("nfs4 10.20.0.99:/shared", options));
      }
    }
    // fio, a file written, a file of another node read.
    for (const auto& node : plan.nodes) CHECK(tested[node] == 3);
  }
}
