// The verb `muster accept --hosts`: its arguments, and its output at the end.
#include <stdlib.h>
#include <unistd.h>

#include "cli/accept_hosts.h"
#include "cli/host_look_up.h"
#include "cli/host_words.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using namespace muster::cli;

namespace {

int exit_of_command(const std::vector<std::string>& words) {
  return muster::testing::muster_command(words).exit;
}

class StateHome {
 public:
  explicit StateHome(const std::string& path) {
    if (const char* before = ::getenv("XDG_STATE_HOME")) before_ = before;
    ::setenv("XDG_STATE_HOME", path.c_str(), 1);
  }
  ~StateHome() {
    if (before_.empty())
      ::unsetenv("XDG_STATE_HOME");
    else
      ::setenv("XDG_STATE_HOME", before_.c_str(), 1);
  }

 private:
  std::string before_;
};

AcceptHostsFlags flags_of(const std::string& hosts) {
  AcceptHostsFlags out;
  out.hosts = hosts;
  return out;
}

}  // namespace

TEST_CASE("accept --hosts: a session has each host's command, address and folder", "[hosts]") {
  TempDir dir;
  const StateHome home(dir.path("state"));
  dir.write("GPU hosts.txt",
            "gpu[01-02] ops@10.0.3.[1-2] group=h100\nlogin ssh://10.0.4.1:2222 address=10.9.9.9\n");
  const auto made = session_options(flags_of(dir.path("GPU hosts.txt")));
  REQUIRE(made.ok());
  CHECK(made->cluster == "gpu-hosts");
  CHECK(made->core.state == dir.path("state") + "/muster/accept/gpu-hosts");
  CHECK(made->keys == dir.path("state") + "/muster/accept");
  CHECK(made->profile == "standard");
  REQUIRE(made->hosts.size() == 3);
  CHECK(made->hosts[1].name == "gpu02");
  CHECK(made->hosts[1].looked_up == "10.0.3.2");
  CHECK(made->hosts[1].address == "");
  CHECK(made->hosts[1].group == "h100");
  CHECK(made->hosts[2].address == "10.9.9.9");
  CHECK(made->hosts[1].argv.front() == "ssh");
  CHECK(made->hosts[1].argv.back() == "/bin/sh");

  auto via = flags_of("10.0.3.1");
  via.hosts = "gpu01 10.0.3.1";
  via.via = "srun -w {host}";
  via.name = "night";
  via.beside_jobs = true;
  const auto other = session_options(via);
  REQUIRE(other.ok());
  CHECK(other->cluster == "night");
  CHECK(other->profile == "beside-jobs");
  CHECK(other->hosts.front().argv == std::vector<std::string>{"srun", "-w", "10.0.3.1", "/bin/sh"});
}

TEST_CASE("accept --hosts: a host that is only listed as ssh takes it keeps what is written", "[hosts]") {
  TempDir dir;
  const StateHome home(dir.path("state"));
  auto flags = flags_of("ops@DGX_01.site:2222 address=10.0.0.1");
  const auto made = session_options(flags);
  REQUIRE(made.ok());
  const HostToAccept& host = made->hosts.front();
  CHECK(host.name == "dgx-01-site-2222");
  CHECK(host.written == "ops@DGX_01.site:2222");
  CHECK(host.short_name == "dgx-01");
  CHECK(host.argv.at(host.argv.size() - 2) == "ssh://ops@DGX_01.site:2222");
  // Another command than ssh gets what is written.
  flags.via = "enter {host}";
  CHECK(session_options(flags)->hosts.front().argv.at(1) == "ops@DGX_01.site:2222");

  HostOutcome outcome{"dgx-01", HostVerdict::accepted, ""};
  CHECK_FALSE(to_json(outcome).contains("written"));
  outcome.written = "DGX_01";
  CHECK(to_json(outcome)["written"] == "DGX_01");
}

