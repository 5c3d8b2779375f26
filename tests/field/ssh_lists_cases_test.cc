// Field cases of lists of hosts: what is listed, which machine a name leads to, and where hosts reach one
// another.
#include <sys/resource.h>

#include <algorithm>

#include "cli/hosts_file.h"
#include "sys/open_files.h"
#include "sys/piped_child.h"
#include "tests/fakes/session_bench.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

using cli::HostsFile;
using cli::read_hosts_file;
using cli::read_hosts_option;

std::set<std::string> any_alias(const std::set<std::string>& words) { return words; }

std::vector<std::string> names_of(const HostsFile& file) {
  for (const SpecError& error : file.errors) UNSCOPED_INFO(error.message);
  CHECK(file.errors.empty());
  std::vector<std::string> out;
  for (const auto& host : file.hosts) out.push_back(host.name);
  return out;
}

// Without addresses in the list, over a profile that uses them.
struct Linked : SessionBench {
  Linked() { options.profile = "tiny-links"; }
  bool measured_at(const std::string& name, const std::string& address) {
    return verdict(name) == HostVerdict::accepted &&
           hosts.steps(name).find("\"" + address + "\"") != std::string::npos;
  }
};

uint64_t soft_limit() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace

// ---- what is listed

FIELD_CASE("names-of-real-fleets") {
  const HostsFile file = read_hosts_file(field_input("names-of-real-fleets", "hosts"));
  const auto names = names_of(file);
  REQUIRE(names.size() == 38);
  for (const char* name : {"dgx-01", "node-01", "gpu01-cluster-local", "ip-10-0-0-11", "rack2n16",
                           "ip-fd00--12", "gpu01-2222"}) {
    INFO(name);
    CHECK(std::count(names.begin(), names.end(), name) == 1);
  }
}

FIELD_CASE("nodeset-mixed-widths") {
  CHECK(names_of(read_hosts_option("mapr[001-003],mapr07,ab12-[001-002],ab123-[001-002]")) ==
        std::vector<std::string>{"mapr001", "mapr002", "mapr003", "mapr07", "ab12-001", "ab12-002",
                                 "ab123-001", "ab123-002"});
}

FIELD_CASE("one-address-many-ports") {
  const HostsFile file = read_hosts_file(field_input("one-address-many-ports", "inventory"));
  CHECK(names_of(file) == std::vector<std::string>{"ip-192-0-2-18", "inst2", "ip-192-0-2-18-32775"});
  REQUIRE(file.hosts.size() == 3);
  CHECK(file.hosts[0].destination == "root@192.0.2.18:443");
  CHECK(file.hosts[1].destination == "root@192.0.2.18:32776");
  CHECK(file.hosts[2].destination == "root@192.0.2.18:32775");
}

// ---- no host under another one's name

FIELD_CASE("second-name-is-destination: in the list") {
  for (const char* text :
       {"node04 node06", "node01 node02\nnode03 node04", "node01 compute", "gpu01 admin"}) {
    INFO(text);
    CHECK_FALSE(read_hosts_file(text).errors.empty());
  }
  CHECK_FALSE(read_hosts_option("node04 node06", any_alias).errors.empty());
  CHECK_FALSE(read_hosts_option("node04 node06 node08", any_alias).errors.empty());
}

FIELD_CASE("second-name-is-destination: in the machine") {
  SessionBench bench;
  bench.add("node04").hostname = "node06.cluster";
  bench.add("node06").hostname = "node06";
  bench.add("node08").hostname = "storage-7";
  bench.options.drift_only = GENERATE(false, true);
  const auto& ended = bench.run();
  CHECK(bench.verdict("node04") == HostVerdict::refused);
  CHECK(bench.reason("node04").find("node06") != std::string::npos);
  for (const char* name : {"node06", "node08"})
    CHECK(bench.verdict(name) == (bench.options.drift_only ? HostVerdict::looked_at : HostVerdict::accepted));
  CHECK(std::any_of(ended.notes.begin(), ended.notes.end(),
                    [](const std::string& note) { return note.find("storage-7") != std::string::npos; }));
}

FIELD_CASE("login-in-second-column") {
  for (const char* text : {"gpu01 admin\n", "gpu01:2222 admin\n", "10.0.0.11 admin\n"}) {
    INFO(text);
    const HostsFile file = read_hosts_file(text);
    REQUIRE(file.errors.size() == 1);
    CHECK(file.errors[0].message.find("admin@") != std::string::npos);
  }
}

// ---- where hosts reach one another

FIELD_CASE("names-known-at-the-bastion") {
  Linked bench;
  bench.add("inner01", "").ssh_server = "10.63.0.1";
  bench.add("inner03", "").ssh_server = "10.63.0.3";
  bench.run();
  CHECK(bench.measured_at("inner01", "10.63.0.1"));
  CHECK(bench.measured_at("inner03", "10.63.0.3"));
}

