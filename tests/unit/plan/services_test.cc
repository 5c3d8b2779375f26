// What the spec declares of the network around its nodes, as the steps that the shipped playbooks make of it;
// and that a spec which declares nothing of it gets the very steps it always got.
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "agent/core/step.h"
#include "agent/image/image_job.h"
#include "agent/image/layout.h"
#include "base/resolver.h"
#include "controller/plan/plan_steps.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/fakes/fake_machine.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/spec_text.h"

using namespace muster;
using namespace muster::testing;

namespace {

Spec quickstart() {
  return parsed(replaced(text_of(source_dir() + "/lab/quickstart.yaml"), "ssh-ed25519 LAB_SSH_KEY",
                         "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMoH8DjInlSv4hPRVSzZ9rzTDZGMk3ztdsEUCsjTLYnl"));
}

// Everything a node gets from a shipped playbook: steps by id, in order.
std::vector<wire::Step> steps_of(const Spec& spec, const std::string& node, const std::string& playbook) {
  auto book = parse_playbook(text_of(source_dir() + "/playbooks/" + playbook + ".yaml"));
  for (const auto& e : book.errors) UNSCOPED_INFO(to_string(e, playbook));
  REQUIRE(book.errors.empty());
  const NodeDisks disks;
  const std::map<std::string, std::string> values = {{"mpi_ssh_key", "ssh-ed25519 AAAA mpi"}};
  const std::map<std::string, const HardwareFacts*> machines;
  ClusterContext cluster(spec, machines);
  NodeContext context({spec, *spec.node(node), disks, "10.20.0.1", values, cluster, true});
  context.enter(playbook);
  std::vector<std::string> problems;
  std::vector<wire::Step> out;
  for (const std::string phase : {"image", "node", "cluster"})
    for (auto& planned : plan_steps(book.playbook, phase, context, problems)) out.push_back(planned.step());
  for (const auto& problem : problems) UNSCOPED_INFO(problem);
  REQUIRE(problems.empty());
  return out;
}

std::vector<std::string> ids_of(const std::vector<wire::Step>& steps) {
  std::vector<std::string> out;
  for (const auto& s : steps) out.push_back(s.id);
  return out;
}

// The fixture's cluster with everything declared, its roles having playbooks that are shipped.
const char* kServices = R"(  gateway: 10.20.0.254
  dns: [ 10.20.0.53, 10.9.0.53 ]
  search: [ cluster.example, example ]
  ntp: [ ntp.example, 10.20.0.123 ]
  proxy: http://proxy.example:3128
  no_proxy: [ .corp.example ]
time_zone: Europe/Berlin
firewall:
  - { from: 10.0.0.0/8, port: 443, roles: [ cpu ], comment: portal }
  - { ports: "6000:6100", proto: udp }
  - { from: 10.1.2.3, roles: [ spare ] }
packages: [ tmux, htop ]
sysctls: { kernel.panic: 60, vm.swappiness: 10 }
)";

std::string declared_text() {
  std::string text = replaced(kSpec, "users:\n", std::string(kServices) + "users:\n");
  return replaced(
      text, "  cpu: { playbooks: [ base, storage, shared ] }\n",
      "  cpu: { playbooks: [ base, firewall ], packages: [ ncdu, htop ], sysctls: { vm.swappiness: 1 } }\n"
      "  spare: { playbooks: [ base, firewall ] }\n");
}

}  // namespace

TEST_CASE("a spec that declares no services gets the very steps it always got", "[plan][services]") {
  const Spec spec = quickstart();
  Json all = Json::object();
  for (const std::string node : {"node01", "node02"})
    for (const auto& playbook : spec.roles.at("cpu"))
      for (const auto& step : steps_of(spec, node, playbook))
        all[node].push_back({{"id", step.id}, {"params", step.params}, {"verify", step.verify}});
  const std::string path = source_dir() + "/tests/golden/plan/quickstart-steps.json",
                    text = all.dump(1) + "\n";
  if (std::getenv("MUSTER_ACCEPT")) std::ofstream(path) << text;
  CHECK(text_of(path) == text);
  CHECK(wire::to_json(wire::ImageJob{}).count("dns") == 0);  // nor does the order to write an image change
}

