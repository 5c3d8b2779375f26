// RDMA between two nodes by perftest: bandwidth of writes in either direction and latency, on every rail at
// the same time.
//
// How to run:  muster-accept rdma-serve --bind 10.20.0.12 --port 7495 --seconds 600 --detach
//              muster-accept rdma --to 10.20.0.12 --port 7495 --seconds 3 [--bind 10.20.0.11] [--gpu-memory]
// Reference:   perftest itself (ib_write_bw, ib_write_lat). It compares no data: what counts is that every
//              work request completes without an error. Data is proven by the loads that use these links
//              (all-reduce).
// Structure:   both sides agree over one TCP connection; perftest's own connections use the TCP ports above
//              it, one per rail. A node works with one partner at a time, measuring or serving, or the
//              figures would be those of shared ports: each side holds a lock for it, and a side that finds
//              the partner busy releases its own and retries a little later.
// Expected:    92 % of the negotiated rate less packet headers; 1.6 to 5 us. Soft-RoCE between emulated
//              machines: 0.2 Gb/s, milliseconds.
#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <mutex>

#include "kernels/rdma/rdma.h"
#include "base/json_dump.h"
#include "kernels/common/connection.h"
#include "kernels/common/kernels.h"
#include "kernels/rdma/rdma_job.h"
#include "kernels/rdma/rdma_link.h"

namespace muster::kernels {
namespace {

using namespace rdma;

// A session that began before the server's deadline may finish, even if it began in the last second, as can
// happen when acceptance is repeated. It may last as long as a measurement (RdmaOptions::total_seconds).
constexpr double kLeastSession = 600;
// Timeouts of the partner's answers, in seconds: while it inspects its devices; while it waits until perftest
// listens; in addition to perftest's own deadline.
constexpr double kLookSeconds = 10, kStartSeconds = 60, kAnswerSeconds = 20;
constexpr int kAttempts = 3;
constexpr const char* kNoDevice = "this node has no RDMA device";

// ---- the server side

class Session {
 public:
  struct Limits {
    double until, idle_seconds;
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
        ability_(look(files, process)) {}

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
      if (!lock_.usable()) return fail(Code::failed, "the lock file cannot be opened");
      return Json{{"granted", reserved_ = reserved_ || lock_.take()}};
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
    return Json{{"ready", true}};
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

// ---- the measuring side

// The results of one rail; after an error the rail is not measured any further.
struct RailResult {
  Rail rail = {};
  std::map<std::string, Metric> metrics = {};
  std::string error = {}, at_fault = {};  // at_fault: "here" or "peer" where it is known
  Outcome outcome = Outcome::measured;
  bool inconclusive = false;  // why the rail was not measured says nothing about the link
  int mtu = 0, repeated = 0;
  void fail_with(Outcome how, std::string why, std::string where = "") {
    if (outcome == Outcome::measured) outcome = how, error = std::move(why), at_fault = std::move(where);
  }
  void report_nothing(std::string why) {
    inconclusive = inconclusive || outcome == Outcome::measured;
    fail_with(Outcome::unavailable, std::move(why));
  }
};

class Pair {
 public:
  Pair(const Files& files, Process& process, const RdmaOptions& options, const Ability& own)
      : files_(files),
        process_(process),
        options_(options),
        own_(own),
        lock_(files),
        until_(seconds_now() + options.total_seconds) {}

  // Returns the results of all rails, or why no measurement with this partner is possible. Code::timeout: the
  // reason says nothing about the links.
  Result<std::vector<RailResult>> measure() {
    TRY_(reserve());
    for (const auto& rail : rails()) results_.push_back({.rail = rail});
    for (auto& one : results_) check_rail(one);
    const int seconds = std::max(1, static_cast<int>(options_.seconds));
    Job job{.seconds = seconds, .iterations = options_.iterations};
    test(job, true, [](RailResult& r, const Json& said) {
      r.metrics["send_gbps"] = {said.value("gbps", 0.0), "Gb/s"};
    });
    if (options_.gpu_memory) {
      job.gpu = true;
      test(job, true, [](RailResult& r, const Json& said) {
        const double host = r.metrics["send_gbps"].value, gpu = said.value("gbps", 0.0);
        r.metrics["gdr_gbps"] = {gpu, "Gb/s"};
        r.metrics["gdr_ratio"] = {host > 0 ? gpu / host : 0, "ratio"};
      });
    } else {
      test(job, false, [](RailResult& r, const Json& said) {
        r.metrics["receive_gbps"] = {said.value("gbps", 0.0), "Gb/s"};
      });
      job.test = PerfTest::latency;
      test(job, true, [](RailResult& r, const Json& said) {
        r.metrics["latency_us"] = {said.value("typical_us", 0.0), "us"};
        r.metrics["latency_p99_us"] = {said.value("p99_us", 0.0), "us"};
      });
    }
    lock_.release();
    return std::move(results_);
  }
  const Json& partner() const { return partner_; }

