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
    CHECK(node_state_from_string(word) == state);
  }
}

TEST_CASE("every state of a run has one word, which is read back as that state", "[nodes]") {
  std::set<std::string> words;
  for (int i = 0; i <= static_cast<int>(RunState::cancelled); ++i) {
    const auto state = static_cast<RunState>(i);
    const std::string word(to_string(state));
    CHECK(!word.empty());
    CHECK(words.insert(word).second);
    CHECK(run_state_from_string(word) == state);
  }
}

TEST_CASE("from a word that is no state nothing is concluded, and nothing is resumed", "[nodes]") {
  for (const char* word : {"", "Accepted", "accepted ", "awake"}) {
    CHECK(node_state_from_string(word) == NodeState::unknown);
    CHECK(run_state_from_string(word) == RunState::failed);
  }
}

}  // namespace muster
