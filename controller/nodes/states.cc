#include "controller/nodes/states.h"

#include <string>

#include "base/words.h"

namespace muster {
namespace {

constexpr Words<NodeState, 9> kNodeWords = {{{NodeState::unknown, "unknown"},
                                             {NodeState::discovered, "discovered"},
                                             {NodeState::unadmitted, "unadmitted"},
                                             {NodeState::installing, "installing"},
                                             {NodeState::accepted, "accepted"},
                                             {NodeState::degraded, "degraded"},
                                             {NodeState::quarantined, "quarantined"},
                                             {NodeState::draining, "draining"},
                                             {NodeState::drained, "drained"}}};
constexpr Words<RunState, 5> kRunWords = {{{RunState::running, "running"},
                                           {RunState::done, "done"},
                                           {RunState::partial, "partial"},
                                           {RunState::failed, "failed"},
                                           {RunState::cancelled, "cancelled"}}};

constexpr Words<NodeRunState, 6> kNodeRunWords = {{{NodeRunState::waiting, "waiting"},
                                                   {NodeRunState::running, "running"},
                                                   {NodeRunState::done, "done"},
                                                   {NodeRunState::returned, "returned"},
                                                   {NodeRunState::quarantined, "quarantined"},
                                                   {NodeRunState::not_started, "not_started"}}};

}  // namespace

std::string_view to_string(NodeState state) { return word_of(kNodeWords, state); }
Result<NodeState> node_state_from_string(std::string_view word) {
  if (const auto state = value_of(kNodeWords, word)) return *state;
  return fail(Code::invalid, "unknown node state '" + std::string(word) + "'");
}
std::array<NodeState, 9> node_states() { return values_of(kNodeWords); }
std::string_view to_string(RunState state) { return word_of(kRunWords, state); }
Result<RunState> run_state_from_string(std::string_view word) {
  if (const auto state = value_of(kRunWords, word)) return *state;
  return fail(Code::invalid, "unknown run state '" + std::string(word) + "'");
}
std::string_view to_string(NodeRunState state) { return word_of(kNodeRunWords, state); }
std::optional<NodeRunState> node_run_state_from_string(std::string_view word) {
  return value_of(kNodeRunWords, word);
}
std::array<RunState, 5> run_states() { return values_of(kRunWords); }

}  // namespace muster
