#include "base/reactor.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/contain.h"

namespace muster {
namespace {

namespace asio = boost::asio;

constexpr int64_t kSteadyBegin = 1'000'000'000'000;

// Lifetime: the pool is joined before the io_context goes, so a worker never posts into a dead one.
class AsioReactor : public RealReactor {
 public:
  explicit AsioReactor(int worker_threads)
      : guard_(asio::make_work_guard(io_)),
        signals_(io_),
        pool_(static_cast<size_t>(std::max(1, worker_threads))) {}
  ~AsioReactor() override {
    io_.stop();
    pool_.join();
  }

  TimeMs now() const override {
    auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
  }
  // The clock of the timers below. It may begin at the machine's start: moved away from 0, which means
  // "never".
  SteadyMs steady() const override {
    const auto reading = std::chrono::steady_clock::now().time_since_epoch();
    return {kSteadyBegin + std::chrono::duration_cast<std::chrono::milliseconds>(reading).count()};
  }

  void post(Task task) override {
    asio::post(io_, [task = std::move(task)] { run_task(task); });
  }

  TimerId after(DurationMs delay, Task task) override {
    TimerId id = ++last_timer_;
    auto& timer =
        timers_.try_emplace(id, io_, std::chrono::milliseconds(std::max<DurationMs>(delay, 0))).first->second;
    timer.async_wait([this, id, task = std::move(task)](boost::system::error_code) {
      // A timer that had already expired when it was cancelled is called without an error: the table decides.
      if (timers_.erase(id) == 1) run_task(task);
    });
    return id;
  }

  void cancel(TimerId timer) override { timers_.erase(timer); }

  void run() override { io_.run(); }
  void stop() override { io_.stop(); }

  void offload(Task work, Task done) override {
    asio::post(pool_, [this, work = std::move(work), done = std::move(done)]() mutable {
      contain_exceptions("a job of a worker thread", work);
      post(std::move(done));
    });
  }

  void on_stop_signal(Task on_signal) override {
    signals_.add(SIGINT);
    signals_.add(SIGTERM);
    wait_for_signal(std::move(on_signal));
  }

 private:
  // Nothing may come out of run(): that would be the end of the program.
  static void run_task(const Task& task) { contain_exceptions("a task of the reactor", task); }

  void wait_for_signal(Task on_signal) {
    signals_.async_wait([this, on_signal = std::move(on_signal)](boost::system::error_code error, int) {
      if (error) return;
      run_task(on_signal);
      wait_for_signal(on_signal);
    });
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  asio::signal_set signals_;
  std::map<TimerId, asio::steady_timer> timers_;
  TimerId last_timer_ = 0;
  asio::thread_pool pool_;
};

}  // namespace

std::unique_ptr<RealReactor> make_reactor(int worker_threads) {
  return std::make_unique<AsioReactor>(worker_threads);
}

}  // namespace muster