TEST_CASE("declared name servers and gateway are kept as they were installed", "[plan][services]") {
  const Spec spec = parsed(declared_text());
  const auto steps = steps_of(spec, "node02", "base");
  CHECK(
      params_of(steps, "base/name servers") ==
      Json{{"path", "/etc/resolv.conf"}, {"content", resolver_text(spec.network.dns, spec.network.search)}});
  CHECK(params_of(steps, "base/network of the provisioning port")["values"] ==
        Json{{"Gateway", "10.20.0.254"},
             {"DNS", "10.20.0.53 10.9.0.53"},
             {"Domains", "cluster.example example"}});
  CHECK(params_of(steps, "base/name servers of an adopted host").is_null());

  PlannerInput in = with_nodes(seen_in_ram);
  in.spec.network = spec.network;
  const auto job = wire::image_job_from_json(planned(in).find("node01/image")->params.json());
  REQUIRE(job.ok());
  CHECK(job->gateway == "10.20.0.254");
  CHECK(job->dns == spec.network.dns);
  CHECK(job->search == spec.network.search);
}

TEST_CASE("what is written at installation is what playbook base finds right", "[plan][services]") {
  const Spec spec = parsed(declared_text());
  tests::FakeMachine machine;
  StepContext context = machine.context();
  wire::ImageJob job;
  job.hostname = "node02";
  job.address_cidr = "10.20.0.12/24";
  job.mac = "52:54:00:20:00:02";
  job.gateway = "10.20.0.7";  // of an older spec
  job.dns = spec.network.dns;
  job.search = spec.network.search;
  const GptTable layout = make_layout(8ull << 30, 1 << 20, 0).value();
  const ImageManifest manifest;
  const SeedRequest request{job, manifest, "/dev/null", layout, "a", false, {}};
  REQUIRE(seed_root(machine.files(), request, std::string(32, 'a')).ok());

  const auto steps = steps_of(spec, "node02", "base");
  const auto check = [&](const char* module, const std::string& id) {
    return find_step_module(module)->check(context, params_of(steps, id))->holds == Holds::yes;
  };
  CHECK(check("file", "base/name servers"));
  CHECK_FALSE(check("config", "base/network of the provisioning port"));
  const Json port = params_of(steps, "base/network of the provisioning port");
  REQUIRE(find_step_module("config")->apply(context, port).ok());
  const std::string text = machine.get("/etc/systemd/network/10-muster.network");
  CHECK(text.find("Gateway=10.20.0.254\n") != std::string::npos);
  CHECK(text.find("10.20.0.7") == std::string::npos);
  job.gateway = spec.network.gateway;  // which `request` refers to
  REQUIRE(seed_root(machine.files(), request, std::string(32, 'a')).ok());
  CHECK(text == machine.get("/etc/systemd/network/10-muster.network"));
  CHECK(check("config", "base/network of the provisioning port"));
}

TEST_CASE("an adopted host's network is not taken over, only asked about", "[plan][services]") {
  Spec spec = parsed(declared_text());
  for (auto& node : spec.nodes)
    if (node.name == "node02") node.adopt.host = "10.20.0.12";
  const auto steps = steps_of(spec, "node02", "base");
  for (const char* ours :
       {"base/name servers", "base/network of the provisioning port", "base/network service"})
    CHECK(params_of(steps, ours).is_null());
  const auto requested = std::find_if(steps.begin(), steps.end(), [](const wire::Step& s) {
    return s.id == "base/name servers of an adopted host";
  });
  REQUIRE(requested != steps.end());
  CHECK_FALSE(requested->mandatory);
  const auto words = requested->params["command"].get<std::vector<std::string>>();
  REQUIRE(words.size() == 6);
  CHECK(words[4] == "10.20.0.53");
  CHECK(words[5] == "10.9.0.53");
  CHECK_FALSE(params_of(steps, "base/time zone").is_null());  // what base sets on every host
}

TEST_CASE("the leader asks the declared time servers, the others the leader first", "[plan][services]") {
  const Spec spec = parsed(declared_text());
  const auto leader = steps_of(spec, "node01", "base"), other = steps_of(spec, "node02", "base");
  CHECK(params_of(leader, "base/time sources of the leader")["content"] ==
        "server ntp.example iburst\nserver 10.20.0.123 iburst\n");
  CHECK(params_of(leader, "base/time sources").is_null());
  CHECK(params_of(other, "base/time sources")["content"] ==
        "server 10.20.0.11 iburst prefer trust\nserver ntp.example iburst\nserver 10.20.0.123 iburst\n");
  for (const auto& steps : {leader, other})
    CHECK(params_of(steps, "base/no time servers but the declared ones")["file"] ==
          "/etc/chrony/sources.d/muster.sources");
}

