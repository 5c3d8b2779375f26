// contain_exceptions(): stops exceptions. muster's functions return errors; an exception that still occurs
// (in a library, out of memory, a value of an unexpected type) must not end the controller or an agent, so
// all work that a thread runs for other code runs through this function. Thread: any.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "sys/log.h"

namespace muster {

// Runs `work`. If it throws, logs the exception as an error and returns false; the caller then reports that
// the work failed. `what` names the work in the log: "a task of the reactor". `shown` makes of the
// exception's text what may be logged.
template <typename Work, typename Shown = std::string (*)(const char*)>
bool contain_exceptions(
    const char* what, Work&& work, Shown shown = [](const char* text) { return std::string(text); }) {
  try {
    std::forward<Work>(work)();
    return true;
  } catch (const std::exception& e) {
    log::error("an exception was contained: report this as a bug", {{"in", what}, {"what", shown(e.what())}});
    return false;
  }
}

}  // namespace muster
