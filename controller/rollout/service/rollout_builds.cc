// RolloutService: the builds with which a window begins, and the batches' images behind them.
#include <utility>

#include "controller/rollout/service/rollout_service.h"
#include "sys/log.h"

namespace muster {

using namespace rollout;

// A night is prepared when each of its builds has ended; what came of them decides the images. Where the
// window is over first, that is noted, and a build that is under way goes on.
void RolloutService::prepare(const SeenCluster& seen) {
  trouble_.clear();
  if (!not_covered(record_->approval, seen.now).empty()) return stop_for_another_target();
  const auto image = next_build(record_->window.builds);
  if (!image)
    return save(after_builds(*record_, seen.now, target_of(seen.now, seen.view.policy)), [this] { go_on(); });
  looked_ = {std::string(to_string(WaitFor::images)), "", {}};
  if (must_note()) {
    Record next = *record_;
    next.left.clear();
    note_result(next, false);
    return save(std::move(next), [this] { rest(); });
  }
  const bool waits = !building_.empty() || reactor_.steady() < build_again_;
  if (waits || !is_open(record_->window, clocks())) return rest();
  const auto at = seen.built_at.find(*image);
  if (at != seen.built_at.end() && is_due(seen.rollout.rebuild, at->second, reactor_.now()))
    return begin_build(*image);
  note_build(*image, "");  // built since: by an operator, or before the controller was restarted
}

// The try is counted before it begins: a build that takes the controller down ends after kBuildTries.
void RolloutService::begin_build(const std::string& image) {
  Record next = *record_;
  Build& build = next.window.builds[image];
  if (build.tries >= kBuildTries)
    return note_build(image, build.error.empty() ? "the controller was stopped in each try" : build.error);
  if (build.tries++ == 0) build.began = reactor_.now();
  log::info("an image is built before the rollout's batches",
            {{"image", image}, {"try", std::to_string(build.tries)}});
  save(std::move(next), [this, image] {
    building_ = image;
    port_.build(image, alive_.wrap([this, image](const Status& built) { build_ended(image, built); }));
    rest();
  });
}

void RolloutService::build_ended(const std::string& image, const Status& built) {
  building_.clear();
  in_turn([](const Result<Json>&) {},
          [this, image, built](const Done&) {
            Record next = record_.value_or(Record{});
            const auto found = next.window.builds.find(image);
            const bool known = going_on() && next.window.preparing && found != next.window.builds.end();
            if (!known || found->second.ended != 0) return poke();
            if (built.ok()) return note_build(image, "");
            const Error& error = built.error();
            if (found->second.tries >= kBuildTries || !may_pass(error))
              return note_build(image, error.message);
            log::warning("the build of an image is retried", {{"image", image}, {"error", error.message}});
            build_again_ = reactor_.steady() + kBuildAgain;
            found->second.error = error.message;
            save(std::move(next), [this] { rest(); });
          });
}

// `error`: why there is no newer image; "": there is one.
void RolloutService::note_build(const std::string& image, const std::string& error) {
  if (!error.empty())
    log::warning("an image was not built; the rollout's batches begin with the present one",
                 {{"image", image}, {"error", error}});
  build_again_ = {};
  Record next = *record_;
  next.window.builds[image].ended = reactor_.now();
  next.window.builds[image].error = error;
  save(std::move(next), [this] { go_on(); });
}

}  // namespace muster
