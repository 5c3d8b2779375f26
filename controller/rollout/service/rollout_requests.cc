// RolloutService: what operators and the timer request.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/rollout/service/rollout_service.h"
#include "controller/rollout/service/rollout_shown.h"
#include "controller/rollout/service/rollout_window.h"
#include "controller/rollout/survey.h"
#include "sys/log.h"

namespace muster {

using namespace rollout;

namespace {

bool could_be_canary(const View& view, const std::string& name) {
  return std::any_of(view.nodes.begin(), view.nodes.end(), [&](const Node& node) {
    return node.name == name && in_scope(view, node) && may_fail(node);
  });
}

}  // namespace

void RolloutService::approve(ToApprove what, Done done) {
  in_turn(std::move(done), [this, what = std::move(what)](const Done& answer) {
    const auto seen = port_.look();
    if (!seen.ok()) return answer(seen.error());
    for (const auto& name : what.canaries)
      if (!could_be_canary(seen->view, name))
        return answer(fail(Code::invalid, fmt::format("{} cannot be a canary: a node of the roles is needed "
                                                      "that has a BMC, serves no storage and leads nothing",
                                                      name)));
    if (digest_of(seen->now) != what.digest)
      return answer(fail(Code::conflict, "the rollout to approve has changed: see `muster rollout plan`"));
    if (record_ && record_->row && record_->row->batch)
      return answer(
          fail(Code::conflict,
               fmt::format(
                   "batch {} is in progress: run `muster rollout pause`, and approve once its run has ended",
                   record_->row->batch->number)));
    Approval approval = seen->now;
    approval.by = what.by;
    approval.time = reactor_.now();
    approval.canaries = what.canaries;
    save_for(approved(record_.value_or(Record{}), std::move(approval)), answer);
  });
}

void RolloutService::start(WindowStart how, Done done) {
  // The clock was last looked at up to a minute before it was set.
  const SteadyMs now = reactor_.steady(), due = now - how.late - 2 * kAgain;
  if (how.by_timer) how.late += clock_watch_.forward_since(due, reactor_.now(), now);
  in_turn(std::move(done), [this, how](const Done& answer) {
    const auto refuse = [&](const Error& error) {
      if (error.code == Code::denied || error.message != refused_)
        log::warning("the rollout's window was not opened", {{"why", error.message}});
      refused_ = error.message;
      answer(error);
    };
    const auto seen = port_.look();
    if (!seen.ok()) return refuse(seen.error());
    auto next = opened(record_, *seen, clocks(), how);
    if (!next.ok()) {
      auto night = record_ ? not_opened(*record_, *seen, clocks(), how) : std::nullopt;
      if (!night) return refuse(next.error());
      return save_for(std::move(*night),
                      [answer, error = next.error()](const Result<Json>&) { answer(error); });
    }
    if (!is_joined(*record_, *next, clocks())) {
      const auto images = due_images(seen->rollout.rebuild, seen->built_at, reactor_.now());
      if (!images.empty()) next = with_builds(*record_, std::move(next).value(), images);
      if (!next.ok()) return refuse(next.error());
      looked_ = {}, refused_.clear(), build_again_ = {};
      return save_for(std::move(next).value(), [answer](Result<Json> shown) {
        if (shown.ok()) (*shown)["begun"] = true;
        answer(std::move(shown));
      });
    }
    Json shown = record_shown(*record_);
    shown["begun"] = false;
    answer(std::move(shown));
    poke();
  });
}

void RolloutService::pause(const std::string& by, Done done) {
  in_turn(std::move(done), [this, by](const Done& answer) {
    if (!going_on()) return answer(fail(Code::conflict, "no rollout is in progress"));
    Record next = *record_;
    next.row->paused = true;
    if (next.why_paused.empty()) next.why_paused = "by " + by;
    save_for(std::move(next), answer);
  });
}

void RolloutService::resume(Done done) {
  in_turn(std::move(done), [this](const Done& answer) {
    if (!record_ || !record_->row || !record_->row->paused)
      return answer(fail(Code::conflict, "the rollout is not paused"));
    Record next = *record_;
    next.row->paused = false;
    next.why_paused.clear();
    save_for(std::move(next), answer);
  });
}

void RolloutService::skip(const std::string& node, Skip skip, Done done) {
  in_turn(std::move(done), [this, node, skip = std::move(skip)](const Done& answer) mutable {
    if (skip.reason.empty()) return answer(fail(Code::invalid, "a reason is required"));
    if (skip.until != 0 && skip.until <= reactor_.now())
      return answer(fail(Code::invalid, fmt::format("{} is over", to_iso8601(skip.until))));
    if (!record_)
      return answer(fail(Code::conflict, "no rollout is approved yet: run `muster rollout approve` first"));
    const auto seen = port_.look();
    if (!seen.ok()) return answer(seen.error());
    const auto named = [&](const Node& one) { return one.name == node; };
    const auto found = std::find_if(seen->view.nodes.begin(), seen->view.nodes.end(), named);
    if (found == seen->view.nodes.end())
      return answer(fail(Code::not_found, fmt::format("no node '{}'", node)));
    if (!in_scope(seen->view, *found))
      return answer(
          fail(Code::invalid, fmt::format("no rollout takes {}: its role is not in `rollout.roles`, "
                                          "or it has no image",
                                          node)));
    Record next = *record_;
    skip.since = reactor_.now();
    next.skips[node] = std::move(skip);
    save_for(std::move(next), answer);
  });
}

void RolloutService::unskip(const std::string& node, Done done) {
  in_turn(std::move(done), [this, node](const Done& answer) {
    Record next = record_.value_or(Record{});
    if (next.skips.erase(node) == 0)
      return answer(fail(Code::not_found, fmt::format("node '{}' is not skipped", node)));
    save_for(std::move(next), answer);
  });
}

}  // namespace muster
