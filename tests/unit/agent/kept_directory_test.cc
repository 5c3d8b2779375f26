// kept_directory: what survives a re-image, and what happens to what is at the path already.
#include <unistd.h>

#include <filesystem>

#include "agent/core/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

struct Leader {
  FakeMachine machine;
  StepContext context = machine.context();
  Json params = {{"path", "/var/lib/q"}, {"name", "q"}, {"mode", "0700"}, {"services", {"q"}}};
  Leader() {
    machine.put("/run/systemd/system/x", "");
    machine.put("/state/muster/id", "");
    start();
  }
  void start() {
    machine.units["q.service"].enabled = true;
    machine.units["q.service"].active = true;
  }
  bool runs() { return machine.units["q.service"].active; }
  Status apply() { return find_step_module("kept_directory")->apply(context, params); }
  Result<CheckResult> check() { return find_step_module("kept_directory")->check(context, params); }
  bool is_kept() { return check()->holds == Holds::yes; }
  std::string link() const { return machine.files().read_link("/var/lib/q").value_or(""); }
  // The root slot of another image, in which the package has made the directory.
  void reimage() {
    std::filesystem::remove_all(machine.files().real("/var/lib"));
    REQUIRE(machine.files().make_directories("/var/lib/q").ok());
    start();
  }
};

