// Which members are the reason why a group cannot continue, derived from what its members report about each
// other.
//
// Each member that notices trouble sends one statement to all: which member's connection ended, or which one
// it waits for. A member that sends a statement runs, so a chain of members that wait for each other ends at
// the silent one: when 1 waits for 2 and 2 for 3, all name 3. Every member draws the conclusion from the same
// statements. Thread: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/together/group.h"

namespace muster::together {

struct Accusation {
  int rank = 0;
  Loss kind = Loss::silent;
  bool operator==(const Accusation&) const = default;
};
using Accusations = std::vector<Accusation>;

struct Statement {
  // Its timeout has passed: what it names counts as faulty. Without that, `silent` says only which members it
  // waits for.
  bool expired = false;
  Accusations accused = {};
};

// What one member knows, by rank.
struct Evidence {
  int self = 0;
  std::vector<std::optional<Statement>> said = {};  // its own too
  std::vector<bool> gone = {};                      // their connection has ended
  std::vector<bool> left = {};                      // they reported that they were done

  explicit Evidence(int rank, size_t members) : self(rank), said(members), gone(members), left(members) {}
  bool dead(size_t rank) const { return gone[rank] && !said[rank] && !left[rank]; }
};

// By rank, each once; empty: none is named yet.
Accusations culprits(const Evidence& evidence);
// No outstanding statement can change that: all members have made theirs or are gone, except those that are
// named. Several silent members are waited for: one of them may be waiting for another.
bool settled(const Evidence& evidence, const Accusations& named);

// The form in which they are sent. Nothing for anything but a statement of a group of this many members.
std::string encode(const Statement& statement);
std::optional<Statement> decode_statement(std::string_view bytes, size_t members);

}  // namespace muster::together
