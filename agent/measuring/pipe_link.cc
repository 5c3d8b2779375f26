#include "agent/measuring/pipe_link.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/core/step.h"
#include "base/json_at.h"
#include "base/json_dump.h"

namespace muster {
namespace {

// True for modules of agent/checks: they measure, and have nothing to apply.
bool only_measures(const Json& step_or_verify) {
  const auto name = step_or_verify.is_object() ? step_or_verify.find("module") : step_or_verify.end();
  if (name == step_or_verify.end() || !name->is_string()) return false;
  const std::string module_name = name->get<std::string>();
  const StepModule* module = find_step_module(module_name);
  return module && module_name.starts_with("accept") && module->measure && !module->apply;
}

// Returns why an order is not a check that only measures; "" if it is one.
std::string not_a_check(const Json& params) {
  if (!params.is_object() || params.value("mode", Json()) != "check") return "whose `mode` is not `check`";
  const auto steps = params.find("steps");
  if (steps == params.end() || !steps->is_array()) return "without steps";
  for (const Json& step : *steps) {
    const Json verify = step.is_object() ? step.value("verify", Json()) : Json();
    if (!only_measures(step) || !(verify.is_null() || only_measures(verify)))
      return "with a step that does more than measure";
  }
  return "";
}

constexpr DurationMs kBeat = 10 * kSecond, kSilent = 60 * kSecond;
// The command answers a poll within 25 s.
constexpr DurationMs kPollDeadline = 45 * kSecond, kPostDeadline = 60 * kSecond;
constexpr size_t kLongestLine = 64u << 20, kLargestProgram = 1u << 30;
constexpr auto kLookAtCancel = std::chrono::milliseconds(100);

uint64_t number_of(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

Error error_of(const Json& json) {
  return fail(code_from_string(text_at(json, "code")), text_at(json, "message"));
}

}  // namespace

wire::WorkOrder only_measuring(wire::WorkOrder order) {
  if (order.kind == wire::OrderKind::inventory || order.kind == wire::OrderKind::unknown) return order;
  std::string word = order.kind_word();
  if (order.kind == wire::OrderKind::check) {
    const std::string why = not_a_check(order.params);
    if (why.empty()) return order;
    word += " " + why;
  }
  order.kind = wire::OrderKind::unknown;
  order.unknown_kind = std::move(word);
  order.params = Json::object();
  return order;
}

void PipeLink::Fetching::set(Result<Packed> value) {
  {
    const std::lock_guard lock(mutex);
    if (!result) result = std::move(value);
  }
  came.notify_all();
}

PipeLink::PipeLink(Reactor& reactor, std::string boot_id, Ports ports)
    : reactor_(reactor), boot_id_(std::move(boot_id)), ports_(std::move(ports)) {
  last_sign_ = reactor_.steady();
  beat_timer_ = reactor_.after(kBeat, [this] { beat(); });
}

PipeLink::~PipeLink() {
  alive_.end();
  if (beat_timer_) reactor_.cancel(beat_timer_);
  for (auto& [number, one] : calls_) reactor_.cancel(one.timer);
  for (auto& [number, one] : fetching_) one->set(fail(Code::unavailable, "the link has ended"));
  if (incoming_) incoming_->set(fail(Code::unavailable, "the link has ended"));
}

void PipeLink::beat() {
  beat_timer_ = 0;
  if (ended_) return;
  if (reactor_.steady() - last_sign_ > kSilent)
    return end(fail(Code::unavailable, "the command at the other end has sent nothing for a minute"));
  ports_.send("{\"alive\":true}\n");
  beat_timer_ = reactor_.after(kBeat, [this] { beat(); });
}

void PipeLink::end(Error why) {
  if (std::exchange(ended_, true)) return;
  for (auto& [number, one] : std::exchange(fetching_, {}))
    one->set(fail(Code::unavailable, "the link has ended"));
  if (incoming_) std::exchange(incoming_, nullptr)->set(fail(Code::unavailable, "the link has ended"));
  reactor_.post(alive_.wrap([this, why = std::move(why)] { ports_.ended(why); }));
}

void PipeLink::call(Json request, DurationMs deadline, Answer answer) {
  const uint64_t number = ++last_;
  request["n"] = number;
  const auto timer = reactor_.after(deadline, [this, number] {
    const auto found = calls_.find(number);
    if (found == calls_.end()) return;
    const Answer late = std::move(found->second.answer);
    calls_.erase(found);
    late(fail(Code::timeout, "no answer"));
  });
  calls_[number] = {std::move(answer), timer};
  if (!ended_) ports_.send(dump_json(request) + "\n");
}

void PipeLink::poll(const std::vector<std::string>& have, Orders done) {
  call({{"poll", {{"have", have}, {"boot", boot_id_}, {"mode", to_string(wire::Mode::adopted)}}}},
       kPollDeadline, [done = std::move(done)](Result<Json> answer) {
         if (!answer.ok()) return done(answer.error());
         const auto orders = answer->find("orders");
         auto reply = orders == answer->end()
                          ? Result<wire::PollReply>(fail(Code::invalid, "the response contains no `orders`"))
                          : wire::poll_reply_from_json(*orders);
         if (reply.ok())
           for (auto& order : reply->orders) order = only_measuring(std::move(order));
         done(std::move(reply));
       });
}

void PipeLink::post(const wire::EventBatch& batch, Acked done) {
  call({{"post", to_json(batch)}}, kPostDeadline, [done = std::move(done)](Result<Json> answer) {
    if (!answer.ok()) return done(answer.error());
    const auto ack = answer->find("ack");
    if (ack == answer->end() || !ack->is_number_unsigned())
      return done(fail(Code::invalid, "the response contains no `ack`"));
    done(ack->get<uint64_t>());
  });
}

void PipeLink::send_looked(const Json& facts, const Json& look) {
  if (!ended_) ports_.send(dump_json({{"looked", {{"facts", facts}, {"look", look}}}}) + "\n");
}

Result<PipeLink::Packed> PipeLink::fetch(const std::string& sha256, const std::function<bool()>& cancelled) {
  const auto fetching = std::make_shared<Fetching>();
  reactor_.post(alive_.wrap([this, sha256, fetching] { begin_fetch(sha256, fetching); }));
  std::unique_lock lock(fetching->mutex);
  while (!fetching->came.wait_for(lock, kLookAtCancel, [&] { return fetching->result.has_value(); }))
    if (cancelled && cancelled()) return fail(Code::cancelled, "cancelled while fetching a program");
  return std::move(*fetching->result);
}

void PipeLink::begin_fetch(const std::string& sha256, std::shared_ptr<Fetching> fetching) {
  if (ended_) return fetching->set(fail(Code::unavailable, "the link has ended"));
  const uint64_t number = ++last_;
  fetching_[number] = std::move(fetching);
  ports_.send(dump_json({{"program", sha256}, {"n", number}}) + "\n");
}

void PipeLink::receive(std::string_view bytes) {
  last_sign_ = reactor_.steady();
  while (!bytes.empty() && !ended_) {
    if (missing_ > 0) {
      const size_t now = std::min(missing_, bytes.size());
      packed_.bytes.append(bytes.substr(0, now));
      bytes.remove_prefix(now);
      missing_ -= now;
      if (missing_ == 0) std::exchange(incoming_, nullptr)->set(std::exchange(packed_, {}));
      continue;
    }
    const size_t end_of_line = bytes.find('\n');
    if (line_.size() + std::min(end_of_line, bytes.size()) > kLongestLine)
      return end(fail(Code::invalid, "the command sent a line that is too long"));
    line_.append(bytes.substr(0, end_of_line));
    if (end_of_line == std::string_view::npos) return;
    bytes.remove_prefix(end_of_line + 1);
    take_line(std::exchange(line_, {}));
  }
}

void PipeLink::take_line(std::string_view line) {
  const auto json = parse_json(line);
  if (!json.ok() || !json->is_object())
    return end(fail(Code::invalid, "the command sent an invalid message"));
  if (json->contains("alive")) return;
  if (json->contains("leave")) return end(fail(Code::cancelled, "the command has ended"));
  take_answer(*json);
}

void PipeLink::take_answer(const Json& json) {
  const uint64_t number = number_of(json, "n");
  const auto error = json.find("error");
  if (const auto found = fetching_.find(number); found != fetching_.end()) {
    const auto fetching = std::move(found->second);
    fetching_.erase(found);
    if (error != json.end()) return fetching->set(error_of(*error));
    incoming_ = fetching;
    missing_ = number_of(json, "bytes");
    packed_ = {{}, number_of(json, "raw")};
    if (missing_ == 0 || missing_ > kLargestProgram || packed_.size > kLargestProgram)
      return end(fail(Code::invalid, "the command sent a program that has no size or is too large"));
    packed_.bytes.reserve(missing_);
    return;
  }
  // This answer is to a call that has ended: the program's raw bytes after it would be taken for lines.
  if (json.contains("bytes"))
    return end(fail(Code::invalid, "the command sent a program that was not requested"));
  const auto found = calls_.find(number);
  if (found == calls_.end()) return;
  const Call answered = std::move(found->second);
  calls_.erase(found);
  reactor_.cancel(answered.timer);
  // Called after this call returns, as ControllerLink requires.
  answered.answer(error != json.end() ? Result<Json>(error_of(*error)) : Result<Json>(json));
}

}  // namespace muster
