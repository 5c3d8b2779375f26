// What the orders of a RAM system and of an installed one do that others do not: images, slots, restarts
// (agent/work_runner.h). Made by agent/main.cc; `files` and `process` outlive what is returned. Thread: the
// functions run in the worker thread.
#pragma once

#include <string>

#include "agent/work_runner.h"
#include "base/os.h"

namespace muster {

WorkFunctions ram_functions(const Files& files, Process& process, const std::string& node);
WorkFunctions installed_functions(const Files& files, Process& process);

}  // namespace muster
