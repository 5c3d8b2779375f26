#include "controller/nodes/states.h"

#include <array>
#include <utility>

namespace muster {
namespace {

constexpr std::array<std::pair<NodeState, std::string_view>, 9> kNodeWords = {
    {{NodeState::unknown, "unknown"},
     {NodeState::discovered, "discovered"},
     {NodeState::unadmitted, "unadmitted"},
     {NodeState::installing, "installing"},
     {NodeState::accepted, "accepted"},
     {NodeState::degraded, "degraded"},
     {NodeState::quarantined, "quarantined"},
     {NodeState::draining, "draining"},
     {NodeState::drained, "drained"}}};
constexpr std::array<std::pair<RunState, std::string_view>, 5> kRunWords = {
    {{RunState::running, "running"},
     {RunState::done, "done"},
     {RunState::partial, "partial"},
     {RunState::failed, "failed"},
     {RunState::cancelled, "cancelled"}}};

template <typename Table, typename Value>
std::string_view word_of(const Table& table, Value value) {
  for (const auto& [known, word] : table)
    if (known == value) return word;
  return "";
}
template <typename Table, typename Value>
Value value_of(const Table& table, std::string_view text, Value otherwise) {
  for (const auto& [value, word] : table)
    if (word == text) return value;
  return otherwise;
}

}  // namespace

std::string_view to_string(NodeState state) { return word_of(kNodeWords, state); }
NodeState node_state_from_string(std::string_view word) {
  return value_of(kNodeWords, word, NodeState::unknown);
}
std::string_view to_string(RunState state) { return word_of(kRunWords, state); }
RunState run_state_from_string(std::string_view word) { return value_of(kRunWords, word, RunState::failed); }

}  // namespace muster
