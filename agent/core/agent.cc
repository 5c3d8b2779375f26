#include "agent/core/agent.h"

#include <algorithm>
#include <utility>

#include "sys/contain.h"

namespace muster {
namespace {

bool is_droppable(const std::string& kind) { return kind == "log" || kind == "progress"; }

// True for orders that end this process: their success is reported before they are carried out.
bool departs(wire::OrderKind kind) {
  using wire::OrderKind;
  return kind == OrderKind::boot_disk || kind == OrderKind::reboot || kind == OrderKind::power_off ||
         kind == OrderKind::kexec || kind == OrderKind::boot_slot;
}
// True for departures that need preparation first: the node leaves only after that has succeeded.
bool gets_ready(const wire::WorkOrder& order) {
  return order.kind == wire::OrderKind::kexec || order.kind == wire::OrderKind::boot_slot ||
         (departs(order.kind) && !order.preconditions.is_null());
}

constexpr const char* kWithdrawn = "withdrawn by the controller";

bool succeeded(const Json& finish) { return finish.is_object() && finish.value("ok", false); }

Json finish_data(const Status& status, Json result) {
  if (status.ok()) return {{"ok", true}, {"code", ""}, {"message", ""}, {"result", std::move(result)}};
  return {{"ok", false},
          {"code", std::string(to_string(status.error().code))},
          {"message", status.error().message},
          {"result", std::move(result)}};
}

}  // namespace

Agent::Agent(Reactor& reactor, ControllerLink& link, AgentJournal& journal, WorkRunner& runner,
             AgentIdentity identity, AgentOptions options)
    : reactor_(reactor),
      link_(link),
      journal_(journal),
      runner_(runner),
      identity_(std::move(identity)),
      options_(options),
      random_(identity_.jitter_seed) {}

Agent::~Agent() {
  alive_.end();
  for (const auto timer : {post_timer_, poll_timer_, deadline_timer_})
    if (timer) reactor_.cancel(timer);
}

Status Agent::start() {
  TRY(const auto records, journal_.load());
  for (const auto& record : records)
    if (record.finished) finished_[record.order] = record.finish;
  Json hello = {{"mode", std::string(wire::to_string(identity_.mode))},
                {"boot_id", identity_.boot_id},
                {"image_digest", identity_.image_digest},
                {"agent_version", identity_.version},
                {"slot", identity_.slot},
                {"trial", identity_.on_trial && identity_.on_trial()}};
  if (identity_.loader_skipped) hello["loader_skipped"] = true;
  emit("", "hello", std::move(hello));
  return Ok{};
}

void Agent::log(const std::string& level, const std::string& text) {
  emit(running_id_, "log", {{"level", level}, {"text", text}});
}

uint64_t Agent::emit(const std::string& order, const std::string& kind, Json data) {
  outbox_.push_back({next_seq_++, reactor_.now(), OrderId(order), kind, std::move(data)});
  make_room();
  schedule_post(is_droppable(kind) ? options_.flush_delay : 0);
  return next_seq_ - 1;
}

// Drops the oldest log line first, then the oldest progress. The other events are bounded by the number of
// steps of one order.
void Agent::make_room() {
  if (outbox_.size() <= options_.buffer_events) return;
  for (const char* kind : {"log", "progress"}) {
    const auto it =
        std::find_if(outbox_.begin(), outbox_.end(), [&](const wire::Event& e) { return e.kind == kind; });
    if (it == outbox_.end()) continue;
    outbox_.erase(it);
    return;
  }
}

void Agent::schedule_post(DurationMs delay) {
  if (posting_ || outbox_.empty()) return;
  const SteadyMs due = std::max(reactor_.steady() + delay, post_not_before_);
  if (post_timer_ && post_due_ <= due) return;
  if (post_timer_) reactor_.cancel(post_timer_);
  post_due_ = due;
  post_timer_ = reactor_.after(due - reactor_.steady(), [this] {
    post_timer_ = 0;
    post_now();
  });
}

void Agent::post_now() {
  if (posting_ || outbox_.empty()) return;
  posting_ = true;
  wire::EventBatch batch{identity_.boot_id, identity_.incarnation, {}};
  for (const auto& event : outbox_) {
    if (batch.events.size() >= options_.batch_events) break;
    batch.events.push_back(event);
  }
  link_.post(batch, alive_.wrap([this](Result<uint64_t> reply) { on_acked(std::move(reply)); }));
}

void Agent::on_acked(Result<uint64_t> reply) {
  posting_ = false;
  if (!reply.ok() || outbox_.empty() || *reply < outbox_.front().seq) {
    post_not_before_ = reactor_.steady() + pause(post_backoff_);
    schedule_post(0);
    return;
  }
  last_contact_ = reactor_.steady();
  post_backoff_ = {};
  post_not_before_ = {};
  while (!outbox_.empty() && outbox_.front().seq <= *reply) outbox_.pop_front();
  for (auto it = reported_.begin(); it != reported_.end();)
    it = it->second <= *reply ? reported_.erase(it) : std::next(it);
  schedule_post(0);
  if (!std::exchange(greeted_, true)) schedule_poll(0);
  if (current_ && !departing_ && departs(current_->kind) && finished_.count(current_->id) &&
      succeeded(finished_[current_->id]) && !reported_.count(current_->id)) {
    if (withdrawn_) {
      const std::string id = current_->id;
      unload(id);
      return stay(fail(Code::cancelled, kWithdrawn), Json::object());
    }
    depart();
  }
}

void Agent::schedule_poll(DurationMs delay) {
  poll_timer_ = reactor_.after(delay, [this] {
    poll_timer_ = 0;
    poll_now();
  });
}

std::vector<std::string> Agent::have() const {
  std::vector<std::string> ids;
  if (current_ && !withdrawn_)
    ids.push_back(current_->id);  // a withdrawn order is not listed, so it is not withdrawn again
  if (waiting_) ids.push_back(waiting_->id);
  for (const auto& [id, seq] : reported_)
    if (!current_ || current_->id != id) ids.push_back(id);
  return ids;
}

void Agent::poll_now() {
  link_.poll(have(), alive_.wrap([this](Result<wire::PollReply> reply) { on_orders(std::move(reply)); }));
}

void Agent::on_orders(Result<wire::PollReply> reply) {
  if (!reply.ok()) return schedule_poll(pause(poll_backoff_));
  last_contact_ = reactor_.steady();
  poll_backoff_ = {};
  bool news = false;
  // Whatever an order contains, polling must continue; otherwise this node would become silent.
  contain_exceptions("taking an order", [&] {
    for (const auto& id : reply->withdrawn) stop(id);
    for (const auto& order : reply->orders) news = take(order) || news;
  });
  schedule_poll(news ? 0 : options_.idle_poll_pause);
}

void Agent::stop(const std::string& order) {
  if (waiting_ && waiting_->id == order) waiting_.reset();
  if (!current_ || current_->id != order || withdrawn_) return;
  const bool undoes = departing_ && current_->kind == wire::OrderKind::boot_slot;
  if (!undoes && (gets_ready(*current_) ? departing_ : settling_ || departs(current_->kind))) return;
  withdrawn_ = true;
  log("warning", order + " was withdrawn: the work stops at its next safe point");
  if (runner_busy_) runner_.cancel();  // otherwise the work has not begun yet
}

// True if this agent has not seen the order before.
bool Agent::take(const wire::WorkOrder& order) {
  if (current_ && current_->id == order.id) return false;
  if (const auto it = finished_.find(order.id); it != finished_.end()) {
    if (!reported_.count(order.id)) reported_[order.id] = emit(order.id, "finished", it->second);
    return false;
  }
  if (!current_ && !runner_busy_) {
    begin(order);
    return true;
  }
  const bool news = !waiting_ || waiting_->id != order.id;
  waiting_ = order;
  return news;
}

void Agent::begin(const wire::WorkOrder& order) {
  current_ = order;
  running_id_ = order.id;
  deadline_passed_ = settling_ = withdrawn_ = departing_ = false;
  if (!departs(order.kind) || gets_ready(order)) arm_deadline(order.deadline);
  journal_.append({order.id, order.kind_word(), false, {}}, alive_.wrap([this](Status status) {
    // Running an order twice is harmless: a failure to write the journal is reported, and the work goes on.
    if (!status.ok()) log("error", "journal: " + status.error().message);
    run_order();
  }));
}

void Agent::run_order() {
  if (!current_) return;
  if (withdrawn_) return settle(fail(Code::cancelled, kWithdrawn), Json::object());
  emit(current_->id, "started", Json::object());
  if (departs(current_->kind) && !gets_ready(*current_)) return settle(Ok{}, Json::object());
  runner_busy_ = true;
  const std::string id = current_->id;
  const bool readies = gets_ready(*current_);
  if (readies) ready_kind_ = current_->kind;
  const auto on_event = [this, id](const std::string& kind, Json data) {
    if (current_ && current_->id == id && !settling_) emit(id, kind, std::move(data));
  };
  runner_.run(
      *current_, OrderPart::work, alive_.wrap(on_event),
      alive_.wrap([this, id, readies](WorkOutcome outcome) { on_done(id, readies, std::move(outcome)); }));
}

void Agent::arm_deadline(DurationMs delay) {
  if (deadline_timer_) reactor_.cancel(deadline_timer_);
  deadline_timer_ = reactor_.after(delay, [this] {
    deadline_timer_ = 0;
    on_deadline();
  });
}

void Agent::on_deadline() {
  if (!current_ || settling_) return;
  if (!std::exchange(deadline_passed_, true)) {
    runner_.cancel();
    return arm_deadline(options_.cancel_grace);
  }
  settle(fail(Code::timeout, "the work did not stop after its timeout of " + to_human(current_->deadline)),
         Json::object());
}

void Agent::on_done(const std::string& order, bool readied, WorkOutcome outcome) {
  runner_busy_ = false;
  const bool ready = readied && outcome.status.ok();
  if (!current_ || current_->id != order || settling_) {
    // The agent gave this work up earlier, or it is a departure that failed: only the runner is freed.
    if (!outcome.status.ok())
      emit(order, "log", {{"level", "error"}, {"text", order + ": " + outcome.status.error().message}});
    if (current_ && current_->id == order && std::exchange(departing_, false)) {
      if (!outcome.status.ok() && !current_->preconditions.is_null())
        return stay(outcome.status, std::move(outcome.result));
      current_.reset();
    }
    if (ready) return unload(order);
    return next_order();
  }
  if (deadline_passed_ && !outcome.status.ok())
    outcome.status = fail(Code::timeout, "not finished within " + to_human(current_->deadline) + ": " +
                                             outcome.status.error().message);
  if (ready && withdrawn_) {  // after the runner's last check
    unload(order);
    outcome = {fail(Code::cancelled, kWithdrawn), Json::object()};
  }
  settle(outcome.status, std::move(outcome.result));
}

// The result goes to the journal first, then to the controller.
void Agent::settle(const Status& status, Json result) {
  settling_ = true;
  if (deadline_timer_) reactor_.cancel(std::exchange(deadline_timer_, 0));
  Json finish = finish_data(status, std::move(result));
  journal_.append({current_->id, current_->kind_word(), true, finish},
                  alive_.wrap([this, finish](Status written) {
                    if (!written.ok()) log("error", "journal: " + written.error().message);
                    on_settled(finish);
                  }));
}

void Agent::on_settled(Json finish) {
  const std::string id = current_->id;
  finished_[id] = finish;
  const bool goes = departs(current_->kind) && succeeded(finish);
  reported_[id] = emit(id, "finished", std::move(finish));
  if (goes) return;  // continued in on_acked()
  current_.reset();
  next_order();
}

void Agent::next_order() {
  if (current_ || runner_busy_) return;
  running_id_.clear();
  if (!waiting_) return;
  const wire::WorkOrder order = *std::exchange(waiting_, std::nullopt);
  take(order);
}

void Agent::depart() {
  if (runner_busy_) return;
  runner_busy_ = departing_ = true;
  const std::string id = current_->id;
  runner_.run(
      *current_, gets_ready(*current_) ? OrderPart::leave : OrderPart::work,
      alive_.wrap([this, id](const std::string& kind, Json data) { emit(id, kind, std::move(data)); }),
      alive_.wrap([this, id](WorkOutcome outcome) { on_done(id, false, std::move(outcome)); }));
}

// It does not leave after all, although success was reported: replaces that report.
void Agent::stay(const Status& why, Json result) {
  finished_.erase(current_->id);
  settle(why, std::move(result));
}

void Agent::unload(const std::string& order) {
  runner_busy_ = true;
  wire::WorkOrder drop;
  drop.id = OrderId(order);
  drop.kind = ready_kind_;
  runner_.run(drop, OrderPart::drop, alive_.wrap([this, order](const std::string& kind, Json data) {
    emit(order, kind, std::move(data));
  }),
              alive_.wrap([this, order](WorkOutcome outcome) { on_done(order, false, std::move(outcome)); }));
}

DurationMs Agent::pause(Backoff& backoff) {
  backoff.next = backoff.next ? std::min(backoff.next * 2, options_.backoff_last) : options_.backoff_first;
  random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
  const DurationMs half = std::max<DurationMs>(backoff.next / 2, 1);
  return half + static_cast<DurationMs>((random_ >> 33) % static_cast<uint64_t>(half));
}

}  // namespace muster