TEST_CASE("accept --hosts: a plain second word is a destination if ssh's configuration has it", "[hosts]") {
  TempDir dir;
  const StateHome home(dir.path("state"));
  dir.write("config", "Host storage node06\n  HostName 10.0.0.9\n");
  const auto is_read = [&](const std::string& hosts, const std::string& via = "") {
    auto flags = flags_of(hosts + " address=10.0.0.1");
    if (via.empty()) flags.ssh_config = dir.path("config");
    flags.via = via;
    const auto made = session_options(flags);
    if (!made.ok()) CHECK(made.error().code == Code::invalid);
    return made.ok();
  };
  CHECK(is_read("node04 storage"));
  CHECK_FALSE(is_read("node04 compute"));
  CHECK_FALSE(is_read("node04 node06"));
  CHECK(is_read("node04 destination=node06"));
  CHECK_FALSE(is_read("node04 storage", "enter {host}"));
}

TEST_CASE("accept --hosts: a domain for every word makes no word an alias", "[hosts]") {
  TempDir dir;
  const StateHome home(dir.path("state"));
  dir.write("config", "Host storage\n  HostName 10.0.0.9\nHost *\n  HostName %h.site.org\n");
  CHECK(known_aliases({true, dir.path("config")}, {"cpu01", "CPU02", "storage"}) ==
        std::set<std::string>{"storage"});
  auto flags = flags_of("gpu01 cpu01 address=10.0.0.1");
  flags.ssh_config = dir.path("config");
  CHECK(session_options(flags).error().code == Code::invalid);
  flags.hosts = "gpu01 storage address=10.0.0.1";
  CHECK(session_options(flags).ok());
  CHECK(leads_elsewhere("db", "db1.site.org"));
  CHECK(leads_elsewhere("db", "dbsite.org"));
  CHECK_FALSE(leads_elsewhere("DB", "db.Site.org"));
}

TEST_CASE("accept --hosts: no name is looked up beyond the limit, or where no address is needed", "[hosts]") {
  TempDir dir;
  const StateHome home(dir.path("state"));
  const auto hosts = read_hosts_option("a localhost,b 10.0.0.2,c c.site address=10.0.0.3",
                                       [](const std::set<std::string>& words) { return words; })
                         .hosts;
  const HostLookUp how{false, ""};
  using Addresses = std::map<std::string, std::string>;
  const LookedUp all = look_up_addresses(how, hosts, look_up_limit(hosts.size()));
  CHECK(all.too_late == 0);
  CHECK(all.addresses == Addresses{{"a", "127.0.0.1"}, {"b", "10.0.0.2"}});
  const LookedUp late = look_up_addresses(how, hosts, 0);
  CHECK(late.too_late == 1);
  CHECK(late.addresses == Addresses{{"b", "10.0.0.2"}});

  const auto looked_up = [](const std::string& list, bool drift_only, bool beside_jobs) {
    auto flags = flags_of(list);
    flags.drift_only = drift_only;
    flags.beside_jobs = beside_jobs;
    const auto made = session_options(flags);
    REQUIRE(made.ok());
    return !made->hosts.front().looked_up.empty();
  };
  CHECK(looked_up("a 10.0.0.1,b 10.0.0.2", false, false));
  CHECK_FALSE(looked_up("a 10.0.0.1,b 10.0.0.2", true, false));
  CHECK_FALSE(looked_up("a 10.0.0.1,b 10.0.0.2", false, true));
  CHECK_FALSE(looked_up("a 10.0.0.1", false, false));
}

TEST_CASE("accept --hosts: a list from a pipe is read, and a folder is none", "[hosts]") {
  TempDir dir;
  const StateHome home(dir.path("state"));
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  const std::string list = "gpu01 10.0.0.1\ngpu02 10.0.0.2\n";
  REQUIRE(::write(ends[1], list.data(), list.size()) == static_cast<ssize_t>(list.size()));
  ::close(ends[1]);
  const auto made = session_options(flags_of("/dev/fd/" + std::to_string(ends[0])));
  ::close(ends[0]);
  REQUIRE(made.ok());
  CHECK(made->hosts.size() == 2);
  CHECK(made->cluster == "hosts");

  CHECK(session_options(flags_of(dir.path("."))).error().code == Code::invalid);
  CHECK(session_options(flags_of("/dev/null")).error().code == Code::invalid);
  CHECK(session_options(flags_of(dir.path("other.txt"))).error().code == Code::not_found);
}

