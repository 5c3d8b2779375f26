// What a cause says to operators: what is wrong, with how many nodes, and the command to type next. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/causes/cause.h"

namespace muster {

bool is_of_nodes(CauseKind kind);

// How the topics of problems begin that receivers of notices have; the receiver's name follows.
inline constexpr std::string_view kReceiverTopic = "receiver ";

// Sets `what` and `next` of a cause whose other members are set. `of`: how many nodes have the common value;
// 0 if it is no property of nodes. `problems`: those behind it, at least one. Where the kind is not about
// nodes, `detail` becomes `what`.
void describe(Cause& cause, size_t of, const std::vector<const Problem*>& problems);

// `command` with the names of the cause's nodes behind it; `without_names` where they are too long for a
// command line that a person reads.
std::string with_names(const std::string& command, const Cause& cause, const std::string& without_names);

// NodePlace::model: "Dell Inc. PowerEdge XE9680". Either may be "".
std::string model_value(const std::string& vendor, const std::string& product);

// Without control characters.
std::string on_one_line(const std::string& text);

}  // namespace muster
