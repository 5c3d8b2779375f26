// Causes among nodes at work, without a run: one switch after the other fails, and single nodes beside it.
#include <fmt/format.h>

#include "base/digest.h"
#include "base/json_dump.h"
#include "bench/cluster.h"
#include "bench/scale.h"

namespace muster::bench {
namespace {

constexpr size_t kBehindSwitch = 32, kInRack = 64;
constexpr size_t kRounds = 20, kSwitchesApart = 3;  // so that no rack loses both of its switches
constexpr size_t kAlone = 5;                        // nodes that fail in each round besides

// "[ leaf0, leaf0, ..., leaf1 ]": a label for each node.
std::string labels(const char* name, size_t each, size_t nodes) {
  std::string out;
  for (size_t i = 0; i < nodes; ++i) out += fmt::format("{} {}{}", i == 0 ? "[" : ",", name, i / each);
  return out + " ]";
}

std::string with_places(std::string text, size_t nodes) {
  const auto at = text.find("    role: cpu\n");
  if (at == std::string::npos) give_up("docs/specs/cpu-cluster.yaml has no nodes of role 'cpu' any more");
  return text.insert(at, fmt::format("    rack: {}\n    switch: {}\n", labels("r", kInRack, nodes),
                                     labels("leaf", kBehindSwitch, nodes)));
}

FactsText inventory_of(const NodeSpec& node) {
  HardwareFacts facts = facts_of(node);
  facts.system.vendor = "Example";
  facts.system.product = "Server 1";
  facts.firmware = "1.0";
  return dump_json(to_json(facts));
}

}  // namespace

void ScaleCluster::look_at_causes(const std::string& when, size_t failed) {
  causes_->changed();
  const int64_t began = thread_cpu_time();
  const std::vector<Cause>& found = causes_->look();
  calls_[when].add(static_cast<double>(thread_cpu_time() - began) / 1e6);
  size_t nodes = 0;
  for (const Cause& cause : found) nodes += cause.nodes.size();
  if (nodes != failed) give_up(fmt::format("{} nodes failed, and the causes have {}", failed, nodes));
}

Json ScaleCluster::look_at_causes() {
  const std::string text = with_places(spec_text(static_cast<int>(spec_.nodes.size())), spec_.nodes.size());
  store(SpecRow{1, clock_.now(), text, sha256(text), ""});
  for (const auto& node : spec_.nodes)
    executor_->set_node(node.name, [facts = inventory_of(node)](NodeRow& row) {
      row.state = NodeState::accepted;
      row.image_digest = "sha256:cpu";
      row.facts = facts;
      row.facts_time = 1;
    });
  do look_at_causes("causes, inventories are read", 0);
  while (causes_->read_inventories());
  size_t failed = 0;
  const auto fail_node = [&](size_t at, const std::string& why) {
    if (at >= spec_.nodes.size()) return;
    executor_->quarantine(spec_.nodes[at].name, why, HeldBy::run);
    ++failed;
  };
  for (size_t round = 0; round < kRounds; ++round) {
    look_at_causes("causes, nothing changed", failed);
    const size_t first = round * kSwitchesApart * kBehindSwitch;
    for (size_t i = 0; i < kBehindSwitch; ++i) fail_node(first + i, "it did not boot");
    for (size_t i = 0; i < kAlone; ++i)
      fail_node(first + kBehindSwitch + i, fmt::format("step {}: no such file", static_cast<char>('a' + i)));
    look_at_causes("causes, more nodes failed", failed);
  }
  run_until([this] { return !store_->oldest(); });
  return calls();
}

}  // namespace muster::bench
