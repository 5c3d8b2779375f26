#include "sys/reactor_watch.h"

#include <time.h>

#include <map>
#include <memory>

#include "sys/log.h"

namespace muster {

namespace {

constexpr int64_t kNanosecondsInMs = 1'000'000;

}  // namespace

int64_t thread_cpu_time() {
  timespec spent = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<int64_t>(spent.tv_sec) * 1000 * kNanosecondsInMs + spent.tv_nsec;
}

void ReactorWatch::judge(int64_t took) {
  const double ms = static_cast<double>(took) / static_cast<double>(kNanosecondsInMs);
  last_ = {name_, ms};
  if (ms > longest_.ms) longest_ = last_;
  if (took > kLongestTask * kNanosecondsInMs && on_slow_) on_slow_(name_, took / kNanosecondsInMs);
}

ReactorWatch::OnSlow once_an_hour(std::function<SteadyMs()> now, ReactorWatch::OnSlow then) {
  auto last = std::make_shared<std::map<std::string, SteadyMs>>();
  return [last, now = std::move(now), then = std::move(then)](const std::string& name, DurationMs took) {
    SteadyMs& logged_at = (*last)[name];
    const SteadyMs at = now();
    if (logged_at && at - logged_at < 60 * kMinute) return;
    logged_at = at;
    then(name, took);
  };
}

void warn_of_slow(const std::string& name, DurationMs took) {
  log::warning("a task blocked the reactor",
               {{"task", name}, {"ms", std::to_string(took)}, {"limit", std::to_string(kLongestTask)}});
}

}  // namespace muster
