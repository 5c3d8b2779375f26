#include "agent/work/work_runner.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "agent/core/step.h"
#include "agent/core/step_runner.h"
#include "agent/facts/collect_facts.h"
#include "sys/contain.h"

namespace muster {
namespace {

// How long preconditions are checked again: what they read, such as Slurm's controller, may be restarting.
constexpr DurationMs kPatience = kMinute;
// They are checked once more if the report of success was not acknowledged within this time ...
constexpr DurationMs kStale = 30 * kSecond;
// ... and that check must not take longer: the restart must begin before the controller stops waiting for it
// (kSlotLeaveSeconds, ExecutorTiming::leave_shows).
constexpr DurationMs kLate = 20 * kSecond;

class RealWorkRunner : public WorkRunner {
 public:
  RealWorkRunner(Reactor& reactor, Files& files, Process& process, std::string node, WorkFunctions functions)
      : reactor_(reactor),
        files_(files),
        process_(process),
        node_(std::move(node)),
        functions_(std::move(functions)),
        thread_([this] { work(); }) {}

  ~RealWorkRunner() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      cancelled_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  void run(const wire::WorkOrder& order, OrderPart part, Emit emit, Done done) override {
    {
      const std::lock_guard lock(mutex_);
      job_ = Job{order, part, std::move(emit), std::move(done)};
      cancelled_ = false;
    }
    wake_.notify_all();
  }
  void cancel() override { cancelled_ = true; }

 private:
  struct Job {
    wire::WorkOrder order;
    OrderPart part;
    Emit emit;
    Done done;
  };