FIELD_CASE("lookup-before-ssh: their own addresses in the shared network") {
  Linked bench;
  for (const char* number : {"1", "2", "3"}) {
    FakeHost& host = bench.add(std::string("sw") + number, "");
    host.ssh_server = std::string("fd00::") + number;
    host.addresses = {"172.17.0.1/16", std::string("10.9.0.") + number + "/24",
                      std::string("10.1") + number + ".0.1/24"};
  }
  bench.run();
  for (const char* number : {"1", "2", "3"})
    CHECK(bench.measured_at(std::string("sw") + number, std::string("10.9.0.") + number));
}

FIELD_CASE("lookup-before-ssh: none where none is needed") {
  SessionBench bench;
  for (const char* name : {"sw1", "sw2", "sw3"}) bench.add(name, "");
  bench.run();
  for (const char* name : {"sw1", "sw2", "sw3"}) CHECK(bench.verdict(name) == HostVerdict::accepted);

  Linked linked;
  for (const char* name : {"sw1", "sw2"}) linked.add(name, "");
  linked.run();
  for (const char* name : {"sw1", "sw2"}) CHECK(linked.verdict(name) == HostVerdict::refused);
}

FIELD_CASE("name-is-loopback-here") {
  Linked bench;
  const bool says_more = GENERATE(true, false);
  FakeHost& h1 = bench.add("h1", "", "127.0.1.1");
  if (says_more) h1.ssh_server = "10.63.0.1";
  bench.add("h3", "", "10.63.0.3");
  bench.add("h5", "", "10.63.0.5");
  bench.run();
  CHECK(bench.measured_at("h3", "10.63.0.3"));
  CHECK(bench.measured_at("h5", "10.63.0.5"));
  if (says_more)
    CHECK(bench.measured_at("h1", "10.63.0.1"));
  else
    CHECK(bench.verdict("h1") == HostVerdict::refused);
}

FIELD_CASE("advertised-loopback") {
  Linked bench;
  bench.add("node-a", "", "127.0.1.1").addresses = {"10.5.0.1/24"};
  bench.add("node-b", "", "127.0.1.2").addresses = {"10.5.0.2/24"};
  bench.run();
  CHECK(bench.measured_at("node-a", "10.5.0.1"));
  CHECK(bench.measured_at("node-b", "10.5.0.2"));
}

// ---- open files

FIELD_CASE("select-in-children") {
  rlimit began = {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &began) == 0);
  rlimit low = began;
  low.rlim_cur = std::min<rlim_t>(began.rlim_max - 1, 500);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  CHECK(raise_open_files() == began.rlim_max);
  CHECK(soft_limit() == began.rlim_max);
  const auto reactor = make_reactor(1);
  std::string out;
  auto child =
      PipedChild::start(*reactor, {"/bin/sh", "-c", "ulimit -Sn"},
                        {[&](std::string_view text) { out += text; }, {}, {}, [&](int) { reactor->stop(); }});
  REQUIRE(child.ok());
  reactor->run();
  child->reset();
  // The first call in a process decides.
  CHECK(std::stoull(out) < began.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &began);
}

// ---- two machines or one

FIELD_CASE("same-uuid-other-boot") {
  SessionBench bench;
  bench.add("node01");
  bench.add("node02").facts.system.uuid = bench.hosts.at("node01").facts.system.uuid;
  bench.run();
  for (const char* name : {"node01", "node02"}) CHECK(bench.verdict(name) == HostVerdict::accepted);
}

FIELD_CASE("blades-with-one-uuid") {
  SessionBench bench;
  bench.options.drift_only = GENERATE(false, true);
  const HostVerdict fine = bench.options.drift_only ? HostVerdict::looked_at : HostVerdict::accepted;
  for (const char* name : {"blade1", "blade2", "spare", "user1", "user2"}) {
    bench.add(name).facts.system.uuid = "0a58a9fe-0001-6e6c-6865-6e3036737431";
    bench.hosts.at(name).facts.machine_id = "0123456789abcdef0123456789abcdef";
  }
  // A plain user does not see the UUID.
  for (const char* name : {"user1", "user2"}) {
    bench.hosts.at(name).facts.system.uuid = "";
    bench.hosts.at(name).how = "user";
    bench.hosts.at(name).boot = "boot-of-one";
  }
  bench.run();
  for (const char* name : {"blade1", "blade2", "spare"}) CHECK(bench.verdict(name) == fine);
  for (const char* name : {"user1", "user2"}) CHECK(bench.verdict(name) == HostVerdict::refused);
}

}  // namespace muster::tests
