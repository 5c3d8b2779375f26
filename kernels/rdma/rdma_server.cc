// The serving side of measurements with perftest (kernels/rdma/rdma.cc): reserves this node for one
// partner and runs perftest at its request, as the server or, for the other direction, as the client.
#include <algorithm>
#include <memory>
#include <mutex>

#include "kernels/common/connection.h"
#include "kernels/common/kernels.h"
#include "kernels/rdma/rdma.h"
#include "kernels/rdma/rdma_job.h"
#include "kernels/rdma/rdma_link.h"

namespace muster::kernels {
namespace {

using namespace rdma;

// A session that began before the server's deadline may finish, even if it began in the last second, as can
// happen when acceptance is repeated. It may last as long as a measurement (RdmaOptions::total_seconds).
constexpr double kLeastSession = 600;

class Session {
 public:
  struct Limits {
    double until, idle_seconds;
    const CarriedPerftest& perftest;
  };
  Session(const Files& files, Process& process, Connection& link, std::string from, uint16_t port,
          Limits limits)
      : files_(files),
        process_(process),
        link_(link),
        from_(std::move(from)),
        port_(port),
        limits_(limits),
        lock_(files),
        ability_(look(files, process, limits.perftest)) {}

  // Serves until the partner disconnects, or was silent for too long to keep this node reserved. Returns the
  // number of tests.
  int serve() {
    link_.notice_death();
    while (true) {
      // A partner that waits for its turn reserves nothing, so it may wait until the deadline. During a test
      // the partner is busy, and afterwards it may have to finish its own side: add the test's time.
      const double patience = limits_.idle_seconds + test_seconds_;
      link_.until(reserved_ ? std::min(limits_.until, seconds_now() + patience) : limits_.until);
      const auto question = receive_json(link_, question_type);
      if (!question.ok()) break;
      auto reply = reply_to(*question);
      link_.until(seconds_now() + kAnswerSeconds);
      if (!say(link_, answer, reply.ok() ? *reply : Json{{"error", reply.error().message}}).ok()) break;
    }
    if (serving_) serving_->give_up();
    return tests_;
  }

 private:
  Result<Json> reply_to(const Json& question) {
    const std::string op = question.is_object() && question.contains("op") && question["op"].is_string()
                               ? question["op"].get<std::string>()
                               : "";
    if (op == "hello") return to_json(ability_);
    if (op == "reserve") {
      TRY(reserved_, lock_.take());
      return Json{{"granted", reserved_}};
    }
    if (!reserved_) return fail(Code::denied, "not reserved");
    if (op == "finish" || op == "give up") {
      if (!serving_) return fail(Code::conflict, "no test was started");
      if (op == "give up") serving_->give_up();
      Json out = {{"results", serving_->finish()}};
      serving_.reset();
      return out;
    }
    if (op != "serve" && op != "measure") return fail(Code::invalid, "unknown request");
    TRY(const Job job, job_from_json(question));
    if (serving_) return fail(Code::conflict, "a test is already running");
    ++tests_;
    test_seconds_ = longest(job);
    auto runs = std::make_unique<Runs>(files_, process_, ability_, port_);
    if (op == "measure") {
      TRY_(runs->start(job, from_));
      return Json{{"results", runs->finish()}};
    }
    const Status started = runs->start(job, "");
    if (!started.ok()) runs->give_up();
    TRY_(started);
    serving_ = std::move(runs);
    return Json{{"ready", true}, {"ended", serving_->ended_early()}};
  }

  const Files& files_;
  Process& process_;
  Connection& link_;
  const std::string from_;
  const uint16_t port_;
  const Limits limits_;
  NodeLock lock_;
  const Ability ability_;
  bool reserved_ = false;
  double test_seconds_ = 0;  // upper limit of the last test's duration
  int tests_ = 0;
  std::unique_ptr<Runs> serving_ = {};
};

}  // namespace

Result<RdmaServer> RdmaServer::open(RdmaServerOptions options) {
  TRY(Listener listener, Listener::open(options.bind, options.port));
  return RdmaServer(std::move(options), std::move(listener));
}

Measurement RdmaServer::run(const Files& files, Process& process) {
  Measurement out;
  out.check = "rdma-serve";
  const double until = seconds_now() + options_.seconds;
  std::mutex mutex;  // guards sessions
  Json sessions = Json::array();
  listener_.serve_until({until, options_.sessions, options_.from}, [&](int fd, const std::string& from) {
    const double limit = seconds_now() + std::max(options_.seconds, kLeastSession);
    Connection link(fd, limit);
    const int tests =
        Session(files, process, link, from, port(), {limit, options_.idle_seconds, options_.perftest})
            .serve();
    const std::lock_guard lock(mutex);
    sessions.push_back({{"from", from}, {"tests", tests}});
  });
  out.detail = {{"bind", options_.bind}, {"port", port()}, {"sessions", sessions}};
  return out;
}

}  // namespace muster::kernels
