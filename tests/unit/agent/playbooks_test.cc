// Every shipped playbook parses, names only modules that exist, and gives them parameters they accept,
// rendered over a context like the planner's (docs/playbook-context.md).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "agent/core/step.h"
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

Json disk(const char* serial) {
  return {{"serial", serial},
          {"wwid", "eui.1"},
          {"model", "LAB"},
          {"size_bytes", 2147483648u},
          {"content_hash", "sha256:0"},
          {"policy", "format-if-blank"}};
}

Json node(const char* name, const char* address) {
  return {{"name", name}, {"address", address}, {"role", "cpu"}, {"ssh_port", 22}, {"by_label", true}};
}

Json network() {
  return {{"provisioning", "10.20.0.0/24"},
          {"bmc", ""},
          {"storage", ""},
          {"dns", {"10.20.0.53"}},
          {"ntp", {"ntp.example"}},
          {"has_ntp", true},
          {"proxy", "http://10.20.0.1:3128"},
          {"no_proxy", "localhost"},
          {"apt_mirror", "http://mirror.example/debian"},
          {"apt_security", "http://mirror.example/debian-security"},
          {"apt_updates", true},
          {"apt_key", ""},
          {"apt_distribution", "debian"},
          {"resolver", "nameserver 10.20.0.53\n"},
          {"port_settings", {{"DNS", "10.20.0.53"}}},
          {"foreign_dns", {"10.20.0.53"}}};
}

Json pauses() {
  return {{"paused", false},
          {"pausing", false},
          {"has_mpi", true},
          {"in_rollout", true},
          {"drain_timeout_seconds", 86400}};
}

Json containers() {
  return {{"has_containers", true},
          {"container_root", "/scratch/containers"},
          {"docker_root", "/scratch/containers/docker"},
          {"container_mounts", {{{"name", "scratch"}, {"mount", "/scratch"}}}}};
}

// Set, and with `unset` as the playbook has them where the spec does not set them.
Json with_optional(Json vars, const Playbook& playbook, bool unset) {
  for (const auto& group : playbook.optional_vars)
    for (const auto& name : group) vars[name] = unset ? "" : "value-of-" + name;
  return vars;
}

Json nvidia_variables() {
  return {{"nvidia_repository", "http://10.20.0.1/nvidia"},
          {"nvidia_key_url", "http://10.20.0.1/key"},
          {"nvidia_key_sha256", std::string(64, 'a')},
          {"nvidia_driver", "595.10.01"},
          {"nvidia_branch", "595"},
          {"nvidia_cuda", "13-0"},
          {"nvidia_cuda_major", "13"},
          {"nvidia_nccl", "2.28.3-1+cuda13.0"},
          {"nvidia_dcgm", "1:4.4.1-1"}};
}

Json context() {
  const Json first = node("node01", "10.20.0.11"), second = node("node02", "10.20.0.12");
  Json out = {{"cluster", "lab"},
              {"controller", {{"address", "10.20.0.1"}, {"url", "https://10.20.0.1:7443"}}},
              {"node", first},
              {"nodes", {first, second}},
              {"peers", {second}},
              {"next", second},
              {"leader", first},
              {"is_leader", true},
              {"users", {{{"name", "ops"}, {"keys", {"ssh-ed25519 AAAA ops"}}, {"sudo", true}, {"uid", 0}}}},
              {"network", network()},
              {"time_zone", "Europe/Berlin"},
              {"firewall", {{{"from", "10.0.0.0/8"}, {"ports", "443"}, {"comment", "declared"}}}},
              {"packages", {"tmux"}},
              {"sysctls", {{"vm.swappiness", "10"}}},
              {"storage_local",
               {{{"name", "scratch"},
                 {"mount", "/scratch"},
                 {"level", "raid0"},
                 {"fs", "xfs"},
                 {"source", "disks:eui.1/A,eui.1/B"},
                 {"disks", {disk("A"), disk("B")}}}}},
              {"storage_shared",
               {{{"name", "shared"},
                 {"engine", "moosefs"},
                 {"external", false},
                 {"mount", "/shared"},
                 {"copies", 2},
                 {"leader", first},
                 {"is_leader", true},
                 {"members", {first, second}},
                 {"clients", {second}},
                 {"fstype", "fuse*"},
                 {"source", "*10.20.0.11:9421"},
                 {"is_member", true},
                 {"may_create", true},
                 {"take_over", true},
                 {"accept_old", false},
                 {"other_masters", Json::array()},
                 {"disks", {disk("C")}}}}},
              {"hosts", "10.20.0.11 node01\n10.20.0.12 node02\n"},
              {"public", {{"mpi_ssh_key", "ssh-ed25519 AAAA mpi"}}},
              {"accounting", true},
              {"rdma_peers", {second}},
              {"soft_roce", true},
              {"acs", {{"bridges", Json::array()}}},
              {"rdma_ports", Json::array()},
              {"vars", nvidia_variables()}};
  out["controller"]["metrics"] = {"10.20.0.1:7481"};
  out["storage_shared"][0].update({{"address", "10.20.0.11"}, {"network", "10.20.0.0/24"}});
  out["storage_moosefs"] = out["storage_shared"];
  out["storage_nfs"] = {{{"name", "home"},
                         {"engine", "nfs"},
                         {"mount", "/export"},
                         {"leader", first},
                         {"is_leader", true},
                         {"is_member", true},
                         {"members", {first}},
                         {"clients", {second}},
                         {"level", "raid0"},
                         {"fs", "xfs"},
                         {"fstype", "xfs"},
                         {"source", "disks:eui.1/A,eui.1/B"},
                         {"disks", {disk("D")}}}};
  out["storage_beegfs"] = out["storage_nfs"];
  out["storage_external"] = {{{"name", "data"},
                              {"engine", "external"},
                              {"external", true},
                              {"mount", "/data"},
                              {"fstype", "nfs4"},
                              {"is_ceph", false},
                              {"source", "10.0.0.5:/export"},
                              {"device", "10.0.0.5:/export"},
                              {"server", "10.0.0.5"},
                              {"options", ""},
                              {"writable", true},
                              {"is_leader", true},
                              {"leader", first}}};
  out["storage_ceph"] = out["storage_shared"];
  out["storage_ceph"][0].update({{"fsid", "f"},
                                 {"mons", {first, second}},
                                 {"is_mon", true},
                                 {"member_count", 2},
                                 {"min_copies", 1},
                                 {"standbys", 1},
                                 {"osd_memory", 939524096}});
  out.update({{"rails", {{{"rail", 0}, {"address", "10.100.0.11"}, {"network", "10.100.0.0/24"}}}},
              {"storage_port", Json::array()},
              {"rail_gpus", 8},
              {"rail_qos", {{"pfc", {3}}, {"dscp", {{"26", 3}}}, {"ets", Json::object()}}},
              {"rail_traffic_class", 106},
              {"rail_rules", {{{"from", "10.100.0.0/24"}, {"to", "10.100.0.11"}, {"comment", "rail 0"}}}},
              {"rails_infiniband", true},
              {"foreign_ports", false},
              {"controller_rules", {{{"port", 67}, {"proto", "udp"}, {"comment", "DHCP"}}}},
              {"closed_port", 9}});
  Json machine = first;
  machine.update({{"cpus", 2},
                  {"memory_mib", 1900},
                  {"gpus", 8},
                  {"gpu_files", "/dev/nvidia[0-7]"},
                  {"gpu_type", "h100"},
                  {"simulated_gpus", false}});
  out.update({{"machines", {machine}},
              {"own_gpus", {machine}},
              {"has_gpus", true},
              {"gpu_fleet", {machine, machine}},
              {"gpus_of_each", 8}});
  out["node"].update({{"prefix", 24}, {"mac", "52:54:00:00:00:01"}, {"image", "debian-12"}});
  out.update(pauses());
  out.update(containers());
  return out;
}