TEST_CASE("accept --hosts: wrong input is said before anything is reached", "[hosts]") {
  TempDir dir;
  const StateHome home(dir.path("state"));
  dir.write("bad.txt", "gpu01 -oProxyCommand=x\n");
  dir.write("empty.txt", "# none\n");
  const std::string bad = dir.path("bad.txt"), empty = dir.path("empty.txt"), none = dir.path("none.txt");
  CHECK(session_options(flags_of(bad)).error().code == Code::invalid);
  CHECK(session_options(flags_of(empty)).error().code == Code::invalid);
  CHECK(session_options(flags_of(none)).error().code == Code::not_found);
  for (const std::string& hosts : {bad, empty, none})
    CHECK(exit_of_command({"accept", "--hosts", hosts}) == kUsage);
  CHECK(exit_of_command({"accept", "--hosts", "gpu01 10.0.0.1", "--via", "srun"}) == kUsage);
  CHECK(exit_of_command({"accept", "--hosts", "gpu01 10.0.0.1", "--name", "No Name"}) == kUsage);
  CHECK(exit_of_command({"accept", "--hosts", "gpu01 10.0.0.1", "--ssh-config", none}) == kUsage);
  CHECK(exit_of_command({"accept", "--hosts", "gpu01 10.0.0.1", "--beside-jobs", "--profile", "quick"}) ==
        kUsage);
  CHECK(exit_of_command({"accept", "gpu01", "--hosts", "gpu01 10.0.0.1"}) == kUsage);
  CHECK(exit_of_command({"accept", "--drift-only"}) == kUsage);
  CHECK(exit_of_command({"accept", "--user", "gpu01"}) == kUsage);
}

TEST_CASE("accept --hosts: the last word for programs", "[hosts]") {
  SessionOutcome outcome;
  outcome.title = "gaggle: 1 of 2 hosts accepted";
  outcome.run = 7;
  outcome.hosts = {{"gpu01", HostVerdict::accepted, "", "sudo"},
                   {"gpu02", HostVerdict::not_reached, "Permission denied (publickey)"}};
  const int exit = exit_of_outcome(outcome, false);
  CHECK(exit == kPartial);
  const Json json = outcome_json(outcome, exit);
  CHECK(json["verdict"] == "partial");
  CHECK(json["exit"].get<int>() == kPartial);
  CHECK(json["run"] == 7);
  CHECK(json["hosts"][0]["how"] == "sudo");
  CHECK(json["hosts"][1]["verdict"] == "not_reached");
  CHECK(json["drift"].contains("groups"));
  CHECK(json["not_measured"].empty());
  outcome.not_measured = {{"GPUs", {"gpu01"}, "no program", "bring it"}};
  CHECK(outcome_json(outcome, exit)["not_measured"][0]["hosts"][0] == "gpu01");

  outcome.hosts.pop_back();
  CHECK(exit_of_outcome(outcome, false) == kAccepted);
  outcome.hosts[0].verdict = HostVerdict::looked_at;
  CHECK(exit_of_outcome(outcome, true) == kAccepted);
  outcome.drift = {{"hosts", {"gpu01"}, {{"kernel", Agreement::outliers, {}, {}}}}};
  CHECK(exit_of_outcome(outcome, true) == kDegraded);
  CHECK(exit_of_outcome(outcome, false) == kPartial);
  CHECK(outcome_json(outcome, kPartial)["verdict"] == "looked_at");
}

TEST_CASE("accept --hosts: a look with findings does not end as one that measured", "[hosts]") {
  SessionOutcome outcome;
  outcome.hosts = {{"gpu01", HostVerdict::degraded, "counters/link_down: 1 is above 0", "user"}};
  CHECK(exit_of_outcome(outcome, false) == kDegraded);
  outcome.look = true;
  CHECK(exit_of_outcome(outcome, false) == kPartial);
}