 private:
  Status connect() {
    const double until = seconds_now() + options_.connect_seconds;
    while (true) {
      TRY(const int fd,
          connect_until({options_.to, options_.port, options_.bind, std::max(0.0, until - seconds_now())}));
      link_ = std::make_unique<Connection>(fd, std::min(until_, seconds_now() + kLookSeconds));
      link_->notice_death();
      auto said = request(*link_, {{"op", "hello"}});
      if (said.ok()) partner_ = std::move(*said);
      if (said.ok()) return Ok{};
      // Retry: a server at its deadline may have accepted the connection, while the next one already listens.
      if (seconds_now() > until)
        return fail(Code::unavailable,
                    fmt::format("{} does not answer: {}", options_.to, said.error().message));
      pause(kPoll);
    }
  }
  // A partner that has failed to answer once gets no more requests: its answer may still come, and would be
  // mistaken for that of the next request.
  Result<Json> request_partner(const Json& question, double seconds) {
    if (!lost_.empty()) return fail(Code::timeout, lost_);
    link_->until(std::min(until_, seconds_now() + seconds));
    auto out = request(*link_, question);
    if (out.ok() || out.error().code == Code::failed) return out;
    lost_ = fmt::format("the partner did not answer request '{}': {}", question.value("op", ""),
                        out.error().message);
    return fail(Code::timeout, lost_);
  }
  // A test only begins if it can finish: a perftest that is killed looks like a link that hangs.
  Status enough_time(const Job& job) {
    if (lost_.empty() && seconds_now() + longest(job) > until_)
      lost_ =
          fmt::format("no time was left for this test within the limit of {:.0f} s", options_.total_seconds);
    return lost_.empty() ? Status(Ok{}) : fail(Code::timeout, lost_);
  }
  // Reserves both nodes for each other. Never waits for the partner while holding its own lock, so no ring of
  // nodes can deadlock.
  Status reserve() {
    if (!lock_.usable()) return fail(Code::unavailable, std::string(kLock) + " cannot be opened");
    TRY_(connect());
    if (partner_.value("rails", Json::array()).empty()) return Ok{};  // nothing to wait for
    SplitMix random(static_cast<uint64_t>(::getpid()) ^ static_cast<uint64_t>(seconds_now() * 1e6));
    const double until = std::min(until_, seconds_now() + options_.busy_seconds);
    while (true) {
      if (lock_.take()) {
        TRY(const Json reply, request_partner({{"op", "reserve"}}, kStartSeconds));
        if (reply.value("granted", false)) return Ok{};
        lock_.release();
      }
      if (seconds_now() > until)
        return fail(Code::timeout, fmt::format("one of the two nodes was busy with other nodes for {:.0f} s",
                                               options_.busy_seconds));
      pause(0.05 + static_cast<double>(random.next() % 200) / 1000);
    }
  }
  std::vector<Rail> rails() const {
    std::map<int, std::string> here, there;
    for (const int number : own_.declared) here[number] = "";
    for (const auto& port : own_.rails) here[port.rail] = port.label;
    for (const auto& rail : partner_.value("rails", Json::array()))
      there[std::clamp(rail.value("number", -1), -1, static_cast<int>(kMostRails) - 1)] =
          rail.value("label", "");
    return here.count(-1) || there.count(-1) || here.empty() || there.empty()
               ? pair_rails(own_.labels(), labels_of_partner())
               : pair_declared(here, there);
  }
  std::vector<std::string> labels_of_partner() const {
    std::vector<std::string> out;
    for (const auto& rail : partner_.value("rails", Json::array())) out.push_back(rail.value("label", ""));
    return out;
  }
  void check_rail(RailResult& one) const {
    const std::string problem = partner_.value("perftest_problem", ""),
                      gpu = partner_.value("gpu_problem", "");
    if (partner_.value("rails", Json::array()).empty())
      return one.fail_with(Outcome::unavailable, "the partner has no RDMA device", "peer");
    if (!problem.empty()) return one.fail_with(Outcome::unavailable, "on the partner: " + problem, "peer");
    if (one.rail.there.empty() && one.rail.here.empty())
      return one.fail_with(Outcome::unavailable,
                           fmt::format("rail {} is declared but has no active RDMA port", one.rail.number),
                           "here");
    if (one.rail.there.empty())
      return one.fail_with(Outcome::unavailable,
                           fmt::format("the partner has no active port {}", one.rail.here), "peer");
    if (one.rail.here.empty())
      return one.fail_with(Outcome::unavailable,
                           fmt::format("this node has no active port {}", one.rail.there), "here");
    if (const auto own = rail_problem(*own_.rail(one.rail.here)); !own.empty())
      return one.fail_with(Outcome::unavailable, own, "here");
    for (const auto& rail : partner_.value("rails", Json::array()))
      if (rail.value("label", "") == one.rail.there && !rail.value("problem", "").empty())
        return one.fail_with(Outcome::unavailable, "on the partner: " + rail.value("problem", ""), "peer");
    if (options_.gpu_memory && !gpu.empty())
      return one.fail_with(Outcome::unavailable, "on the partner: " + gpu, "peer");
  }
  std::vector<Rail> still_good() const {
    std::vector<Rail> out;
    for (const auto& one : results_)
      if (one.outcome == Outcome::measured) out.push_back(one.rail);
    return out;
  }
  using Take = std::function<void(RailResult&, const Json&)>;
  // One test on every rail that is still good. `sending`: data goes from here to the partner.
  void test(const Job& job, bool sending, const Take& take) {
    std::vector<Rail> open = still_good();
    for (int left = kAttempts; !open.empty(); --left) open = try_once(job, sending, open, left == 1, take);
  }
  // Returns the rails on which perftest succeeded but printed no figure: it could not calibrate its clock, as
  // happens on a busy emulated machine.
  std::vector<Rail> try_once(Job job, bool sending, const std::vector<Rail>& rails, bool last,
                             const Take& take) {
    std::vector<Rail> again;
    for (const auto& rail : rails) job.items.push_back({rail.here, rail.number});
    const auto said = sending ? send(job, rails) : receive(job, rails);
    for (const auto& rail : rails) {
      RailResult& one = *std::find_if(results_.begin(), results_.end(),
                                      [&](const RailResult& r) { return r.rail.number == rail.number; });
      if (!said.ok()) {
        if (said.error().code == Code::timeout)
          one.report_nothing(said.error().message);
        else
          one.fail_with(Outcome::failed, said.error().message);
        continue;
      }
      const std::string& label = sending ? rail.here : rail.there;
      const auto found = std::find_if(said->begin(), said->end(), [&](const Json& r) {
        return r.is_object() && r.value("label", "") == label;
      });
      if (found == said->end())
        one.fail_with(Outcome::failed, "no result for " + label);
      else if (found->value("no_figure", false) && !last)
        again.push_back(rail), ++one.repeated;
      else if (const std::string error = found->value("error", "");
               !error.empty() && found->value("no_figure", false))
        one.report_nothing(error);
      else if (!error.empty())
        one.fail_with(Outcome::failed, error);
      else
        one.mtu = found->value("mtu", 0), take(one, *found);
    }
    return again;
  }
  Result<Json> send(const Job& job, const std::vector<Rail>& rails) {
    TRY_(enough_time(job));
    TRY_(request_partner(to_json(job, "serve", true, rails), kStartSeconds));
    TRY_(enough_time(job));
    Runs runs(files_, process_, own_, options_.port);
    TRY_(runs.start(job, options_.to));
    Json said = runs.finish();
    const bool failed =
        std::any_of(said.begin(), said.end(), [](const Json& r) { return r.value("error", "") != ""; });
    TRY(const Json ended,
        request_partner({{"op", failed ? "give up" : "finish"}}, longest(job) + kAnswerSeconds));
    for (const auto& other :
         ended.value("results", Json::array()))  // add the partner's errors to this side's
      for (size_t i = 0; i < rails.size(); ++i)
        if (rails[i].there == other.value("label", "") && other.value("error", "") != "")
          for (auto& mine : said)
            if (mine["label"] == rails[i].here)
              mine["error"] = mine.value("error", "") + " / the partner's side: " + other.value("error", "");
    return said;
  }
  Result<Json> receive(const Job& job, const std::vector<Rail>& rails) {
    TRY_(enough_time(job));
    Runs runs(files_, process_, own_, options_.port);
    const Status started = runs.start(job, "");
    auto said = started.ok()
                    ? request_partner(to_json(job, "measure", true, rails), longest(job) + kAnswerSeconds)
                    : Result<Json>(started.error());
    const bool failed = !said.ok() || std::any_of((*said)["results"].begin(), (*said)["results"].end(),
                                                  [](const Json& r) { return r.value("error", "") != ""; });
    if (failed) runs.give_up();
    runs.finish();
    if (!said.ok()) return said.error();
    return (*said)["results"];
  }

