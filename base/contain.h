// contain_exceptions(): where an exception ends. muster's functions return errors; what throws all the same
// (a library, memory, a value of another shape) must not end the controller or an agent, so whatever a thread
// runs on behalf of others is run through here. Thread: any.
#pragma once

#include <exception>
#include <utility>

#include "base/log.h"

namespace muster {

// Runs `work`. What it throws is logged as an error, and false is returned: the caller then says what has
// become of the work. `what`: "a task of the reactor".
template <typename Work>
bool contain_exceptions(const char* what, Work&& work) {
  try {
    std::forward<Work>(work)();
    return true;
  } catch (const std::exception& e) {
    log::error("an exception was contained; please report it", {{"in", what}, {"what", e.what()}});
    return false;
  }
}

}  // namespace muster
