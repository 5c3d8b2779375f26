// Events of the live log in words, for every kind (base/event_kind.h). Input is the JSON of the API. Pure
// function.
#pragma once

#include <string>

#include "base/json.h"

namespace muster::cli {

// One line without control characters; never empty. Of a kind that a later version sends: its data as JSON.
std::string event_words(const Json& event);

}  // namespace muster::cli
