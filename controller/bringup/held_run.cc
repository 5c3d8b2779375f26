#include "controller/bringup/held_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/bringup/run_view.h"
#include "controller/nodes/states.h"
#include "controller/spec/lab_only.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr const char* kTopic = "run";
constexpr DurationMs kAgain = 10 * kSecond;

}  // namespace

HeldRun::HeldRun(Reactor& reactor, Store& store, CurrentSpec& spec, Executor& executor,
                 std::map<std::string, std::string>& problems, bool lab)
    : reactor_(reactor), store_(store), spec_(spec), executor_(executor), problems_(problems), lab_(lab) {}

HeldRun::~HeldRun() { alive_.end(); }

void HeldRun::begin() { try_now(); }

void HeldRun::spec_changed() {
  if (held_) try_now();
}

void HeldRun::try_now() {
  held_ = false;
  const auto runs = store_.runs();
  if (!runs.ok()) return hold("the runs cannot be read: " + runs.error().message, true);
  // Skips a run that was started while the store could not be read: the executor has it already.
  const auto open = [this](const RunRow& run) {
    return run.state == RunState::running && !(executor_.active() && executor_.run_id() == run.id);
  };
  const auto first = std::find_if(runs->begin(), runs->end(), open);
  if (first == runs->end()) return void(problems_.erase(kTopic));
  if (const auto spec = spec_.get(); !spec.ok()) {
    const Code code = spec.error().code;
    return hold(fmt::format("run {} waits for a spec that this version of muster accepts: {}", first->id,
                            spec.error().message),
                code != Code::invalid && code != Code::not_found);
  }
  problems_.erase(kTopic);
  for (const auto& run : *runs) {
    if (!open(run)) continue;
    log::info("continuing a run", {{"run", std::to_string(run.id)}});
    const Status resumed = go_on(run);
    if (resumed.ok()) return;
    end(run, resumed.error());
  }
}

void HeldRun::hold(const std::string& why, bool again_by_itself) {
  held_ = true;
  std::string& logged = problems_[kTopic];
  if (logged != why) log::error("a run is held", {{"why", why}});
  logged = why;
  if (!again_by_itself) return;
  reactor_.after(kAgain, alive_.wrap([this] {
    if (held_) try_now();
  }));
}

// The spec may have changed since the run was planned. A node that it no longer declares has no known BMC, so
// the run must be planned again; this is not a fault of the node.
Status HeldRun::go_on(const RunRow& run) {
  TRY(const auto spec, spec_.get());
  TRY(Plan plan, plan_of_run(store_, run));
  // An earlier version may have planned such a run. The plan itself is checked, because the present spec may
  // differ from the one it was made for.
  if (!lab_ && (plan.simulated || is_lab_profile(plan.profile)))
    return fail(
        Code::conflict,
        "it was planned for a lab's virtual machines, but this is not a lab's controller: plan again");
  for (const auto& name : plan.nodes)
    if (!spec->spec.node(name))
      return fail(Code::conflict, fmt::format("the spec no longer declares {}: plan again", name));
  return executor_.resume(run.id, std::make_shared<const Plan>(std::move(plan)));
}

void HeldRun::end(const RunRow& run, const Error& error) {
  problems_[kTopic] = fmt::format("run {} cannot be continued: {}", run.id, error.message);
  log::error("the run could not be continued", {{"run", std::to_string(run.id)}, {"error", error.message}});
  RunRow ended = run;
  ended.state = RunState::failed;
  ended.ended = reactor_.now();
  store_.write({ended}, [](Status written) {
    if (!written.ok())
      log::error("the end of the run could not be recorded", {{"error", written.error().message}});
  });
}

}  // namespace muster
