// What a receiver wants, and what it knows: parts of the book (controller/notices/book.h). Pure functions.
#pragma once

#include <map>
#include <string>

#include "controller/notices/notice.h"
#include "controller/spec/notify_spec.h"

namespace muster::notices {

// What the ids of summaries begin with that a receiver gets of what it lacks.
inline constexpr const char* kCatchUp = "open";
bool is_catch_up(const Notice& notice);
// Whether it gets notices of this kind; that it fails itself is for the others.
bool wants(const Receiver& receiver, const std::string& kind, const std::string& what, bool urgent);
// Changes what it knows as open, by cause, to what it knows with this notice.
void note_open(std::map<std::string, Change>& open, const Notice& notice);

}  // namespace muster::notices
