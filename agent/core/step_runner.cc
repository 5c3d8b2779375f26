#include "agent/core/step_runner.h"

#include <map>
#include <set>

namespace muster {
namespace {

struct StepEnd {
  std::string status, message, diff;
  Json result = Json();
  bool cancelled = false, denied = false;
};

Status check_module(const StepContext& context, const std::string& module, const Json& params) {
  const StepModule* found = context.module ? context.module(module) : nullptr;
  if (!found) return fail(Code::invalid, "unknown step module '" + module + "'");
  return check_parameters(*found, params);
}

StepEnd failed(std::string message, std::string diff = "") {
  return {"failed", std::move(message), std::move(diff)};
}
// A probe that could not be made is no result about the node; any other error is.
StepEnd from_error(const Error& error) {
  const bool unmade =
      error.code == Code::unavailable || error.code == Code::timeout || error.code == Code::cancelled;
  return {unmade ? "incomplete" : "failed", error.message, "", Json(), error.code == Code::cancelled,
          error.code == Code::denied};
}

class StepRun {
 public:
  StepRun(StepContext& context, const StepOrder& order, const std::function<TimeMs()>& now,
          const WorkRunner::Emit& emit)
      : context_(context), order_(order), now_(now), emit_(emit) {}

  WorkOutcome run() {
    for (size_t i = 0; i < order_.steps.size(); ++i) {
      const TimeMs begun = now_();
      emit_("progress",
            {{"done", i}, {"total", order_.steps.size()}, {"unit", "steps"}, {"text", order_.steps[i].id}});
      const StepEnd end = without_secrets(one(i));
      record(i, end, now_() - begun);
    }
    Json counts = Json::object();
    for (const auto& [status, count] : counts_) counts[status] = count;
    Json result = {{"steps", steps_}, {"counts", counts}};
    if (!denied_.empty()) result["denied"] = denied_;
    return {status_, std::move(result)};
  }

 private:
  // The end of a step. Progress and unmet conditions are masked where they are made.
  StepEnd without_secrets(StepEnd end) const {
    end.message = context_.secrets.text(end.message);
    end.diff = context_.secrets.text(end.diff);
    end.result = context_.secrets.json(end.result);
    return end;
  }

  StepEnd one(size_t i) {
    if (stopped_) return {"incomplete", "not run: " + stop_reason_, ""};
    if (context_.cancelled && context_.cancelled()) return {"incomplete", "cancelled", "", Json(), true};
    const wire::Step& step = order_.steps[i];
    const StepModule& module = *context_.module(step.module);
    if (const std::string lacks = lacking(step); !lacks.empty()) return not_looked_at(module, lacks);
    if (module.measure) return measured(module, step);
    const Result<CheckResult> before = check(i, module);
    if (!before.ok()) return from_error(before.error());
    if (before->holds == Holds::not_applicable) return {"not_applicable", before->diff, ""};
    StepEnd end{"already", "", ""};
    if (before->holds == Holds::no) end = make_so(module, step, before->diff);
    if (end.status == "already" && order_.reverify && order_.write && module.verify)
      if (auto verified = module.verify(context_, step.params); !verified.ok())
        return failed("in place, but verification after the reboot failed: " + verified.error().message);
    if (end.status != "already" && end.status != "applied") return end;
    end.message = before->note;
    return confirmed(step, std::move(end));
  }

  // Returns what the step needs and this agent lacks, as text; "" if nothing.
  std::string lacking(const wire::Step& step) const {
    for (const std::string& need : step.needs) {
      if (need == "root" && context_.root) continue;
      return need == "root" ? "needs root" : "needs '" + need + "', which this agent does not support";
    }
    return "";
  }

  // A step that should change something is incomplete, not merely skipped.
  StepEnd not_looked_at(const StepModule& module, const std::string& lacks) const {
    if (!module.measure && order_.write) return {"incomplete", lacks, ""};
    return {"not_looked_at", lacks, ""};
  }

  // Returns the result of step i's check, which may have been made in a batch.
  Result<CheckResult> check(size_t i, const StepModule& module) {
    if (!module.check_many) return module.check(context_, order_.steps[i].params);
    if (const auto it = batch_.find(i); it != batch_.end()) return it->second;
    std::vector<Json> params;
    for (size_t k = i; k < order_.steps.size() && order_.steps[k].module == module.name; ++k)
      params.push_back(order_.steps[k].params);
    const auto answers = module.check_many(context_, params);
    for (size_t k = 0; k < params.size(); ++k)
      batch_.emplace(i + k, k < answers.size()
                                ? answers[k]
                                : fail(Code::failed, "the module returned no result for this step"));
    return batch_.at(i);
  }

  StepEnd make_so(const StepModule& module, const wire::Step& step, const std::string& diff) {
    if (!module.apply) return failed(diff.empty() ? "the declared state does not hold" : diff);
    if (!order_.write) return failed("is not as declared", diff);
    if (auto applied = module.apply(context_, step.params); !applied.ok()) {
      StepEnd end = failed(applied.error().message, diff);
      end.cancelled = applied.error().code == Code::cancelled;
      end.denied = applied.error().code == Code::denied;
      if (end.cancelled) end.status = "incomplete";
      return end;
    }
    if (module.verify) {
      if (auto verified = module.verify(context_, step.params); !verified.ok())
        return failed("applied, but verification failed: " + verified.error().message, diff);
    } else {
      const auto after = module.check(context_, step.params);
      if (!after.ok())
        return failed("applied, but the check afterwards failed: " + after.error().message, diff);
      if (after->holds != Holds::yes) return failed("applied, but still different: " + after->diff, diff);
    }
    return {"applied", "", diff};
  }

