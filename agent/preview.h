// Preview, on a host that may be adopted: what is in it, whether it may be adopted at all, and what the
// steps of a plan would change.
//
// For a request {node, pin, steps?: [wire::Step...]} (agent/adopting.h), the answer is:
//   {"facts": base/facts.h, "joined": bool, "refusal": "", "steps": [{step, module, outcome, diff, message}]}
// `joined`: the host is that node of that controller already, and its agent runs. `refusal`: why it cannot be
// adopted, empty if it can. outcome: already | would_change | not_applicable | unknown (the check has no
// result, mostly because a program that it needs is not installed yet) | secret (its parameters contain a
// secret, which is only sent during a run). Tests and measurements of a plan change nothing and are left out.
// Writes nothing: only checks of step modules run (agent/step.h). Thread: plain functions.
#pragma once

#include <string>
#include <vector>

#include "agent/step.h"
#include "base/wire.h"

namespace muster {

struct PreviewRequest {
  std::string node, pin;
  std::vector<wire::Step> steps = {};
};
// invalid: not JSON, an unknown or missing key.
Result<PreviewRequest> preview_request(const std::string& json);

// One entry of "steps" per step that can change something, in order.
Json preview_steps(StepContext& context, const std::vector<wire::Step>& steps);

// The whole answer. An Error only when the hardware cannot be read.
Result<Json> preview(Files& files, Process& process, const PreviewRequest& request);

}  // namespace muster
