#include "cli/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "base/json_dump.h"
#include "cli/interrupt_note.h"
#include "cli/terminal.h"

namespace muster::cli {
namespace {

using std::chrono::milliseconds;

constexpr auto kFollowRefresh = milliseconds(700);
constexpr auto kLull = milliseconds(120);  // several events within this time cause one redraw
constexpr int kPatience = 120;             // failed refreshes before giving up

// Signals each event of the controller's stream, in a thread. When the stream ends, polling continues.
class Waker {
 public:
  explicit Waker(const Context& context) : shared_(std::make_shared<Shared>()) {
    std::thread([shared = shared_, context] { listen(*shared, context); }).detach();
  }
  // The thread may block in a read until the next keep-alive: it is detached and owns all its data.
  ~Waker() { shared_->stop = true; }
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  void wait() {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait_for(lock, kFollowRefresh, [this] { return shared_->fresh; });
    shared_->fresh = false;
    lock.unlock();
    std::this_thread::sleep_for(kLull);
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool fresh = false;
    std::atomic<bool> stop = false;
  };
  static void listen(Shared& shared, const Context& context) {
    const auto ended = Api(context).lines("GET", "/v1/events", "", [&shared](const std::string& line) {
      if (line.starts_with("id:")) {
        const std::lock_guard lock(shared.mutex);
        shared.fresh = true;
        shared.changed.notify_one();
      }
      return !shared.stop;
    });
    (void)ended;  // not needed: polling continues, and reports its own errors
  }
  std::shared_ptr<Shared> shared_;
};

// Until `look` returns false. An error if the controller does not respond for a while.
Status each_status(Context& context, const std::function<bool(const Json&)>& look) {
  Waker waker(context);
  Api api(context);
  int silent = 0;
  for (;;) {
    const auto status = api.get("/v1/status");
    if (status.ok()) {
      silent = 0;
      if (!look(*status)) return Ok{};
    } else if (++silent > kPatience) {
      return status.error();
    }
    waker.wait();
  }
}

std::string run_goes_on(int64_t run) {
  return fmt::format("run {0} goes on; `muster watch` shows it, `muster cancel {0}` ends it", run);
}

bool ended(const Json& run) { return !run.is_object() || run.value("state", "") != "running"; }

}  // namespace

Result<Json> follow_run(Context& context, int64_t run) {
  LiveView view(context.json);
  const InterruptNote note(run_goes_on(run));
  TRY_(each_status(context, [&](const Json& status) {
    view.draw(status);
    const Json now = status.value("run", Json());
    return now.is_object() && now.value("id", int64_t{0}) == run && !ended(now);
  }));
  view.finish();
  return Api(context).get(fmt::format("/v1/runs/{}", run));
}

Status follow_status(Context& context, bool until_idle, const NodeFilter& filter) {
  LiveView view(context.json, filter.options);
  InterruptNote note("nothing was stopped");
  Status fits = Ok{};
  bool first = true;
  TRY_(each_status(context, [&](const Json& whole) {
    if (std::exchange(first, false)) fits = names_nodes(filter, whole);
    if (!fits.ok()) return false;
    const Json status = only(whole, filter);
    if (context.json) fmt::print("{}\n", dump_json(status));
    std::fflush(stdout);
    view.draw(status);
    if (std::ferror(stdout) != 0) return false;  // nothing reads it any more; run() reports that
    const Json run = status.value("run", Json());
    note.set(ended(run) ? "no run is active" : run_goes_on(run.value("id", int64_t{0})));
    return !until_idle || !ended(run);
  }));
  return fits;
}

int exit_for_run(const Json& run) {
  const std::string state = run.value("state", "failed");
  if (state == "done") {
    const Json nodes = run.value("nodes", Json::array());
    const auto any = [&](const char* result) {
      return std::any_of(nodes.begin(), nodes.end(),
                         [&](const Json& node) { return node.value("result", "") == result; });
    };
    // The node is back in its previous system, which works, but the request failed.
    if (any("returned") || any("looked_at")) return kPartial;
    return any("degraded") ? kDegraded : kAccepted;
  }
  if (state == "partial") return kPartial;
  return kFailed;
}

int exit_for_run(const Json& run, const Report& report) {
  const int code = exit_for_run(run);
  if (code != kFailed || run.value("state", "") != "failed" || report.nodes.empty()) return code;
  return std::all_of(report.nodes.begin(), report.nodes.end(), only_unrun) ? kPartial : kFailed;
}

}  // namespace muster::cli