  StepEnd confirmed(const wire::Step& step, StepEnd end) {
    if (step.verify.is_null()) return end;
    const StepModule& module = *context_.module(step.verify.value("module", ""));
    if (order_.only_looks && !module.only_reads) return end;
    const Json params = step.verify.value("params", Json::object());
    if (module.check) {
      const auto holds = module.check(context_, params);
      if (!holds.ok()) return failed("verify " + module.name + ": " + holds.error().message, end.diff);
      if (holds->holds != Holds::yes) return failed("verify " + module.name + ": " + holds->diff, end.diff);
    }
    if (module.verify && order_.write)
      if (auto verified = module.verify(context_, params); !verified.ok())
        return failed("verify " + module.name + ": " + verified.error().message, end.diff);
    return end;
  }

  StepEnd measured(const StepModule& module, const wire::Step& step) {
    if (module.check) {
      const auto there = module.check(context_, step.params);
      if (!there.ok()) return from_error(there.error());
      if (there->holds == Holds::not_applicable) return {"not_applicable", there->diff, ""};
    }
    auto result = module.measure(context_, step.params);
    if (!result.ok()) return from_error(result.error());
    return {"measured", "", "", std::move(*result)};
  }

  void record(size_t i, const StepEnd& end, DurationMs took) {
    const wire::Step& step = order_.steps[i];
    Json data = {
        {"step", step.id}, {"name", step.id}, {"status", end.status}, {"message", end.message}, {"ms", took}};
    if (!end.diff.empty()) data["diff"] = end.diff;
    if (!end.result.is_null()) data["result"] = end.result;
    emit_("step", data);
    steps_.push_back(std::move(data));
    ++counts_[end.status];
    const bool bad = end.status == "failed" || end.status == "incomplete";
    if (!bad || (!step.mandatory && !end.cancelled) || !status_.ok()) return;
    status_ = fail(end.cancelled ? Code::cancelled : Code::failed, step.id + ": " + end.message);
    if (end.denied) denied_ = step.id;
    if (!order_.stop_on_failure && !end.cancelled) return;
    stopped_ = true;
    stop_reason_ = step.id + " " + end.status;
  }

  StepContext& context_;
  const StepOrder& order_;
  const std::function<TimeMs()>& now_;
  const WorkRunner::Emit& emit_;
  std::map<size_t, Result<CheckResult>> batch_;
  std::map<std::string, int> counts_;
  Json steps_ = Json::array();
  Status status_ = Ok{};
  bool stopped_ = false;
  std::string stop_reason_, denied_;
};

struct OrderText {
  bool stop_on_failure = true;
  std::string mode = "apply";
  const Json* steps = nullptr;
};
MUSTER_RECORD(OrderText, lenient, opt(stop_on_failure), opt(mode), steps)

}  // namespace

Result<StepOrder> step_order_from_json(const Json& params, const StepContext& context) {
  StepOrder order;
  TRY(const OrderText text, read_record<OrderText>(params, "order"));
  const std::string& mode = text.mode;
  order.stop_on_failure = text.stop_on_failure;
  if (mode != "apply" && mode != "check")
    return fail(Code::invalid, "order.mode: '" + mode + "' must be apply or check");
  order.write = mode == "apply";
  if (!text.steps || !text.steps->is_array()) return fail(Code::invalid, "order.steps: expected a list");
  std::set<std::string> ids;
  for (const auto& json : *text.steps) {
    TRY(auto step, wire::step_from_json(json));
    if (!ids.insert(step.id).second)
      return fail(Code::invalid, "order.steps: '" + step.id + "' is listed twice");
    if (step.params.is_null()) step.params = Json::object();
    if (auto ok = check_module(context, step.module, step.params); !ok.ok())
      return std::move(ok).error().with(step.id);
    if (!step.verify.is_null()) {
      if (!step.verify.is_object()) return fail(Code::invalid, step.id + ": verify must be {module, params}");
      auto ok =
          check_module(context, step.verify.value("module", ""), step.verify.value("params", Json::object()));
      if (!ok.ok()) return std::move(ok).error().with(step.id + " verify");
    }
    order.steps.push_back(std::move(step));
  }
  return order;
}

std::optional<UnmetStep> first_unmet(StepContext& context, const std::vector<wire::Step>& steps) {
  const auto unmet = [&context](const std::string& name, const Json& params) -> Status {
    const StepModule* module = context.module ? context.module(name) : nullptr;
    if (!module) return fail(Code::invalid, "unknown step module '" + name + "'");
    if (!module->check) return Ok{};
    const auto found = module->check(context, params);
    if (!found.ok()) return found.error();
    if (found->holds != Holds::no) return Ok{};
    return fail(Code::conflict, found->diff.empty() ? "the declared state does not hold" : found->diff);
  };
  for (const wire::Step& step : steps) {
    if (!step.mandatory) continue;
    Status met = unmet(step.module, step.params);
    if (met.ok() && step.verify.is_object())
      met = unmet(step.verify.value("module", ""), step.verify.value("params", Json::object()));
    if (!met.ok())
      return UnmetStep{step.id, context.secrets.text(met.error().message), met.error().code == Code::denied};
  }
  return {};
}

WorkOutcome run_steps(StepContext& context, const StepOrder& order, const std::function<TimeMs()>& now,
                      const WorkRunner::Emit& emit) {
  return StepRun(context, order, now, emit).run();
}

}  // namespace muster