TEST_CASE("proxy, time zone, packages and kernel parameters reach the node", "[plan][services]") {
  const auto steps = steps_of(parsed(declared_text()), "node02", "base");
  const std::string apt = params_of(steps, "base/proxy of apt")["content"].get<std::string>();
  CHECK(apt.find("Acquire::http::Proxy \"http://proxy.example:3128\";\n") != std::string::npos);
  CHECK(apt.find("Acquire::http::Proxy::10.20.0.1 \"DIRECT\";\n") != std::string::npos);
  const Json session = params_of(steps, "base/proxy of sessions")["values"];
  CHECK(session["https_proxy"] == "http://proxy.example:3128");
  CHECK(session["no_proxy"] ==
        "localhost,127.0.0.1,::1,10.20.0.0/24,.cluster.example,.example,node01,node02,node03,.corp.example");
  CHECK(params_of(steps, "base/time zone")["argv"].back() == "Europe/Berlin");
  CHECK(params_of(steps, "base/declared packages")["names"] == Json::array({"htop", "ncdu", "tmux"}));
  CHECK(params_of(steps, "base/declared kernel parameters")["values"] ==
        Json{{"kernel.panic", "60"}, {"vm.swappiness", "1"}});
  // Two steps with two values for one parameter would never come to rest.
  CHECK(params_of(steps, "base/kernel parameters")["values"]["kernel.panic"] == "60");
  CHECK(params_of(steps, "base/kernel parameters")["values"]["net.core.somaxconn"] == 4096);
}

TEST_CASE("a proxy that is no longer declared goes from apt and from sessions, a site's own stays",
          "[plan][services]") {
  Spec spec = parsed(declared_text());
  const std::string removal = "base/nothing of a proxy that was declared earlier";
  const auto declared = steps_of(spec, "node02", "base");
  CHECK(params_of(declared, removal).is_null());
  spec.network.proxy.clear();
  const Json step = params_of(steps_of(spec, "node02", "base"), removal);
  REQUIRE_FALSE(step.is_null());
  const Json apt = params_of(declared, "base/proxy of apt");
  Json sessions = params_of(declared, "base/proxy of sessions");
  CHECK(step["argv"].at(4) == apt["path"]);
  CHECK(step["argv"].at(5) == sessions["path"]);
  CHECK(step["check"].at(4) == apt["path"]);

  const TempDir dir;
  const std::string own = "LANG=C.UTF-8\nftp_proxy=http://proxy.example:3128\nPAGER=less\n";
  dir.write("environment", own);
  dir.write("90muster-proxy", apt["content"].get<std::string>());
  tests::FakeMachine machine;
  machine.put("/etc/environment", own);
  StepContext context = machine.context();
  REQUIRE(find_step_module("config")->apply(context, sessions).ok());
  const std::string changed = machine.get("/etc/environment");
  REQUIRE(changed.find("NO_PROXY=") != std::string::npos);
  const auto run = [&](const char* what) {
    return make_process()
        ->run({.argv = {"sh", "-c", step[what].at(2).get<std::string>(), "sh", dir.path("90muster-proxy"),
                        dir.path("environment")}})
        ->exit_code;
  };
  CHECK(run("check") != 0);
  // What the site has set since is not muster's.
  const bool has_own = GENERATE(false, true);
  const std::string line = "https_proxy=http://proxy.example:3128\n", other = "https_proxy=http://o:1\n";
  dir.write("environment", has_own ? replaced(changed, line, other) : changed);
  CHECK(run("argv") == 0);
  CHECK(run("check") == 0);
  CHECK(dir.read("environment") == (has_own ? own + other : own));
  CHECK_FALSE(std::ifstream(dir.path("90muster-proxy")).good());
}

TEST_CASE("the declared package mirror reaches nodes with an image of ours, after the proxy",
          "[plan][services][apt]") {
  Spec spec = parsed(declared_text());
  const auto find = [](const std::vector<wire::Step>& steps, const std::string& id) {
    const auto ids = ids_of(steps);
    return std::find(ids.begin(), ids.end(), id) - ids.begin();
  };
  CHECK(params_of(steps_of(spec, "node02", "base"), "base/package mirror").is_null());
  spec.network.apt["debian"] = {"http://10.20.0.9/debian", "http://10.20.0.9/debian-security", true};
  spec.network.apt["ubuntu"] = {"http://10.20.0.9/ubuntu", kNoMirror, false, "line\nline\n"};
  const auto steps = steps_of(spec, "node02", "base");
  CHECK(params_of(steps, "base/package mirror") ==
        Json{{"mirror", "http://10.20.0.9/debian"},
             {"security_mirror", "http://10.20.0.9/debian-security"},
             {"updates", true},
             {"key", ""},
             {"distribution", "debian"}});
  CHECK(find(steps, "base/proxy of apt") < find(steps, "base/package mirror"));
  CHECK(find(steps, "base/package mirror") < find(steps, "base/time zones"));
  // The mirror is that of the distribution of the node's image.
  for (auto& [name, image] : spec.images) image.distribution = find_distribution("ubuntu");
  CHECK(params_of(steps_of(spec, "node02", "base"), "base/package mirror") ==
        Json{{"mirror", "http://10.20.0.9/ubuntu"},
             {"security_mirror", "none"},
             {"updates", false},
             {"key", "line\nline\n"},
             {"distribution", "ubuntu"}});
  spec.network.apt.erase("ubuntu");
  CHECK(params_of(steps_of(spec, "node02", "base"), "base/package mirror").is_null());
  for (auto& [name, image] : spec.images) image.distribution = &default_distribution();
  for (auto& node : spec.nodes)
    if (node.name == "node02") node.adopt.host = "10.20.0.12";  // its sources are its own
  CHECK(params_of(steps_of(spec, "node02", "base"), "base/package mirror").is_null());
}