std::vector<fs::path> playbooks() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() + "/playbooks"))
    if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  return out;
}

std::string problem(const std::string& module, const Json& params, const Json& with) {
  const StepModule* found = find_step_module(module);
  if (!found) return "no module '" + module + "'";
  Json sent = params;
  // The executor's own words, taken out before an order is sent.
  if (sent.is_object()) sent.erase("peers_live"), sent.erase("next_live"), sent.erase("peers_in_plan");
  const auto rendered = render_params(sent, with);
  if (!rendered.ok()) return rendered.error().message;
  const auto accepted = check_parameters(*found, *rendered);
  return accepted.ok() ? "" : accepted.error().message;
}

TEST_CASE("every shipped playbook fits the modules") {
  REQUIRE(playbooks().size() >= 5);
  for (const auto& path : playbooks()) {
    std::ifstream in(path);
    const auto parsed = parse_playbook({std::istreambuf_iterator<char>(in), {}});
    INFO(path.string());
    for (const auto& error : parsed.errors) FAIL_CHECK(to_string(error, path.filename().string()));
    CHECK(!parsed.playbook.steps.empty());
    for (size_t i = 0; i < 2 * parsed.playbook.steps.size(); ++i) {
      const PlaybookStep& step = parsed.playbook.steps[i / 2];
      INFO(step.name);
      Json with = context();
      with["vars"] = with_optional(with["vars"], parsed.playbook, i % 2 == 1);
      CHECK(render_params(Json(step.otherwise), with).ok());
      std::vector<Json> items = {Json()};
      if (!step.for_each.empty()) {
        REQUIRE(with.contains(step.for_each));
        items = with[step.for_each].get<std::vector<Json>>();
      }
      for (const auto& item : items) {
        if (!item.is_null()) with["item"] = item;
        CHECK(problem(step.module, step.params, with) == "");
        if (!step.verify.is_null())
          CHECK(problem(step.verify["module"].get<std::string>(), step.verify["params"], with) == "");
      }
    }
  }
}

TEST_CASE("a mount that BeeGFS' client has made long ago is looked at, after the service") {
  std::ifstream in(source_dir() + "/playbooks/storage-beegfs.yaml");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto steps = parse_playbook(text).playbook.steps;
  const auto mounted =
      std::find_if(steps.begin(), steps.end(), [](const auto& s) { return s.name == "mount"; });
  REQUIRE(mounted != steps.end());
  const auto flags =
      std::find_if(mounted, steps.end(), [](const auto& s) { return s.module == "mount_flags"; });
  REQUIRE(flags != steps.end());
  CHECK(flags->phase == "cluster");
  CHECK(flags->stage == mounted->stage);
  CHECK(flags->params["flags"] == "nosuid,nodev");
  CHECK(flags->when.empty());
}

TEST_CASE("the playbook test can fail") {
  CHECK(problem("no-such-module", Json::object(), context()) != "");
  CHECK(problem("mount", {{"sorce", "x"}}, context()) != "");
  CHECK(problem("file", {{"path", "{{nodes.nope}}"}}, context()) != "");
}

}  // namespace
}  // namespace muster
