// The playbook containers: what it has in common with others is the same there, its variables are declared
// and used, and the order of its steps is the one that makes them work.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/json_dump.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/plan/shipped.h"

namespace muster {
namespace {

const Playbook& shipped(const std::string& name) {
  static const auto all = testing::shipped_playbooks();
  return all.at(name);
}

size_t place_of(const Playbook& playbook, const std::string& name) {
  const auto& steps = playbook.steps;
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const auto& s) { return s.name == name; });
  if (found == steps.end()) FAIL(playbook.name << " has no step " << name);
  return static_cast<size_t>(found - steps.begin());
}
const PlaybookStep& step_of(const Playbook& playbook, const std::string& name) {
  return playbook.steps[place_of(playbook, name)];
}

// The names of variables in all templates of the step.
std::set<std::string> vars_of(const PlaybookStep& step) {
  std::set<std::string> out;
  for (const auto& name : names_in({step.when, step.otherwise, step.params, step.verify}))
    if (name.starts_with("vars.")) out.insert(name.substr(5));
  return out;
}

constexpr uid_t kNobody = 65534;

// Runs what the step runs, or what it checks by, with these arguments.
int ran(const char* step, const char* what, const std::vector<std::string>& arguments) {
  const Json& argv = step_of(shipped("containers"), step).params[what];
  std::vector<std::string> words = {"sh", "-c", argv.at(2).get<std::string>(), "sh"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return make_process()->run({.argv = words})->exit_code;
}
uid_t owner_of(const std::string& path) {
  struct stat status = {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_uid;
}

TEST_CASE("containers, hpc and apptainer do what they have in common in the same way", "[containers]") {
  const auto same = [](const char* one, const char* other, const char* name) {
    INFO(name);
    const PlaybookStep &a = step_of(shipped(one), name), &b = step_of(shipped(other), name);
    CHECK((a.module == b.module && a.phase == b.phase));
    CHECK(a.params == b.params);
  };
  same("containers", "hpc", "no Docker without its settings");
  same("containers", "hpc", "docker has no rules of its own");
  same("containers", "apptainer", "test container");
  same("containers", "gpu-vendor", "devices for containers");
  // What keeps the firewall whole.
  const Json one = step_of(shipped("containers"), "docker settings").params;
  const Json other = step_of(shipped("hpc"), "docker settings").params;
  CHECK(one["required"] == other["required"]);
  for (const char* key : {"iptables", "ip6tables", "ip-forward"}) {
    CHECK(one["settings"][key] == false);
    CHECK(other["settings"][key] == false);
  }
}

TEST_CASE("hpc leaves Docker to containers where a node has both", "[containers]") {
  for (const auto& step : shipped("hpc").steps)
    if (step.phase == "node" && step.name != "UCX") {
      INFO(step.name);
      CHECK(step.when == "{{^has_containers}}yes{{/has_containers}}");
    }
}

TEST_CASE("each variable of containers is declared as optional, and used", "[containers]") {
  const Playbook& playbook = shipped("containers");
  std::set<std::string> used;
  for (const auto& step : playbook.steps)
    for (const auto& name : vars_of(step)) {
      used.insert(name);
      INFO(step.name << " " << name);
      CHECK(is_optional(playbook.optional_vars, name));
      // Of an image, a step without its variable would be wrong: it is left out.
      if (step.phase == "image") CHECK(step.when.find("vars.") != std::string::npos);
    }
  for (const auto& group : playbook.optional_vars)
    for (const auto& name : group) {
      // Its owner's own folder is chosen by the planner.
      INFO(name);
      CHECK(used.count(name) + (name == "docker_data_root") == 1);
    }
}

TEST_CASE("Docker's settings come before Docker starts, and Slurm's plug-in last", "[containers]") {
  const Playbook& playbook = shipped("containers");
  const auto before = [&](const char* one, const char* other) {
    INFO(one << " before " << other);
    CHECK(place_of(playbook, one) < place_of(playbook, other));
  };
  before("no Docker without its settings", "engines");
  before("docker settings", "docker");
  before("local storage is mounted", "folders of containers");
  before("folders of containers", "folder of podman");
  before("folders of containers", "docker");
  before("refresh of the toolkit's device list", "devices for containers");
  before("devices for containers", "container of docker");
  before("subordinate ids", "container of podman, as a user");
  before("no pyxis of another Slurm", "pyxis fits Slurm");
  before("pyxis fits Slurm", "pyxis for Slurm");
  CHECK(place_of(playbook, "plug-ins of Slurm") == playbook.steps.size() - 1);
  for (const auto& step : playbook.steps)
    if (step.phase == "cluster") CHECK((step.among == "scheduler" && step.stage == 1));
  // The daemon reads it when it starts.
  const Json restart = step_of(shipped("scheduler"), "node daemon").params["restart_for"];
  const std::string file = step_of(playbook, "pyxis for Slurm").params.value("path", "");
  CHECK(dump_json(restart).find(dump_json(Json(file))) != std::string::npos);
}

TEST_CASE("podman in a job finds its runtime folder, and no way out of the job's cgroup", "[containers]") {
  const Playbook& playbook = shipped("containers");
  const Json engine = step_of(playbook, "podman's engine").params["values"];
  CHECK(engine["cgroup_manager"] == "\"cgroupfs\"");
  CHECK(step_of(playbook, "no session bus").phase == "image");
  const PlaybookStep& folders = step_of(playbook, "runtime folders of the declared users");
  for (const char* list : {"argv", "check"})
    CHECK(folders.params[list].back() ==
          step_of(playbook, "folders of the declared users").params[list].back());
  CHECK(place_of(playbook, folders.name) < place_of(playbook, "container of podman, as a user"));
  // With pyxis it would run inside the container, where slurmstepd cannot.
  const Json configuration = step_of(shipped("scheduler"), "configuration").params;
  CHECK(dump_json(configuration).find("TaskProlog") == std::string::npos);
}

TEST_CASE("a folder of containers that a user has made is refused, and left as it is", "[containers]") {
  if (::geteuid() != 0) return;  // only root can give a folder away
  const TempDir dir;
  const char* step = "folders of containers";
  const std::vector<std::string> folders = {dir.path("containers"), dir.path("containers/docker")};
  CHECK(ran(step, "check", folders) != 0);
  CHECK(ran(step, "argv", folders) == 0);
  CHECK(ran(step, "check", folders) == 0);
  REQUIRE(::chown(folders[0].c_str(), kNobody, kNobody) == 0);
  CHECK(ran(step, "check", folders) != 0);
  CHECK(ran(step, "argv", folders) != 0);
  CHECK(owner_of(folders[0]) == kNobody);
}

TEST_CASE("a folder that another user has made in a declared user's name is not handed over",
          "[containers]") {
  if (::geteuid() != 0) return;
  const TempDir dir;
  const char* step = "folders of the declared users";
  const std::string other = dir.path("podman/65534"), own = dir.path("enroot/65534");
  dir.write("podman/65534/planted", "x");
  dir.write("enroot/65534/kept", "x");
  REQUIRE(::chown(own.c_str(), kNobody, kNobody) == 0);
  CHECK(ran(step, "check", {dir.path(""), "nobody"}) != 0);
  CHECK(ran(step, "argv", {dir.path(""), "nobody"}) == 0);
  CHECK(ran(step, "check", {dir.path(""), "nobody"}) == 0);
  CHECK(owner_of(other) == kNobody);
  CHECK(::access((other + "/planted").c_str(), F_OK) != 0);
  CHECK(::access((own + "/kept").c_str(), F_OK) == 0);
}

// The step that removes what was written for variables, with a systemctl that notes how it was called.
struct Leftovers {
  static constexpr const char* kStep = "nothing of variables that were set earlier";
  TempDir dir = {};
  Leftovers() {
    dir.write("bin/systemctl", "#!/bin/sh\necho \"$*\" >> " + dir.path("calls") + "\n");
    REQUIRE(::chmod(dir.path("bin/systemctl").c_str(), 0755) == 0);
  }
  int run(const char* what, const std::string& files, const std::string& ucx) const {
    const Json& argv = step_of(shipped("containers"), kStep).params[what];
    return make_process()
        ->run({.argv = {"sh", "-c", argv.at(2).get<std::string>(), "sh", files, ucx},
               .env = {{"PATH", dir.path("bin") + ":/usr/bin:/bin"}}})
        ->exit_code;
  }
  bool has(const std::string& name) const { return ::access(dir.path(name).c_str(), F_OK) == 0; }
  // As the step "record of the logins" does.
  void record_logins() const {
    const std::string script = "cd \"$1\" && sha256sum config.json > config.json.muster";
    REQUIRE(make_process()->run({.argv = {"sh", "-c", script, "sh", dir.path("")}})->exit_code == 0);
  }
};

TEST_CASE("what muster wrote for a variable goes with it, and nothing else does", "[containers]") {
  const Leftovers left;
  const std::string proxy = "docker.service.d/30-muster-proxy.conf", timer = "cache.timer";
  const std::string ucx = left.dir.path("ucx.conf");
  std::string files;
  const std::string pyxis = "plugstack.conf.d/pyxis.conf";
  left.dir.write("config.json", "logins");
  left.record_logins();
  left.dir.write(proxy, "x");
  left.dir.write(timer, "x");
  left.dir.write(pyxis, "# Written by muster.\nrequired x.so\n");
  for (const std::string& name :
       {proxy, timer, pyxis, std::string("config.json.muster"), std::string("absent")})
    files += left.dir.path(name) + " ";
  left.dir.write("ucx.conf", "A=1\n# Written by muster, for docker_bridge:\nUCX_NET_DEVICES=eth0\nB=2\n");
  CHECK(left.run("check", files, ucx) != 0);
  CHECK(left.run("argv", files, ucx) == 0);
  CHECK(left.run("check", files, ucx) == 0);
  for (const std::string& name : {proxy, timer, pyxis, std::string("config.json")}) {
    INFO(name);
    CHECK_FALSE(left.has(name));
  }
  CHECK(left.dir.read("ucx.conf") == "A=1\nB=2\n");
  CHECK(left.dir.read("calls") == "disable --now cache.timer\ndaemon-reload\ntry-restart docker\n");
}

TEST_CASE("a site's own logins and transports stay, and nothing is restarted", "[containers]") {
  const Leftovers left;
  left.dir.write("config.json", "logins");
  left.dir.write("ucx.conf", "UCX_NET_DEVICES=eth0\n");
  const std::string files = left.dir.path("config.json.muster"), ucx = left.dir.path("ucx.conf");
  CHECK(left.run("check", files, ucx) == 0);
  CHECK(left.run("argv", files, ucx) == 0);
  CHECK(left.dir.read("config.json") == "logins");
  CHECK(left.dir.read("ucx.conf") == "UCX_NET_DEVICES=eth0\n");
  CHECK_FALSE(left.has("calls"));
}

TEST_CASE("logins that the site has changed since stay when the variable goes", "[containers]") {
  const Leftovers left;
  left.dir.write("config.json", "logins");
  left.record_logins();
  left.dir.write("config.json", "the site's");
  const std::string files = left.dir.path("config.json.muster");
  CHECK(left.run("argv", files, "") == 0);
  CHECK(left.run("check", files, "") == 0);
  CHECK(left.dir.read("config.json") == "the site's");
}

TEST_CASE("a site's own pyxis stays, also as the link that its instructions name", "[containers]") {
  const Leftovers left;
  const std::string file = left.dir.path("plugstack.conf.d/pyxis.conf");
  left.dir.write("share/pyxis.conf", "# Written by muster.\nrequired x.so\n");
  left.dir.write("plugstack.conf.d/pyxis.conf", "required /opt/pyxis/spank_pyxis.so\n");
  if (GENERATE(true, false)) {
    REQUIRE(::unlink(file.c_str()) == 0);
    REQUIRE(::symlink(left.dir.path("share/pyxis.conf").c_str(), file.c_str()) == 0);
  }
  CHECK(left.run("check", file, "") == 0);
  CHECK(left.run("argv", file, "") == 0);
  CHECK(left.has("plugstack.conf.d/pyxis.conf"));
}

TEST_CASE("another Docker is refused before anything is written, the same by both playbooks",
          "[containers]") {
  const PlaybookStep& first = shipped("containers").steps.front();
  const PlaybookStep& of_hpc = shipped("hpc").steps.front();
  CHECK(first.params == of_hpc.params);
  CHECK((first.phase == "image" && of_hpc.phase == "image"));
  const TempDir dir;
  const std::string owner = GENERATE("", "docker.io", "docker-ce", "moby-engine", "docker-cefake");
  dir.write("dpkg", "#!/bin/sh\necho '" + (owner.empty() ? "docker.io" : owner) + ": /usr/bin/dockerd'\n");
  dir.write("dockerd", "#!/bin/sh\n");
  REQUIRE(::chmod(dir.path("dpkg").c_str(), 0755) == 0);
  REQUIRE(::chmod(dir.path("dockerd").c_str(), owner.empty() ? 0644 : 0755) == 0);
  const auto status = [&](const char* what) {
    const Json& argv = first.params[what];
    return make_process()
        ->run({.argv = {"sh", "-c", argv.at(2).get<std::string>()},
               .env = {{"PATH", dir.path("") + ":/usr/bin:/bin"}}})
        ->exit_code;
  };
  const bool ours = owner.empty() || owner == "docker.io" || owner == "docker-ce";
  CAPTURE(owner);
  CHECK((status("check") == 0) == ours);
  CHECK(status("argv") != 0);
}

TEST_CASE("each file that a variable is for is removed with it", "[containers]") {
  const Playbook& playbook = shipped("containers");
  const PlaybookStep& step = step_of(playbook, Leftovers::kStep);
  const Json &argv = step.params["argv"], &check = step.params["check"];
  CHECK(argv[4] == check[4]);
  CHECK(argv[5] == check[5]);
  CHECK(step.when.empty());
  const std::string list = argv[4].get<std::string>();
  for (const auto& other : playbook.steps) {
    const bool is_for_a_variable = other.when.find("vars.") != std::string::npos ||
                                   other.when.find("docker_root") != std::string::npos ||
                                   other.when.find("network.proxy") != std::string::npos;
    if (other.phase == "image" || other.module != "file" || !is_for_a_variable) continue;
    std::string path = other.params.value("path", "");
    if (path == "/root/.docker/config.json") path += ".muster";  // which takes it along
    if (path == "/etc/enroot/enroot.conf") continue;             // the package's own, with muster's content
    INFO(path);
    CHECK(list.find(path) != std::string::npos);
  }
}

TEST_CASE("the trial through Slurm is made on nodes that get jobs, also where one just ends",
          "[containers]") {
  const TempDir dir;
  const auto [state, status] = GENERATE(std::pair{"idle", 0}, std::pair{"mix", 0}, std::pair{"comp", 0},
                                        std::pair{"alloc", 77}, std::pair{"drain", 77}, std::pair{"", 77});
  CAPTURE(state);
  const Json& params = step_of(shipped("containers"), "trial of an engine").params;
  dir.write("try-container", params.value("content", ""));
  dir.write("bin/sinfo", std::string("#!/bin/sh\necho ") + state + "\n");
  dir.write("bin/runuser", "#!/bin/sh\necho muster-test\necho 0\n");  // as if srun had started it
  for (const char* program : {"bin/sinfo", "bin/runuser"})
    REQUIRE(::chmod(dir.path(program).c_str(), 0755) == 0);
  const auto tried =
      make_process()->run({.argv = {"sh", dir.path("try-container"), "pyxis", "root"},
                           .env = {{"PATH", dir.path("bin") + ":/usr/sbin:/usr/bin:/sbin:/bin"}}});
  REQUIRE(tried.ok());
  CHECK(tried->exit_code == status);
}

TEST_CASE("podman reads the device lists of muster and of the toolkit", "[containers]") {
  const std::string folders =
      step_of(shipped("containers"), "podman's engine").params["values"].value("cdi_spec_dirs", "");
  CHECK(folders == R"(["/etc/cdi", "/run/cdi"])");
}

TEST_CASE("the toolkit's four packages are one held set of one version", "[containers]") {
  const Json params = step_of(shipped("containers"), "Container Toolkit").params;
  CHECK(params["hold"] == true);
  const Json& lock = params["locked"][0];
  CHECK(lock["packages"].size() == 4);
  CHECK(lock["version"] == "{{vars.toolkit_version}}");
  for (const auto& name : lock["packages"])
    CHECK(dump_json(params["names"]).find(name.get<std::string>() + "={{vars.toolkit_version}}") !=
          std::string::npos);
}

}  // namespace
}  // namespace muster
