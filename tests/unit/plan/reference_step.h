// A step of the small reference cluster (lab/hgx.yaml), which has two GPUs a node, as hgx01 gets it.
// Header-only; tests only.
#pragma once

#include <string>

#include "base/standin.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/plan/spec_text.h"

namespace muster::testing {

// The first one whose id begins so, "scheduler/health"; the test fails where there is none.
inline Json reference_step(const std::string& id) {
  PlannerInput in =
      shipped_input(replaced(text_of(source_dir() + "/lab/hgx.yaml"), "\"ssh-ed25519 LAB_SSH_KEY lab\"",
                             "\"" + std::string(kKey) + "\""));
  in.lab = true;
  for (const char* node : {"hgx01", "hgx02"}) in.nodes[node].facts->gpus = standin_facts({2}, "abcd");
  const Plan plan = planned_of(in);
  for (const auto& action : plan.actions)
    if (action.node == "hgx01" && action.params.is_object())
      for (const auto& step : action.params.value("steps", Json::array()))
        if (step["id"].get<std::string>().starts_with(id)) return step;
  FAIL("no step " << id);
  return {};
}

}  // namespace muster::testing
