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
//              the partner busy releases its own and retries a little later. The serving side:
//              kernels/rdma/rdma_server.cc.
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

// Timeouts of the partner's answers, in seconds: while it inspects its devices; while it waits until perftest
// listens; in addition to perftest's own deadline.
constexpr double kLookSeconds = 10, kStartSeconds = 60;
constexpr int kAttempts = 3;
constexpr const char* kNoDevice = "this node has no RDMA device";

// ---- the measuring side

// The results of one rail; after an error the rail is not measured any further.
struct RailResult {
  Rail rail = {};
  std::map<std::string, Metric> metrics = {};
  std::string perftest = {};
  std::string error = {}, at_fault = {};  // at_fault: "here" or "peer" where it is known
  Outcome outcome = Outcome::measured;
  bool inconclusive = false;       // why the rail was not measured says nothing about the link
  std::string not_looked_at = {};  // why there is nothing to measure, through no one's fault
  int mtu = 0, repeated = 0;
  int gid_here = -1, gid_there = -1;
  double rate_there = 0, pcie_there = 0;
  void fail_with(Outcome how, std::string why, std::string where = "") {
    if (outcome == Outcome::measured) outcome = how, error = std::move(why), at_fault = std::move(where);
  }
  void leave_out(const std::string& why) {
    not_looked_at = why;
    report_nothing(why);
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
    others_ = announced_ports(partner_);
    for (const auto& rail : pair_ports(own_, others_)) results_.push_back({.rail = rail});
    for (auto& one : results_) check_rail(one);
    const int seconds = std::max(1, static_cast<int>(options_.seconds));
    Job job{.seconds = seconds, .iterations = options_.iterations};
    job.carried = agree_on_carried(own_.perftest, partner_.value("perftest", Json()), options_.gpu_memory);
    for (auto& one : results_) one.perftest = own_.perftest.text(job.carried);
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
    TRY_(connect());
    if (partner_.value("rails", Json::array()).empty()) return Ok{};  // nothing to wait for
    SplitMix random(static_cast<uint64_t>(::getpid()) ^ static_cast<uint64_t>(seconds_now() * 1e6));
    const double until = std::min(until_, seconds_now() + options_.busy_seconds);
    while (true) {
      TRY(const bool mine, lock_.take());
      if (mine) {
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
  const AnnouncedPort* other_end(const Rail& rail) const {
    for (const auto& other : others_)
      if (other.label == rail.there) return &other;
    return nullptr;
  }
  void check_rail(RailResult& one) const {
    const std::string problem = partner_.value("perftest_problem", ""),
                      gpu = partner_.value("gpu_problem", "");
    const auto absent = [&](std::string why, const char* where) {
      one.fail_with(Outcome::unavailable, std::move(why), where);
    };
    const Rail& rail = one.rail;
    if (others_.empty()) return absent("the partner has no RDMA device", "peer");
    if (!problem.empty()) return absent("on the partner: " + problem, "peer");
    if (rail.there.empty() && rail.here.empty())
      return absent(fmt::format("rail {} is declared but has no active RDMA port", rail.number), "here");
    const bool placed = !rail.place.empty();
    if (rail.there.empty())
      return absent(placed ? fmt::format("the partner has no active port at {}, where this node has {}",
                                         rail.place, rail.here)
                           : fmt::format("the partner has no active port {}", rail.here),
                    "peer");
    if (rail.here.empty())
      return absent(placed ? fmt::format("this node has no active port at {}, where the partner has {}",
                                         rail.place, rail.there)
                           : fmt::format("this node has no active port {}", rail.there),
                    "here");
    const RdmaPort& port = *own_.rail(rail.here);
    const AnnouncedPort& other = *other_end(rail);
    if (!port.reliable()) return one.leave_out(rail_problem(port));
    if (other.unmeasurable) return one.leave_out("on the partner: " + other.problem);
    // No rail is declared for it, and others are in use. With an address at one end only, the other one has
    // lost it.
    const bool others_work = std::any_of(own_.rails.begin(), own_.rails.end(), [](const RdmaPort& one_of) {
      return one_of.reliable() && !one_of.lacks_address();
    });
    if (port.rail < 0 && port.lacks_address() && other.gids.empty() && others_work)
      return one.leave_out(rail_problem(port) + ", nor has the partner's port");
    if (const auto own = rail_problem(port); !own.empty()) return absent(own, "here");
    if (!other.problem.empty()) return absent("on the partner: " + other.problem, "peer");
    one.rate_there = other.rate_gbps, one.pcie_there = other.pcie_gbps;
    const auto [here, there] = gids_of_one_network(port.gids, other.gids);
    if (here >= 0)
      one.gid_here = port.gids[static_cast<size_t>(here)].index,
      one.gid_there = other.gids[static_cast<size_t>(there)].index;
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
  std::vector<Rail> try_once(const Job& job, bool sending, const std::vector<Rail>& rails, bool last,
                             const Take& take) {
    std::vector<Rail> again;
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
  // The job for these rails, as this side or as the partner carries it out.
  Job for_rails(Job job, const std::vector<Rail>& rails, bool own_side) const {
    job.items.clear();
    for (const auto& rail : rails) {
      const auto one = std::find_if(results_.begin(), results_.end(),
                                    [&](const RailResult& r) { return r.rail.number == rail.number; });
      job.items.push_back(
          {own_side ? rail.here : rail.there, rail.number, own_side ? one->gid_here : one->gid_there});
    }
    return job;
  }
  // Moves the rails whose server ended before a test began from `rails` into `said`, with the error.
  static void take_ended(const Json& ended, bool servers_here, std::vector<Rail>& rails, Json& said) {
    std::erase_if(rails, [&](const Rail& rail) {
      const std::string error = ended.value(servers_here ? rail.here : rail.there, "");
      if (error.empty()) return false;
      said.push_back({{"label", servers_here ? rail.there : rail.here},
                      {"error", (servers_here ? "" : "the partner's side: ") + error}});
      return true;
    });
  }
  Result<Json> send(const Job& job, std::vector<Rail> rails) {
    TRY_(enough_time(job));
    TRY(const Json ready, request_partner(to_json(for_rails(job, rails, false), "serve"), kStartSeconds));
    TRY_(enough_time(job));
    Json early = Json::array();
    take_ended(ready.value("ended", Json::object()), false, rails, early);
    Runs runs(files_, process_, own_, options_.port);
    TRY_(runs.start(for_rails(job, rails, true), options_.to));
    Json said = runs.finish();
    const bool failed = !early.empty() || std::any_of(said.begin(), said.end(), [](const Json& r) {
      return r.value("error", "") != "";
    });
    TRY(const Json ended,
        request_partner({{"op", failed ? "give up" : "finish"}}, longest(job) + kAnswerSeconds));
    for (const auto& other :
         ended.value("results", Json::array()))  // add the partner's errors to this side's
      for (const auto& rail : rails)
        if (rail.there == other.value("label", "") && other.value("error", "") != "")
          for (auto& mine : said)
            if (mine["label"] == rail.here)
              mine["error"] = mine.value("error", "") + " / the partner's side: " + other.value("error", "");
    for (auto& one : early) said.push_back(std::move(one));
    return said;
  }
  Result<Json> receive(const Job& job, std::vector<Rail> rails) {
    TRY_(enough_time(job));
    Runs runs(files_, process_, own_, options_.port);
    const Status started = runs.start(for_rails(job, rails, true), "");
    Json out = Json::array();
    if (started.ok()) take_ended(runs.ended_early(), true, rails, out);
    auto said = started.ok() ? request_partner(to_json(for_rails(job, rails, false), "measure"),
                                               longest(job) + kAnswerSeconds)
                             : Result<Json>(started.error());
    const bool failed = !said.ok() || std::any_of((*said)["results"].begin(), (*said)["results"].end(),
                                                  [](const Json& r) { return r.value("error", "") != ""; });
    if (failed) runs.give_up();
    runs.finish();
    if (!said.ok()) return said.error();
    for (auto& one : (*said)["results"]) out.push_back(std::move(one));
    return out;
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
  std::vector<AnnouncedPort> others_ = {};
  std::vector<RailResult> results_ = {};
};

// Answers of another shape than this program's own end the measurement, and not the program.
Result<std::vector<RailResult>> measured_with(Pair& pair) {
  try {
    return pair.measure();
  } catch (const Json::exception& e) {
    return fail(Code::invalid, std::string("the partner sent an invalid answer: ") + e.what());
  }
}

// What the port negotiated and could do, on which path.
void describe_port(const RailResult& one, const RdmaPort& port, const Ability& own, Json& detail) {
  detail["rate_gbps"] = port.rate_gbps;
  detail["rate_text"] = port.rate_text;
  detail["link_layer"] = to_string(port.layer);
  if (!port.place.empty()) detail["place"] = port.place;
  if (const auto known = own.ports.find(port.label); known != own.ports.end()) {
    const auto& [ability, model] = known->second;
    if (!model.empty()) detail["model"] = model;
    if (ability.gbps > 0) detail["ability_gbps"] = ability.gbps, detail["ability_source"] = ability.source;
    if (ability.partner_gbps > 0) detail["partner_gbps"] = ability.partner_gbps;
  }
  if (const auto share = own.pcie.find(port.pci); share != own.pcie.end()) {
    detail["pcie_gbps"] = rounded(share->second.gbps);
    detail["pcie"] =
        fmt::format("{}{}", share->second.link,
                    share->second.ports > 1 ? fmt::format(", shared by {} ports", share->second.ports) : "");
  }
  if (one.rate_there > 0) detail["peer_rate_gbps"] = one.rate_there;
  if (one.pcie_there > 0) detail["peer_pcie_gbps"] = rounded(one.pcie_there);
  for (const Gid& gid : port.gids)
    if (gid.index == one.gid_here) {
      detail["gid_index"] = gid.index;
      detail["gid"] = gid.address;
      if (own.traffic_class >= 0) detail["traffic_class"] = own.traffic_class;
    }
}

Measurement link_measurement(const RailResult& one, const Ability& own, const RdmaOptions& options) {
  Measurement out;
  out.check = options.gpu_memory ? "rdma-gpu-memory" : "rdma-link";
  out.outcome = one.outcome;
  out.error = one.error;
  out.metrics = one.metrics;
  out.detail = {{"to", options.to},
                {"device", one.rail.here},
                {"peer_device", one.rail.there},
                {"rail", one.rail.number},
                {"seconds", options.seconds},
                {"verified", "every work request completed without an error; perftest compares no data"}};
  if (!one.at_fault.empty()) out.detail["at_fault"] = one.at_fault;
  if (one.inconclusive) out.detail["inconclusive"] = true;
  if (!one.not_looked_at.empty()) out.detail["not_looked_at"] = one.not_looked_at;
  if (one.mtu > 0) out.detail["mtu"] = one.mtu;
  if (!one.perftest.empty()) out.detail["perftest"] = one.perftest;
  if (one.repeated > 0) out.detail["repeated"] = one.repeated;
  if (const RdmaPort* port = own.rail(one.rail.here)) describe_port(one, *port, own, out.detail);
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
  const Ability own = look(files, process, options.perftest);
  out.detail = {{"to", options.to}, {"inactive", own.inactive}};
  // A problem of this node alone says nothing about a link, so it is not `failed`.
  out.outcome = Outcome::unavailable;
  if (own.rails.empty())
    out.error = own.inactive.empty()
                    ? std::string(kNoDevice)
                    : fmt::format("this node has no active RDMA port: {}", dump_json(own.inactive));
  else if (std::none_of(own.rails.begin(), own.rails.end(),
                        [](const RdmaPort& port) { return port.reliable(); }))
    out.detail["not_looked_at"] = out.error = rail_problem(own.rails.front());
  else if (!own.perftest.problem.empty())
    out.error = own.perftest.problem;
  else if (options.gpu_memory)
    out.error = own.gpu.problem;
  if (!out.error.empty()) return out;
  out.outcome = Outcome::measured;
  Pair pair(files, process, options, own);
  auto rails = measured_with(pair);
  std::vector<RailResult> results;
  if (rails.ok())
    results = std::move(*rails);
  else
    for (size_t i = 0; i < own.rails.size(); ++i) {
      const RdmaPort& port = own.rails[i];
      results.push_back({.rail = port.rail < 0 ? Rail{i, port.label, "", port.place}
                                               : Rail{static_cast<size_t>(port.rail), port.label, ""}});
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
    out.parts.push_back({{"subject", ""}, {"like", one.rail.title()}, {"result", to_json(part)}});
  }
  return out;
}

}  // namespace muster::kernels
