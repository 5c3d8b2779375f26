// What is at a path that an operator gave: looked at before anything is written, replaced or removed there.
//
// A name may change between the look and the use: callers that write still use calls that fail where
// something is in the way. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

enum class PathKind {
  nothing,
  file,
  folder,
  socket,
  link,
  other,  // a device or a pipe
};

// Ok if what is at `path` is of one of these kinds. A link is followed where a file or a folder is wanted.
// conflict: only `nothing` is wanted, and the name is taken. not_found: nothing is there. invalid: it is of
// another kind, which the message names. denied, failed: it cannot be looked at.
Status expect_at(const std::string& path, const std::vector<PathKind>& wanted);

// The same of an option's value, for Argument::check: what is wrong; "" if nothing is, or it is empty.
std::string wrong_path(const std::string& given, const std::vector<PathKind>& wanted);

}  // namespace muster
