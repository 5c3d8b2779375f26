#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "lab/child.h"
#include "lab/lab.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::lab;

namespace {

// A lab's folder under a temporary one, gone at the end.
struct Folder {
  Folder() {
    char name[] = "/tmp/muster-lab-test-XXXXXX";
    REQUIRE(mkdtemp(name));
    parent = name;
    path = parent + "/lab";
    REQUIRE(std::filesystem::create_directories(path + "/nodes/node01"));
  }
  ~Folder() { std::filesystem::remove_all(parent); }
  void write(const std::string& name, const std::string& text) const {
    REQUIRE(Files("/").write(path + "/" + name, text).ok());
  }
  std::string parent, path;
};

ChildId sleeper(const Folder& folder) {
  auto child = spawn({.argv = {"sleep", "600"}, .log = folder.parent + "/log", .mark = "600"});
  REQUIRE(child.ok());
  return *child;
}

const char* kLab =
    R"({"cluster":"t","provisioning_cidr":"10.0.0.0/24","controller":"10.0.0.1","user":"ops","secrets":[],
  "nodes":[],"drives":[],"profile":"generic","memory_mib":1,"smp":1})";

}  // namespace

TEST_CASE("a process is ours only with its pid, start time and mark") {
  Folder folder;
  const auto child = sleeper(folder);
  CHECK(alive(child));
  auto reused = child;
  reused.start_ticks += 1;
  CHECK_FALSE(alive(reused));
  auto other = child;
  other.mark = "another program";
  CHECK_FALSE(alive(other));
  CHECK(terminate(reused, 0).ok());
  CHECK(terminate(other, 0).ok());
  CHECK(alive(child));  // neither of the two touched it
  CHECK(terminate(child, kSecond).ok());
  CHECK_FALSE(alive(child));
}

TEST_CASE("a program that is not installed is not_found, and says its name") {
  Folder folder;
  auto child =
      spawn({.argv = {"muster-no-such-program"}, .log = folder.parent + "/log", .mark = "muster-no-such"});
  REQUIRE_FALSE(child.ok());
  CHECK(child.error().code == Code::not_found);
  CHECK(child.error().message.find("muster-no-such-program") != std::string::npos);
}

TEST_CASE("down ends what the pid files name, also without serve, and removes the folder") {
  Folder folder;
  folder.write("lab.json", kLab);
  const auto machine = sleeper(folder);
  REQUIRE(write_pid_file(folder.path + "/nodes/node01/qemu.pid", machine).ok());
  folder.write("serve.pid", "torn by a cra");
  auto process = make_process();
  auto done = down(*process, {.dir = folder.path});
  REQUIRE(done.ok());
  CHECK((*done)["ended"] == Json::array({"node01"}));
  CHECK_FALSE(alive(machine));
  CHECK_FALSE(std::filesystem::exists(folder.path));
  auto again = down(*process, {.dir = folder.path});
  REQUIRE(again.ok());
  CHECK((*again)["ended"].empty());
}

TEST_CASE("down --keep leaves the drives") {
  Folder folder;
  folder.write("lab.json", kLab);
  folder.write("nodes/node01/os.img", "data");
  auto process = make_process();
  REQUIRE(down(*process, {.dir = folder.path, .keep = true}).ok());
  CHECK(std::filesystem::exists(folder.path + "/nodes/node01/os.img"));
}

TEST_CASE("down refuses a folder that holds no lab and touches nothing in it") {
  Folder folder;
  folder.write("precious", "data");
  auto process = make_process();
  auto done = down(*process, {.dir = folder.path});
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().code == Code::denied);
  CHECK(std::filesystem::exists(folder.path + "/precious"));
}

TEST_CASE("the lab's key takes the place of LAB_SSH_KEY, but not in comments") {
  Folder folder;
  const auto dir = LabDir::at(folder.path).value();
  const std::string spec = "# LAB_SSH_KEY is filled in\nkeys: [ \"ssh-ed25519 LAB_SSH_KEY lab\" ]\n";
  CHECK(with_lab_key(dir, spec) == spec);
  folder.write("ssh/id_ed25519.pub", "ssh-ed25519 AAAAkey lab\n");
  CHECK(with_lab_key(dir, spec) == "# LAB_SSH_KEY is filled in\nkeys: [ \"ssh-ed25519 AAAAkey lab\" ]\n");
}

TEST_CASE("status of a lab whose processes are all gone says so") {
  Folder folder;
  folder.write("lab.json", kLab);
  auto shown = status(LabDir::at(folder.path).value());
  REQUIRE(shown.ok());
  for (const auto* part : {"network", "bmcs", "controller", "apt_proxy"}) CHECK((*shown)[part] == false);
}
