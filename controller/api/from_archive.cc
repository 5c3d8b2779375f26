#include "controller/api/from_archive.h"

#include <fmt/format.h>

#include <utility>

namespace muster::api {

void ArchiveAnswers::answer(const CallPtr& call, Make make) {
  if (waiting_.size() >= kMostWaiting)
    return call->error(fail(
        Code::unavailable,
        fmt::format("{} requests are already waiting for stored runs: try again later", waiting_.size())));
  waiting_.push_back(std::make_shared<Work>(Work{call, std::move(make)}));
  next();
}

void ArchiveAnswers::next() {
  if (busy_ || waiting_.empty()) return;
  busy_ = true;
  const auto work = std::move(waiting_.front());
  waiting_.pop_front();
  work->archive = store_.archive();
  reactor_.offload([work] { work->answer = work->make(*work->archive); }, alive_.wrap([this, work] {
    busy_ = false;
    next();
    if (!work->answer.ok()) return work->call->error(work->answer.error());
    work->call->responder->respond(std::move(work->answer).value());
  }));
}

}  // namespace muster::api
