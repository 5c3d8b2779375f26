// The names in an open folder: those that are there, one that is free, and their removal. All is relative to
// the descriptor and follows no link. Thread safety: stateless functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

// Without "." and "..". `folder` may be open with O_PATH. Nothing is called for one that cannot be read.
void each_name(int folder, const std::function<void(std::string_view)>& use);
bool has_names(int folder);
// Eight of them, for a name that is free; who guesses it gains nothing.
std::string random_digits();
// With all that is below it. No error when it is already gone; `path` is for messages.
Status remove_entry(int folder, const std::string& name, const std::string& path);
// What is in the folder, but not `kept`.
Status remove_all_in(int folder, const std::string& path, std::string_view kept = {});

}  // namespace muster
