#include "sys/reactor.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "sys/contain.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr int64_t kNanosecondsInMs = 1'000'000;

namespace asio = boost::asio;

constexpr int64_t kSteadyBegin = 1'000'000'000'000;

// Lifetime: the pool is joined before the io_context ends, so a worker never posts to a destroyed one.
class AsioReactor : public RealReactor {
 public:
  AsioReactor(int worker_threads, ReactorWatch::CpuClock cpu)
      : watch_(once_an_hour([this] { return steady(); }, warn_of_slow), std::move(cpu)),
        guard_(asio::make_work_guard(io_)),
        signals_(io_),
        pool_(static_cast<size_t>(std::max(1, worker_threads))) {}
  ~AsioReactor() override {
    io_.stop();
    pool_.join();
    while (!watched_.empty()) forget(watched_.begin()->first);
  }

  TimeMs now() const override {
    auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
  }
  // The clock of the timers. After a boot it may be near 0, which means "never": shifted away from it.
  SteadyMs steady() const override {
    const auto reading = std::chrono::steady_clock::now().time_since_epoch();
    return {kSteadyBegin + std::chrono::duration_cast<std::chrono::milliseconds>(reading).count()};
  }

  void post(Task task) override {
    asio::post(io_, [this, task = std::move(task)] { run_task("post", task); });
  }

  TimerId after(DurationMs delay, Task task) override {
    TimerId id = ++last_timer_;
    auto& timer =
        timers_.try_emplace(id, io_, std::chrono::milliseconds(std::max<DurationMs>(delay, 0))).first->second;
    timer.async_wait([this, id, task = std::move(task)](boost::system::error_code) {
      // A timer cancelled after it expired is called without an error, too; it is no longer in the table.
      if (timers_.erase(id) == 1) run_task("timer", task);
    });
    return id;
  }

  void cancel(TimerId timer) override { timers_.erase(timer); }
  void label(std::string_view name) override { watch_.label(name); }

  void run() override {
    io_.run();
    io_.restart();
  }
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

  void when_ready(int fd, Ready what, Task on_ready) override {
    auto& watched = watched_[fd];
    if (!watched.descriptor) {
      watched.id = ++last_watched_;
      watched.descriptor = std::make_unique<asio::posix::stream_descriptor>(io_);
      boost::system::error_code error;
      watched.descriptor->assign(fd, error);
      // A regular file, which epoll rejects: it can always be read without blocking.
      if (error) {
        watched_.erase(fd);
        return post(std::move(on_ready));
      }
    }
    watched.descriptor->async_wait(what == Ready::read ? asio::posix::descriptor_base::wait_read
                                                       : asio::posix::descriptor_base::wait_write,
                                   [this, fd, id = watched.id, on_ready = std::move(on_ready)](auto) {
                                     // By then, the number `fd` may belong to a different open file.
                                     const auto found = watched_.find(fd);
                                     if (found != watched_.end() && found->second.id == id)
                                       run_task("descriptor", on_ready);
                                   });
  }
  void forget(int fd) override {
    const auto found = watched_.find(fd);
    if (found == watched_.end()) return;
    found->second.descriptor->release();
    watched_.erase(found);
  }

  void on_slow(ReactorWatch::OnSlow hook) override { watch_.on_slow(std::move(hook)); }

 private:
  // No exception may leave run(): it would end the program.
  void run_task(std::string_view name, const Task& task) {
    watch_.run(name, [&] { contain_exceptions("a task of the reactor", task); });
  }

  void wait_for_signal(Task on_signal) {
    signals_.async_wait([this, on_signal = std::move(on_signal)](boost::system::error_code error, int) {
      if (error) return;
      run_task("signal", on_signal);
      wait_for_signal(on_signal);
    });
  }

  ReactorWatch watch_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  asio::signal_set signals_;
  std::map<TimerId, asio::steady_timer> timers_;
  TimerId last_timer_ = 0;
  struct Watched {
    uint64_t id = 0;
    std::unique_ptr<asio::posix::stream_descriptor> descriptor = {};
  };
  std::map<int, Watched> watched_;
  uint64_t last_watched_ = 0;
  asio::thread_pool pool_;
};

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

std::unique_ptr<RealReactor> make_reactor(int worker_threads, ReactorWatch::CpuClock cpu) {
  return std::make_unique<AsioReactor>(worker_threads, std::move(cpu));
}

}  // namespace muster
