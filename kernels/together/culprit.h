// Determines which members prevent a group from continuing, from its members' statements about each other. A
// member that detects a problem sends one statement to all: which member's connection ended, or which member
// it is waiting for. Its sender is running, so a chain of waiting members ends at the silent one: if 1 waits
// for 2 and 2 for 3, all name 3. Every member reaches the same conclusion, from the same statements. Thread
// safety: stateless functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/together/group.h"

namespace muster::together {

struct LossReport {
  int rank = 0;
  Loss kind = Loss::silent;
  bool operator==(const LossReport&) const = default;
};
using LossReports = std::vector<LossReport>;

struct Statement {
  // True: the sender's timeout has passed, and members it names count as faulty. False: `silent` names the
  // members for which it is waiting.
  bool expired = false;
  LossReports reported = {};
};

struct Evidence {
  int self = 0;
  std::vector<std::optional<Statement>> said = {};  // statements, including its own
  std::vector<bool> gone = {};                      // the member's connection has ended
  std::vector<bool> left = {};                      // the member reported that it was done

  explicit Evidence(int rank, size_t members) : self(rank), said(members), gone(members), left(members) {}
  bool dead(size_t rank) const { return gone[rank] && !said[rank] && !left[rank]; }
};

// Returns the members that are the cause, by rank, each once; empty if none can be named yet.
LossReports culprits(const Evidence& evidence);
// True if no further statement can change the conclusion `named`: all members have sent theirs or are gone,
// except those that are named. If several silent members are named, their statements are also waited for,
// because one of them may be waiting for another.
bool settled(const Evidence& evidence, const LossReports& named);

// The wire format of statements. decode_statement() returns nothing if invalid for a group of that size.
std::string encode(const Statement& statement);
std::optional<Statement> decode_statement(std::string_view bytes, size_t members);

}  // namespace muster::together
