// What a cause says to operators: what is wrong, with how many nodes, and the command to type next. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/causes/cause.h"

namespace muster {

bool is_of_nodes(CauseKind kind);

// Sets `what` and `next` of a cause whose other members are set. `of`: how many nodes have the common value;
// 0 if it is no property of nodes. `problems`: those behind it, at least one. Where the kind is not about
// nodes, `detail` becomes `what`.
void describe(Cause& cause, size_t of, const std::vector<const Problem*>& problems);

// Without control characters.
std::string on_one_line(const std::string& text);

}  // namespace muster