TEST_CASE("declared firewall rules follow those of the playbook, for their roles only", "[plan][services]") {
  const Spec spec = parsed(declared_text());
  Spec without = spec;
  without.firewall.clear();
  const Json before = params_of(steps_of(without, "node02", "firewall"), "firewall/rules");
  const Json params = params_of(steps_of(spec, "node02", "firewall"), "firewall/rules");
  REQUIRE(params["allow"].size() == before["allow"].size() + 2);
  for (size_t i = 0; i < before["allow"].size(); ++i) CHECK(params["allow"][i] == before["allow"][i]);
  CHECK(params["controller"] == before["controller"]);

  tests::FakeMachine machine;
  machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  machine.put("/etc/default/ufw", "IPV6=yes\n");
  StepContext context = machine.context();
  Json here = params;
  here.erase("controller");  // no controller is reached from here
  REQUIRE(find_step_module("ufw")->apply(context, here).ok());
  const std::string rules = machine.run({.argv = {"iptables", "-S"}})->out;
  CHECK(rules.find("-A ufw-user-input -s 10.0.0.0/8 -p tcp -m tcp --dport 443 -j ACCEPT\n") !=
        std::string::npos);
  CHECK(rules.find("-A ufw-user-input -p udp -m multiport --dports 6000:6100 -j ACCEPT\n") !=
        std::string::npos);
  CHECK(rules.find("10.1.2.3") == std::string::npos);
}

TEST_CASE("slurmd waits for the device files of the driver, on nodes with GPUs only", "[plan][services]") {
  Spec spec = parsed(kSpec);
  for (auto& node : spec.nodes) {
    node.hardware.cpus = 4;
    node.hardware.memory_bytes_min = 8ll << 30;
  }
  for (auto& [role, playbooks] : spec.roles) playbooks.push_back("scheduler");
  const auto plain = ids_of(steps_of(spec, "node01", "scheduler"));
  CHECK(std::none_of(plain.begin(), plain.end(), [](const std::string& id) {
    return id.find("node daemon after the gpus") != std::string::npos;
  }));

  for (auto& node : spec.nodes) node.hardware.gpus = 12;  // more than one digit
  const auto steps = steps_of(spec, "node01", "scheduler");
  const Json params = params_of(steps, "scheduler/node daemon after the gpus[node01]");
  REQUIRE_FALSE(params.is_null());
  CHECK(params["path"] == "/etc/systemd/system/slurmd.service.d/10-muster.conf");
  const std::string unit = params["content"].get<std::string>();
  CHECK(unit.find("\nRestart=on-failure\n") != std::string::npos);
  CHECK(unit.find("\nStartLimitIntervalSec=0\n") != std::string::npos);

  // The look itself, as systemd runs it: "$$" is its spelling of "$".
  const size_t begin = unit.find("-c '") + 4, end = unit.find("'\n", begin);
  std::string look = unit.substr(begin, end - begin);
  for (size_t at; (at = look.find("$$")) != std::string::npos;) look.erase(at, 1);
  TempDir dir;
  for (size_t at = look.find("/dev/"); at != std::string::npos;
       at = look.find("/dev/", at + dir.path("").size()))
    look.replace(at, 5, dir.path(""));
  const auto process = make_process();
  const auto looks = [&] { return process->run({.argv = {"/bin/sh", "-c", look}})->exit_code; };
  for (int i = 0; i < 12; ++i) {
    CHECK(looks() == 1);
    REQUIRE(Files("/").write(dir.path("nvidia" + std::to_string(i)), "").ok());
  }
  CHECK(looks() == 0);
}
