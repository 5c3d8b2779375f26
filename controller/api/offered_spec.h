// A spec that a request offers, checked as a whole, before anything is made of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/api/api.h"
#include "controller/ports/store.h"
#include "controller/spec/spec.h"

namespace muster::api {

struct OfferedSpec {
  Spec spec;
  std::string digest;                    // of its text
  std::optional<SpecRow> newest;         // the stored revision; none: there is none
  bool unchanged = false;                // it is the newest revision
  std::vector<SpecError> warnings = {};  // those that it does not silence
};
// Responds with the errors and returns nothing if the text may not be stored. `file`: its name in messages.
std::optional<OfferedSpec> offered_spec(const CallPtr& call, const std::string& text,
                                        const std::string& file);

}  // namespace muster::api
