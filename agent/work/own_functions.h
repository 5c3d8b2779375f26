// The functions with which a RAM system and an installed system carry out orders about images, slots and
// restarts (agent/work/work_runner.h). Created by agent/main.cc; `files` and `process` must outlive the
// result. Thread: the functions run in the worker thread.
#pragma once

#include <functional>
#include <string>

#include "agent/work/work_runner.h"
#include "sys/os.h"

namespace muster {

WorkFunctions ram_functions(const Files& files, Process& process, const std::string& node);
// `a_second` waits for one second between two checks that an ordered restart has begun.
WorkFunctions installed_functions(const Files& files, Process& process,
                                  std::function<void()> a_second = wait_a_second);

}  // namespace muster