  void work() {
    for (;;) {
      std::optional<Job> job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stop_ || job_; });
        if (stop_) return;
        job.swap(job_);
      }
      // Callbacks run on the reactor's thread, in the order of events.
      const Emit emit = [this, out = job->emit](const std::string& kind, Json data) {
        reactor_.post([out, kind, data = std::move(data)] { out(kind, data); });
      };
      // A result is always sent, because the controller waits for the end of this order.
      WorkOutcome outcome = {
          fail(Code::failed, "internal error in muster's agent: see the agent's log on the node"),
          Json::object()};
      contain_exceptions(
          "an order", [&] { outcome = carry_out(job->order, job->part, emit); },
          [&](const char* thrown) { return SecretMask(job->order.secrets).text(thrown); });
      reactor_.post([done = job->done, outcome = std::move(outcome)] { done(outcome); });
    }
  }

  WorkOutcome carry_out(const wire::WorkOrder& order, OrderPart part, const Emit& emit) {
    using wire::OrderKind;
    if (part != OrderPart::work) return go_or_stay(order, part);
    if (!order.preconditions.is_null()) {
      WorkOutcome held = hold(order, kPatience, emit);
      if (!held.status.ok() || leaves_at_once(order.kind)) return held;
    }
    const CancelCheck cancelled = is_cancelled();
    switch (order.kind) {
      case OrderKind::inventory:
        return inventory();
      case OrderKind::steps:
      case OrderKind::check:
        return steps(order, emit);
      case OrderKind::image:
        return functions_.image ? outcome_of(functions_.image(order, emit, cancelled)) : refusal(order);
      case OrderKind::kexec:
        return functions_.kexec ? outcome_of(functions_.kexec(order, cancelled)) : refusal(order);
      case OrderKind::write_slot:
        return functions_.write_slot ? outcome_of(functions_.write_slot(order, emit, cancelled))
                                     : refusal(order);
      case OrderKind::boot_slot:
        return functions_.boot_slot ? outcome_of(functions_.boot_slot(order.params)) : refusal(order);
      case OrderKind::boot_disk:
        return depart(order, functions_.boot_disk);
      case OrderKind::reboot:
        return depart(order, functions_.reboot);
      case OrderKind::power_off:
        return depart(order, functions_.power_off);
      case OrderKind::unknown:
        break;
    }
    return refusal(order);
  }

  // True for a departure that prepares nothing but its preconditions.
  static bool leaves_at_once(wire::OrderKind kind) {
    using wire::OrderKind;
    return kind == OrderKind::boot_disk || kind == OrderKind::reboot || kind == OrderKind::power_off;
  }

  // Carries out what an order has prepared, or undoes the preparation.
  WorkOutcome go_or_stay(const wire::WorkOrder& order, OrderPart part) {
    if (part == OrderPart::drop) return drop(order);
    if (!order.preconditions.is_null() && functions_.now() - held_at_ > kStale) {
      const int64_t begun = functions_.now();
      WorkOutcome held = hold(order, 0, {});
      if (held.status.ok() && functions_.now() - begun > kLate)
        held = {fail(Code::conflict, "checking the preconditions once more took too long"), held.result};
      if (!held.status.ok()) {
        (void)drop(order);
        return held;
      }
    }
    switch (order.kind) {
      case wire::OrderKind::boot_slot: {
        if (!functions_.leave_slot) break;
        const Status left = functions_.leave_slot(is_stopped(), is_withdrawn());
        if (left.ok() || left.error().code != Code::unavailable) return {left, Json::object()};
        // The restart did not begin: as if a precondition did not hold any more.
        return {fail(Code::conflict, left.error().message), {{"precondition", "restart"}}};
      }
      case wire::OrderKind::kexec:
        if (!functions_.leave_ready) break;
        return {functions_.leave_ready(), Json::object()};
      case wire::OrderKind::reboot:
        return depart(order, functions_.reboot);
      case wire::OrderKind::power_off:
        return depart(order, functions_.power_off);
      case wire::OrderKind::boot_disk:
        return depart(order, functions_.boot_disk);
      default:
        break;
    }
    return refusal(order);
  }

  WorkOutcome drop(const wire::WorkOrder& order) {
    if (leaves_at_once(order.kind)) return {Ok{}, Json::object()};
    const auto& undo = order.kind == wire::OrderKind::boot_slot ? functions_.drop_slot
                       : order.kind == wire::OrderKind::kexec   ? functions_.drop_ready
                                                                : std::function<Status()>();
    return undo ? WorkOutcome{undo(), Json::object()} : refusal(order);
  }

  // Ok if all preconditions hold, within `patience`. Nothing is applied.
  WorkOutcome hold(const wire::WorkOrder& order, DurationMs patience, const Emit& emit) {
    StepContext context = context_for(order, emit);
    const auto parsed = step_order_from_json({{"mode", "check"}, {"steps", order.preconditions}}, context);
    if (!parsed.ok()) return {Error(parsed.error()).with("preconditions"), Json::object()};
    const int64_t begun = functions_.now();
    for (;;) {
      const auto unmet = first_unmet(context, parsed->steps);
      held_at_ = functions_.now();
      if (!unmet) return {Ok{}, Json::object()};
      if (held_at_ - begun >= patience || cancelled_) {
        Json result = {{"precondition", unmet->id}};
        if (unmet->denied) result["denied"] = unmet->id;
        return {fail(Code::conflict, unmet->id + " no longer holds: " + unmet->why), std::move(result)};
      }
      functions_.a_second();
    }
  }

  WorkOutcome depart(const wire::WorkOrder& order, const WorkFunctions::Depart& leave) const {
    return leave ? WorkOutcome{leave(order.params, is_cancelled()), Json::object()} : refusal(order);
  }
  CancelCheck is_cancelled() const {
    return [this] { return cancelled_.load(); };
  }
  CancelCheck is_stopped() const {
    return [this] { return stop_.load(); };
  }
  // The destructor of this runner cancels as well, but sets `stop_` first.
  CancelCheck is_withdrawn() const {
    return [this] { return cancelled_.load() && !stop_.load(); };
  }
  static WorkOutcome outcome_of(Result<Json> result) {
    if (result.ok()) return {Ok{}, std::move(*result)};
    return {result.error(), Json::object()};
  }
  static WorkOutcome refusal(const wire::WorkOrder& order) {
    return {fail(Code::invalid, "this system does not support '" + order.kind_word() + "' orders"),
            Json::object()};
  }

  WorkOutcome inventory() {
    auto facts = collect_facts(files_);
    if (!facts.ok()) return {facts.error(), Json::object()};
    return {Ok{}, to_json(*facts)};
  }

  StepContext context_for(const wire::WorkOrder& order, const Emit& emit) {
    StepContext context{files_, process_, node_};
    context.secrets = SecretMask(order.secrets);
    if (emit)
      context.say = [emit](const std::string& text) { emit("log", {{"level", "info"}, {"text", text}}); };
    context.cancelled = [this] { return cancelled_.load(); };
    context.module = [](const std::string& name) { return find_step_module(name); };
    context.order = order.id;
    context.root = ::geteuid() == 0;
    context.folder = functions_.folder;
    return context;
  }

  WorkOutcome steps(const wire::WorkOrder& order, const Emit& emit) {
    StepContext context = context_for(order, emit);
    auto parsed = step_order_from_json(order.params, context);
    if (!parsed.ok()) return {parsed.error(), Json::object()};
    auto programs = programs_of(order);
    if (!programs.ok()) return {std::move(programs).error().with("programs"), Json::object()};
    context.programs = std::move(*programs);
    // After a restart that a step of this order requested, everything before it is verified again.
    parsed->reverify = restarted();
    // Steps that are to be checked only, and are no acceptance: a preview of what a plan would change.
    parsed->only_looks = order.kind == wire::OrderKind::steps && !parsed->write;
    WorkOutcome outcome = run_steps(context, *parsed, functions_.now, emit);
    if (parsed->reverify && files_.remove(kRebootRecord).ok())
      emit("log", {{"level", "info"}, {"text", "continuing after a restart"}});
    return outcome;
  }

  Result<std::map<std::string, std::string>> programs_of(const wire::WorkOrder& order) {
    TRY(const auto named, carried_programs_of(order.params));
    if (named.empty()) return std::map<std::string, std::string>();
    if (!functions_.programs)
      return fail(Code::invalid, "this system does not accept orders that carry programs");
    return functions_.programs(order.params, named, is_cancelled());
  }

  bool restarted() const {
    const auto record = parse_json(files_.read(kRebootRecord).value_or(""));
    return record.ok() && record->is_object() &&
           record->value("boot_id", "") != files_.read_line("/proc/sys/kernel/random/boot_id");
  }

  Reactor& reactor_;
  Files& files_;
  Process& process_;
  std::string node_;
  WorkFunctions functions_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Job> job_;
  std::atomic<bool> cancelled_ = false, stop_ = false;
  int64_t held_at_ = 0;  // when the preconditions were last checked
  std::thread thread_;
};

}  // namespace

std::unique_ptr<WorkRunner> make_work_runner(Reactor& reactor, Files& files, Process& process,
                                             std::string node, WorkFunctions functions) {
  return std::make_unique<RealWorkRunner>(reactor, files, process, std::move(node), std::move(functions));
}

}  // namespace muster
