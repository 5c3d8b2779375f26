// contain_exceptions(): where an exception ends. muster's functions return errors; an exception that still
// occurs (in a library, for lack of memory, over a value of an unexpected type) must not end the controller
// or an agent, so everything that a thread runs for other code runs through here. Thread: any.
#pragma once

#include <exception>
#include <utility>

#include "base/log.h"

namespace muster {

// Runs `work`. An exception is logged as an error, and false is returned: the caller then reports the result
// of the work. `what`: "a task of the reactor".
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
