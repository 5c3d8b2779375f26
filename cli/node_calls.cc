#include "cli/node_calls.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "cli/cli_context.h"

namespace muster::cli {
namespace {

class Threads : public CallRunner {
 public:
  explicit Threads(const NodeCall& call) : call_(call) {}
  ~Threads() override {
    for (auto& [at, thread] : threads_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  void start(size_t at, const std::string& node) override {
    threads_.emplace(at, std::thread([this, at, node] {
                       CallResult done{at, call_(node)};
                       const std::lock_guard lock(mutex_);
                       results_.push_back(std::move(done));
                       finished_.notify_one();
                     }));
  }

  std::optional<CallResult> next(DurationMs within) override {
    std::unique_lock lock(mutex_);
    const bool some =
        finished_.wait_for(lock, std::chrono::milliseconds(within), [this] { return !results_.empty(); });
    if (!some) return std::nullopt;
    CallResult done = std::move(results_.front());
    results_.pop_front();
    lock.unlock();
    threads_.at(done.at).join();
    threads_.erase(done.at);
    return done;
  }

 private:
  const NodeCall& call_;
  std::map<size_t, std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable finished_;
  std::deque<CallResult> results_;
};

}  // namespace

std::vector<Result<Json>> call_each(const std::vector<std::string>& nodes, CallRunner& runner,
                                    const CallReports& reports) {
  std::vector<Result<Json>> out(nodes.size(), Result<Json>(Json()));
  std::set<size_t> under_way;
  size_t begun = 0;
  DurationMs quiet = kQuiet;
  while (begun < nodes.size() || !under_way.empty()) {
    for (; begun < nodes.size() && under_way.size() < kCallsAtOnce; ++begun) {
      under_way.insert(begun);
      runner.start(begun, nodes[begun]);
    }
    auto done = runner.next(quiet);
    if (!done) {
      std::vector<std::string> names;
      for (const size_t at : under_way) names.push_back(nodes[at]);
      reports.waiting(names, nodes.size() - begun);
      quiet *= 2;
      continue;
    }
    quiet = kQuiet;
    under_way.erase(done->at);
    reports.finished(nodes[done->at], done->result);
    out[done->at] = std::move(done->result);
  }
  return out;
}

std::vector<Result<Json>> call_each(const std::vector<std::string>& nodes, const NodeCall& call,
                                    const CallReports& reports) {
  Threads threads(call);
  return call_each(nodes, threads, reports);
}

int exit_for_calls(const std::vector<Result<Json>>& results) {
  std::set<int> codes;
  bool some = false;
  for (const auto& result : results) {
    some = some || result.ok();
    if (!result.ok()) codes.insert(exit_for(result.error()));
  }
  if (codes.empty()) return kAccepted;
  if (some) return kPartial;
  return codes.size() == 1 ? *codes.begin() : kFailed;
}

}  // namespace muster::cli