TEST_CASE("kept_directory: content that is in the root slot moves to /state, with its services stopped") {
  Leader leader;
  leader.machine.put("/var/lib/q/jobs", "17");
  CHECK_FALSE(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
  CHECK_FALSE(leader.runs());
  CHECK(leader.link() == "/state/q");
  CHECK(leader.machine.get("/state/q/jobs") == "17");
  CHECK(leader.machine.get("/var/lib/q.before-muster/jobs") == "17");  // nothing is deleted
  // Once more: its services are left alone.
  leader.start();
  REQUIRE(leader.apply().ok());
  CHECK(leader.runs());
}

TEST_CASE("kept_directory: after a re-image the content from before is used") {
  Leader leader;
  leader.machine.put("/var/lib/q/jobs", "17");
  REQUIRE(leader.apply().ok());
  leader.machine.put("/state/q/jobs", "18");
  leader.reimage();
  CHECK_FALSE(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
  CHECK_FALSE(leader.runs());
  CHECK(leader.machine.get("/state/q/jobs") == "18");
}

TEST_CASE(
    "kept_directory: content in both, as after a trial that rolled back, is an error and changes nothing") {
  Leader leader;
  leader.machine.put("/var/lib/q/jobs", "17");
  leader.machine.put("/state/q/jobs", "1");
  CHECK(leader.apply().error().code == Code::conflict);
  CHECK(leader.runs());
  CHECK(leader.machine.get("/var/lib/q/jobs") == "17");
  CHECK(leader.machine.get("/state/q/jobs") == "1");
}

TEST_CASE("kept_directory: a copy that was interrupted is made again, and not used as it is") {
  Leader leader;
  leader.machine.put("/var/lib/q/jobs", "17");
  leader.machine.put("/state/q.muster-part/half", "");
  leader.machine.broken = {"cp"};
  CHECK_FALSE(leader.apply().ok());
  CHECK(leader.runs());  // as before the attempt
  CHECK_FALSE(leader.machine.files().exists("/state/q"));
  leader.machine.broken.clear();
  REQUIRE(leader.apply().ok());
  CHECK(leader.machine.get("/state/q/jobs") == "17");
  CHECK_FALSE(leader.machine.files().exists("/state/q/half"));
}

TEST_CASE("kept_directory: killed when the copy was complete and its source moved aside") {
  Leader leader;
  leader.machine.put("/state/q.muster-part/jobs", "17");
  REQUIRE(leader.apply().ok());
  CHECK(leader.machine.get("/state/q/jobs") == "17");
  CHECK(leader.link() == "/state/q");
}

TEST_CASE("kept_directory: killed between moving the directory aside and making the link") {
  Leader leader;
  leader.machine.put("/state/q/jobs", "17");
  CHECK_FALSE(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK(leader.link() == "/state/q");
  CHECK(leader.machine.get("/state/q/jobs") == "17");
}

TEST_CASE("kept_directory: a link whose content is lost is an error, not an empty start") {
  Leader leader;
  leader.machine.put("/var/lib/q/jobs", "17");
  REQUIRE(leader.apply().ok());
  leader.start();
  std::filesystem::remove_all(leader.machine.files().real("/state/q"));
  CHECK(leader.check().error().code == Code::conflict);
  CHECK(leader.apply().error().code == Code::conflict);
  CHECK_FALSE(leader.machine.files().exists("/state/q"));
  CHECK(leader.runs());
  REQUIRE(leader.machine.files().remove("/var/lib/q").ok());  // as the message says
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
}

TEST_CASE("kept_directory: a file in the way is an error, and nothing is stopped") {
  Leader leader;
  SECTION("at the path") { leader.machine.put("/var/lib/q", "x"); }
  SECTION("in /state") { leader.machine.put("/state/q", "x"); }
  CHECK(leader.apply().error().code == Code::conflict);
  CHECK(leader.runs());
}

TEST_CASE("kept_directory: an operator's own disk or link stays") {
  Leader leader;
  SECTION("a mount point") {
    leader.machine.put("/var/lib/q/jobs", "17");
    leader.machine.mount_entry("nvme1n1", "/var/lib/q", "xfs");
  }
  SECTION("a link") {
    leader.machine.put("/usr/share/q/jobs", "17");
    REQUIRE(leader.machine.files().symlink("/usr/share", "/var/lib/q").ok());
  }
  SECTION("a relative link") {
    leader.machine.put("/var/lib/big/jobs", "17");
    REQUIRE(leader.machine.files().symlink("big", "/var/lib/q").ok());
  }
  const std::string link = leader.link();
  CHECK(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK(leader.runs());
  CHECK(leader.link() == link);
  CHECK_FALSE(leader.machine.files().exists("/state/q"));
}

TEST_CASE("kept_directory: a plain directory where there is no /state") {
  Leader leader;
  std::filesystem::remove_all(leader.machine.files().real("/state"));
  CHECK_FALSE(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
  CHECK(leader.link().empty());
}

TEST_CASE("kept_directory: the accounts of another image have other numbers") {
  Leader leader;
  leader.machine.put("/state/q/jobs", "17");
  leader.params["owner"] = std::to_string(getuid() + 1);
  leader.params["group"] = std::to_string(getgid() + 1);
  (void)leader.apply();  // denied unless root
  CHECK(leader.machine.called("chown -R -h --from=" + std::to_string(getuid()) + " " +
                              std::to_string(getuid() + 1) + ":" + std::to_string(getgid() + 1) +
                              " /state/q"));
}

TEST_CASE("kept_directory: where only the group differs, root's own entries keep theirs") {
  Leader leader;
  leader.machine.put("/state/q/jobs", "17");
  leader.params["owner"] = std::to_string(getuid());
  leader.params["group"] = std::to_string(getgid() + 1);
  (void)leader.apply();  // denied unless root
  CHECK(leader.machine.called("chown -R -h --from=" + std::to_string(getuid()) + ":" +
                              std::to_string(getgid()) + " " + std::to_string(getuid()) + ":" +
                              std::to_string(getgid() + 1) + " /state/q"));
}

TEST_CASE("kept_directory: content of a third owner, as a backup of another image has it, is an error") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root");
    return;
  }
  Leader leader;
  leader.params["owner"] = "64030";
  leader.machine.put("/state/q/jobs", "17");
  leader.machine.put("/state/q/hash.1/script", "x");
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
  const auto give = [&](const char* name, uid_t to) {
    REQUIRE(::lchown(leader.machine.files().real(std::string("/state/q/") + name).c_str(), to, to) == 0);
  };
  give("hash.1", 64030);
  give("hash.1/script", 64027);
  give("jobs", 64027);
  SECTION("in a slot that has used it") {}
  SECTION("in a new one") { leader.reimage(); }
  CHECK_FALSE(leader.is_kept());
  const Status refused = leader.apply();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::conflict);
  CHECK(refused.error().message.find("2 entries of /state/q ") != std::string::npos);
  CHECK(refused.error().message.find("(UID 64027)") != std::string::npos);
  give("hash.1/script", 64030);
  give("jobs", 0);
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
}

TEST_CASE("kept_directory: a name that leaves /state, and the agent's own") {
  Leader leader;
  const char* name = GENERATE("../x", "a/b", "muster", "");
  leader.params["name"] = name;
  CHECK(leader.apply().error().code == Code::invalid);
}

// Slurm's data, and the release that is installed.
struct SlurmLeader : Leader {
  explicit SlurmLeader(const char* program, const char* version) {
    params["slurm"] = program;
    params["cluster"] = "lab";
    machine.put(std::string("/versions/") + program, std::string("slurm-wlm ") + version + "\n");
  }
  // As slurmctld leaves it: the first two bytes are the protocol's version.
  void queue(unsigned char protocol, const std::string& name = "lab") {
    machine.put("/state/q/last_config_lite",
                std::string(1, static_cast<char>(protocol)) + std::string(9, '\0'));
    machine.put("/state/q/clustername", name);
    machine.put("/state/q/jobs", "17");
  }
  bool refuses() { return check().ok() ? false : check().error().code == Code::conflict; }
};

TEST_CASE("kept_directory: a queue is used by the releases that read it, and by its cluster alone") {
  struct Sample {
    const char* version;
    unsigned char protocol;
    const char* name;
    bool used;
  };
  const auto& [version, protocol, name, used] =
      GENERATE(Sample{"24.11.5", 42, "lab|3208", true}, Sample{"24.11.5", 39, "lab", true},
               Sample{"24.11.5", 38, "lab", false}, Sample{"24.11.5", 43, "lab|1", false},
               Sample{"22.05.8", 38, "lab", true}, Sample{"22.05.8", 42, "lab|1", false},
               Sample{"23.11.4", 38, "lab", true}, Sample{"23.11.4", 37, "lab", false},
               Sample{"24.11.5", 42, "lab2|7", false}, Sample{"24.11.5", 42, "la|7", false},
               Sample{"99.11.1", 38, "lab", true});
  SlurmLeader leader("slurmctld", version);
  leader.queue(protocol, name);
  CHECK(leader.refuses() != used);
  CHECK(leader.apply().ok() == used);
  CHECK(leader.runs() != used);  // a refusal stops nothing
  CHECK(leader.machine.get("/state/q/jobs") == "17");
  CHECK(leader.link() == (used ? "/state/q" : ""));
}

TEST_CASE("kept_directory: a database is used by the releases that read it") {
  struct Sample {
    const char *slurm, *slurmdbd, *kept, *mariadb;
    bool used;
  };
  const auto& [slurm, slurmdbd, kept, mariadb, used] =
      GENERATE(Sample{"slurm-wlm 22.05.8", "24.11.5", "10.11.19-MariaDB", "11.8.9", false},
               Sample{"slurm-wlm 23.11.4", "24.11.5", "10.11.19-MariaDB", "11.8.9", true},
               Sample{"slurm-wlm 24.11.5", "22.05.8", "10.11.19-MariaDB", "10.11.19", false},
               Sample{"slurm-wlm 24.11.5", "24.11.5", "11.8.9-MariaDB", "10.11.19", false},
               Sample{"slurm-wlm 24.11.5", "24.11.5", "11.8.9-MariaDB", "11.8.2", true},
               Sample{"", "24.11.5", "", "11.8.2", true});
  SlurmLeader leader("slurmdbd", slurmdbd);
  leader.machine.put("/versions/mariadbd",
                     std::string("mariadbd  Ver ") + mariadb + "-MariaDB-0+deb13u1 from Debian");
  leader.machine.put("/state/q/ibdata1", "x");
  if (*slurm) leader.machine.put("/state/q/muster-slurmdbd", slurm);
  if (*kept) leader.machine.put("/state/q/mariadb_upgrade_info", kept);
  CHECK(leader.refuses() != used);
  CHECK(leader.apply().ok() == used);
  CHECK(leader.machine.get("/state/q/ibdata1") == "x");
}

TEST_CASE("kept_directory: a refusal comes before the data gets another owner, in either slot") {
  SlurmLeader leader("slurmctld", "24.11.5");
  leader.queue(38);
  leader.params["owner"] = std::to_string(getuid() + 1);
  SECTION("of the other slot") {}
  SECTION("of this one, whose link is there") {
    REQUIRE(leader.machine.files().make_directories("/var/lib").ok());
    REQUIRE(leader.machine.files().symlink("/state/q", "/var/lib/q").ok());
  }
  SECTION("without /state") {
    std::filesystem::remove_all(leader.machine.files().real("/state"));
    leader.machine.put("/var/lib/q/last_config_lite", "\x26");
  }
  CHECK(leader.apply().error().code == Code::conflict);
  CHECK_FALSE(leader.machine.called("chown"));
  CHECK(leader.runs());
}

TEST_CASE("kept_directory: data that cannot be read is given up when the operator says so, and not deleted") {
  SlurmLeader leader("slurmctld", "24.11.5");
  leader.queue(38);
  leader.machine.put("/state/q/muster-start-empty", "");
  SECTION("in a slot that has not used it") {}
  SECTION("in one that has") {
    REQUIRE(leader.machine.files().make_directories("/var/lib").ok());
    REQUIRE(leader.machine.files().symlink("/state/q", "/var/lib/q").ok());
  }
  CHECK_FALSE(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK_FALSE(leader.runs());
  CHECK(leader.is_kept());
  CHECK(leader.machine.files().list("/state/q").empty());
  CHECK(leader.machine.get("/state/q.before-muster/jobs") == "17");
  // What can be read is not given up.
  leader.queue(42);
  leader.machine.put("/state/q/muster-start-empty", "");
  CHECK(leader.is_kept());
}

TEST_CASE("kept_directory: killed when the link was removed and the data not yet renamed") {
  SlurmLeader leader("slurmctld", "24.11.5");
  leader.queue(38);
  leader.machine.put("/state/q/muster-start-empty", "");
  leader.machine.put("/state/q.before-muster/jobs", "1");
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
  CHECK(leader.machine.get("/state/q.before-muster/jobs") == "1");
  CHECK(leader.machine.get("/state/q.before-muster.2/jobs") == "17");
}

}  // namespace
}  // namespace muster
