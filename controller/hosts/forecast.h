// What a run on running hosts will not measure, known before anything is measured: from what their agents
// found and from the plan. The one place that decides it; shown on the terminal and in JSON (`not_measured`).
// It is a forecast: the checks run all the same, and the report says what each did. Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "controller/hosts/gpu_programs.h"
#include "controller/hosts/reached.h"
#include "controller/plan/plan.h"

namespace muster {

struct NotMeasured {
  std::string what;                // "GPUs (products, memory, copies, NCCL, training)"
  std::vector<std::string> hosts;  // in the order of their names
  std::string why;                 // "there is no muster-accept-gpu on this machine"
  std::string remedy;              // what to do here or there, then the command is run again
};
Json to_json(const NotMeasured& one);
// "not measured on gpu[01-16]: WHAT: WHY; REMEDY"
std::string to_text(const NotMeasured& one);

struct HostRights {
  std::string host;
  bool root = true;
  std::string why_user = {};  // HostHello
};
struct ForecastInput {
  const Plan& plan;
  const std::vector<ReachedHost>& hosts;  // that take part in the plan
  const std::vector<HostRights>& rights;
  const GpuPrograms& gpu;
  bool libs = false;      // a folder with libraries was named: what is in it is not known
  bool perftest = false;  // muster carries one
};
// GPUs of which nothing is measured come first. Empty: as far as is known, all of the plan will be measured.
std::vector<NotMeasured> forecast(const ForecastInput& input);

}  // namespace muster
