#include "bench/cluster.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/json_dump.h"
#include "controller/spec/reader/parse_playbook.h"
#include "controller/spec/reader/parse_spec.h"
#include "sys/os.h"

namespace muster::bench {
namespace {

void replace(std::string& text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) give_up("docs/specs/cpu-cluster.yaml has no '" + from + "' any more");
  text.replace(at, from.size(), to);
}

Playbook shipped(const std::string& name) {
  const auto text = Files().read("playbooks/" + name + ".yaml");
  auto parsed = parse_playbook(text.value_or(""));
  if (!text.ok() || !parsed.errors.empty()) give_up("playbooks/" + name + ".yaml cannot be read");
  return parsed.playbook;
}

}  // namespace

void give_up(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::fflush(nullptr);
  std::_Exit(1);
}

std::string spec_text(int nodes) {
  std::string text = Files().read("docs/specs/cpu-cluster.yaml").value_or("");
  replace(text, "cidr: 10.20.0.0/24", "cidr: 10.20.0.0/16");
  replace(text, "cidr: 10.20.1.0/24", "cidr: 10.30.0.0/16");
  replace(text, "gateway: 10.20.0.254", "gateway: 10.20.255.254");
  replace(text, "dns: [ 10.20.0.53, 10.20.0.54 ]", "dns: [ 10.20.255.53, 10.20.255.54 ]");
  replace(text, "cpu[01-16]", fmt::format("cpu[0001-{:04}]", nodes));
  replace(text, "    address: \"10.20.0.{n+10}\"\n", "");
  replace(text, "10.20.1.{n+10}", "10.30.0.1:{n}");
  std::string macs;
  for (int i = 1; i <= nodes; ++i)
    macs += fmt::format("{}\"b8:ce:f6:00:{:02x}:{:02x}\"", i == 1 ? "" : ", ", i / 256, i % 256);
  const auto begin = text.find("mac: ["), end = text.find(']', begin);
  text.replace(begin, end - begin + 1, "mac: [ " + macs + " ]");
  return text;
}

PlannerInput cluster_of(int nodes) {
  PlannerInput in;
  const ParsedSpec parsed = parse_spec(spec_text(nodes));
  for (const auto& error : parsed.errors) give_up(to_string(error, "cpu-cluster.yaml"));
  in.spec = parsed.spec;
  in.revision = 1;
  for (const auto& [role, names] : in.spec.roles)
    for (const auto& name : names) in.playbooks[name] = shipped(name);
  const std::string profile = "acceptance/" + in.spec.acceptance_profile;
  in.playbooks[profile] = shipped(profile);
  for (const auto& [name, image] : in.spec.images)
    in.images[name] = {"sha256:" + name, "/images/" + name + "/manifest.json"};
  in.public_values["mpi_ssh_key"] = "ssh-ed25519 AAAA mpi";
  in.controller_address = "10.20.255.1";
  return in;
}

HardwareFacts facts_of(const NodeSpec& node) {
  HardwareFacts facts;
  facts.system.uuid = "uuid-" + node.name;
  facts.cpus.count = node.hardware.cpus.value_or(1);
  facts.memory_bytes = static_cast<uint64_t>(node.hardware.memory_bytes_min);
  for (const auto& [group, wanted] : node.disks)
    for (int i = 0; i < wanted.match.count; ++i) {
      DiskFacts disk;
      disk.serial = fmt::format("{}-{}-{}", group, node.name, i);
      disk.wwid = "eui." + disk.serial;
      disk.name = fmt::format("nvme{}n1", facts.disks.size());
      disk.model = wanted.match.model.value_or("");
      std::replace(disk.model.begin(), disk.model.end(), '*', '1');
      disk.size_bytes = static_cast<uint64_t>(wanted.match.size_bytes.value_or(960'000'000'000));
      disk.transport = "nvme";
      disk.blank = true;
      disk.content_hash = "sha256:blank-" + disk.serial;
      facts.disks.push_back(disk);
    }
  return facts;
}

NodeObservation seen(const NodeSpec& node) {
  NodeObservation out;
  out.facts = out.machine = facts_of(node);
  out.mode = wire::Mode::ram;
  out.online = true;
  out.state = NodeState::discovered;
  out.product_uuid = out.facts->system.uuid;
  return out;
}

Plan planned(const PlannerInput& input) {
  auto made = make_plan(input);
  if (!made.ok()) give_up(made.error().message);
  for (const auto& refusal : made->refusals)
    give_up(refusal.node + " " + refusal.rule + ": " + refusal.message);
  return std::move(made->plan);
}

double seconds_of(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

Json in_child(const std::string& what, const std::function<Json()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) give_up("pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const std::string text = dump_json(work());
    const bool all = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    std::fflush(nullptr);
    std::_Exit(all ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t got; (got = ::read(ends[0], piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<size_t>(got));
  ::close(ends[0]);
  int status = 1;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0 || text.empty())
    give_up(what + ": it did not finish");
  return parse_json(text).value_or(Json());
}

}  // namespace muster::bench