  const Files& files_;
  Process& process_;
  const RdmaOptions& options_;
  const Ability& own_;
  NodeLock lock_;
  const double until_;
  std::unique_ptr<Connection> link_ = {};
  std::string lost_ = {};  // why the partner gets no more requests
  Json partner_ = {};
  std::vector<RailResult> results_ = {};
};

Measurement link_measurement(const RailResult& one, const Ability& own, const RdmaOptions& options) {
  Measurement out;
  out.check = options.gpu_memory ? "rdma-gpu-memory" : "rdma-link";
  out.outcome = one.outcome;
  out.error = one.error;
  out.metrics = one.metrics;
  const RdmaPort* port = own.rail(one.rail.here);
  out.detail = {{"to", options.to},
                {"device", one.rail.here},
                {"peer_device", one.rail.there},
                {"rail", one.rail.number},
                {"seconds", options.seconds},
                {"verified", "every work request completed without an error; perftest compares no data"}};
  if (!one.at_fault.empty()) out.detail["at_fault"] = one.at_fault;
  if (one.inconclusive) out.detail["inconclusive"] = true;
  if (one.mtu > 0) out.detail["mtu"] = one.mtu;
  if (one.repeated > 0) out.detail["repeated"] = one.repeated;
  if (port) {
    out.detail["rate_gbps"] = port->rate_gbps;
    out.detail["link_layer"] = to_string(port->layer);
    if (port->gid >= 0) out.detail["gid_index"] = port->gid;
  }
  if (!options.gpu_memory)
    out.detail["gpu_direct"] =
        own.gpu.problem.empty() ? "measured only with `--gpu-memory`" : "not measured: " + own.gpu.problem;
  if (one.outcome == Outcome::failed)
    out.faulty_parts.push_back(
        fmt::format("RDMA link {} - {} of {}", one.rail.here, one.rail.there, options.to));
  return out;
}

}  // namespace

Measurement run_rdma(const Files& files, Process& process, const RdmaOptions& options) {
  Measurement out;
  out.check = "rdma";
  const Ability own = look(files, process);
  out.detail = {{"to", options.to}, {"inactive", own.inactive}};
  // A problem of this node alone says nothing about a link, so it is not `failed`.
  out.outcome = Outcome::unavailable;
  if (own.rails.empty())
    out.error = own.inactive.empty()
                    ? std::string(kNoDevice)
                    : fmt::format("this node has no active RDMA port: {}", dump_json(own.inactive));
  else if (!own.perftest_problem.empty())
    out.error = own.perftest_problem;
  else if (options.gpu_memory)
    out.error = own.gpu.problem;
  if (!out.error.empty()) return out;
  out.outcome = Outcome::measured;
  Pair pair(files, process, options, own);
  auto rails = pair.measure();
  std::vector<RailResult> results;
  if (rails.ok())
    results = std::move(*rails);
  else
    for (size_t i = 0; i < own.rails.size(); ++i) {
      results.push_back({.rail = {i, own.rails[i].label, ""}});
      if (rails.error().code == Code::timeout)
        results.back().report_nothing(rails.error().message);
      else
        results.back().fail_with(Outcome::unavailable, rails.error().message);
    }
  out.parts = Json::array();
  for (const auto& one : results) {
    const Measurement part = link_measurement(one, own, options);
    if (part.outcome != Outcome::measured && out.outcome == Outcome::measured)
      out.outcome = part.outcome, out.error = part.error;
    out.parts.push_back(
        {{"subject", ""}, {"like", fmt::format("rail {}", one.rail.number)}, {"result", to_json(part)}});
  }
  return out;
}

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
    const int tests = Session(files, process, link, from, port(), {limit, options_.idle_seconds}).serve();
    const std::lock_guard lock(mutex);
    sessions.push_back({{"from", from}, {"tests", tests}});
  });
  out.detail = {{"bind", options_.bind}, {"port", port()}, {"sessions", sessions}};
  return out;
}

}  // namespace muster::kernels
