// Preview of an adoption, on the host: its hardware, whether it may be adopted at all, and what the steps of
// a plan would change.
//
// For a request {node, pin, steps?: [wire::Step...]} (agent/joining/adopting.h), the answer is:
//   {"facts": base/facts.h, "joined": bool, "refusal": "", "steps": [{step, module, outcome, diff, message}]}
// `joined`: the host already is that node of that controller, and its agent runs. `refusal`: why it cannot be
// adopted, empty if it can. outcome: already | would_change | not_applicable | unknown (the check has no
// result, mostly because a program that it needs is not installed yet) | secret (its parameters contain a
// secret, which is only sent during a run). Tests and measurements of a plan change nothing and are left out.
// Writes nothing: only checks of step modules run (agent/core/step.h). Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "agent/core/step.h"
#include "base/wire.h"

namespace muster {

struct PreviewRequest {
  std::string node, pin;
  std::vector<wire::Step> steps = {};
};
// Parses a request. invalid: not JSON, or an unknown or missing key.
Result<PreviewRequest> preview_request(const std::string& json);

// Returns one entry of "steps" for each step that can change something, in order.
Json preview_steps(StepContext& context, const std::vector<wire::Step>& steps);

// Returns the whole answer. An Error only if the hardware cannot be read.
Result<Json> preview(Files& files, Process& process, const PreviewRequest& request);

}  // namespace muster
