#include "controller/nodes/states.h"

#include <set>
#include <string>

#include "tests/catch.h"

namespace muster {

TEST_CASE("every state of a node has one word, which is read back as that state", "[nodes]") {
  std::set<std::string> words;
  for (int i = 0; i <= static_cast<int>(NodeState::drained); ++i) {
    const auto state = static_cast<NodeState>(i);
    const std::string word(to_string(state));
    CHECK(!word.empty());
    CHECK(words.insert(word).second);
    REQUIRE(node_state_from_string(word).ok());
    CHECK(*node_state_from_string(word) == state);
  }
}

TEST_CASE("every state of a run has one word, which is read back as that state", "[nodes]") {
  std::set<std::string> words;
  for (int i = 0; i <= static_cast<int>(RunState::cancelled); ++i) {
    const auto state = static_cast<RunState>(i);
    const std::string word(to_string(state));
    CHECK(!word.empty());
    CHECK(words.insert(word).second);
    REQUIRE(run_state_from_string(word).ok());
    CHECK(*run_state_from_string(word) == state);
  }
}

TEST_CASE("a word that is no state is taken for none", "[nodes]") {
  for (const char* word : {"", "Accepted", "accepted ", "awake", "Running", "running "}) {
    INFO(word);
    const auto of_node = node_state_from_string(word);
    REQUIRE_FALSE(of_node.ok());
    CHECK(of_node.error().code == Code::invalid);
    const auto of_run = run_state_from_string(word);
    REQUIRE_FALSE(of_run.ok());
    CHECK(of_run.error().code == Code::invalid);
  }
}

}  // namespace muster
