// A reason without what differs from node to node, so that equal faults of different nodes read alike. Pure.
#pragma once

#include <functional>
#include <string>

namespace muster {

// Returns the reason with "*" for names of nodes (several in a row are one), addresses, digests, times,
// numbers and other words with several numbers in them; within a word, one number becomes "#". Letters, and
// so all that names the fault, stay. Of a long one only the start, at most 1,000 bytes, in bounded time.
std::string normal_reason(const std::string& whole, const std::function<bool(const std::string&)>& is_node);

}  // namespace muster
