// The agent's end of `muster node add --adopt`: one session over SSH, one upload, several requests.
//
// `muster-agent adopt --stdin` prints {"ready": true} and then answers each line of JSON with one:
//   {"ask": "look", "node", "pin", "steps"?: [wire::Step...]}   what is on this host, and what the steps
//       would change: preview(). Writes nothing.
//   {"ask": "join", "url", "pin", "token", "node"}              installs this program in /usr/sbin, joins,
//       and keeps the agent running. Answer: {"node": ...}
//   {"ask": "nothing"}   does nothing: a check that it still responds. Answer: {}
// Answers {"error": {"code", "message"}} on failure; the next line may be a retry. Ends when its input ends.
//
// Adopted is a running Linux host that muster did not install: the agent becomes a systemd service that
// survives reboots, and nothing else on the host is changed. Rejected before the token is used: a host that
// already belongs to a different controller or is a different node, and a host without systemd. Thread
// safety: stateless functions.
#pragma once

#include <functional>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "agent/core/identity.h"
#include "agent/core/step.h"
#include "base/result.h"
#include "base/wire.h"
#include "sys/os.h"

namespace muster {

// invalid: not JSON, or an unknown or missing key.
Result<BootParameters> join_parameters(const std::string& json);

// Of this host, whether or not it has an identity yet.
std::string identity_folder(const Files& files);

// conflict: the identity in `folder` is of a different controller (by its CA pin) or node.
Status may_join(const Files& files, const std::string& folder, const BootParameters& boot);

// invalid: this host does not run systemd, which must start the agent.
Status may_serve(const Files& files);
// Writes the unit if it differs (muster's images have one), enables and restarts it: the identity may be new.
Status start_service(const Files& files, Process& process, const std::string& folder);

// Preview of an adoption, on the host: its hardware, whether it may be adopted at all, and what the steps of
// a plan would change. The answer is:
//   {"facts": base/facts.h, "joined": bool, "refusal": "", "steps": [{step, module, outcome, diff, message}]}
// `joined`: the host already is that node of that controller, and its agent runs. `refusal`: why it cannot be
// adopted, empty if it can. outcome: already | would_change | not_applicable | unknown (the check has no
// result, mostly because a program that it needs is not installed yet) | secret (its parameters contain a
// secret, which is only sent during a run). Tests and measurements of a plan change nothing and are left out.
// Only checks of step modules run (agent/core/step.h).
struct PreviewRequest {
  std::string node, pin;
  std::vector<wire::Step> steps = {};
};
// invalid: as for join_parameters().
Result<PreviewRequest> preview_request(const std::string& json);

// One entry of "steps" for each step that can change something, in order.
Json preview_steps(StepContext& context, const std::vector<wire::Step>& steps);

// The whole answer. An Error only if the hardware cannot be read.
Result<Json> preview(Files& files, Process& process, const PreviewRequest& request);

inline constexpr const char* kAgentProgram = "/usr/sbin/muster-agent";

struct Adopting {
  Files& files;
  Process& process;
  // Joins as requested and keeps the agent running; returns the node's name.
  std::function<Result<std::string>(const BootParameters&)> join;
};
void answer_adopter(const Adopting& host, std::istream& in, std::ostream& out);

// Installs this running program at kAgentProgram, unless it is already there.
Status settle_program(const Files& files);

}  // namespace muster
