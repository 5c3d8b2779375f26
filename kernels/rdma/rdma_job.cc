#include "kernels/rdma/rdma_job.h"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/json_dump.h"
#include "base/record.h"
#include "base/utf8.h"
#include "host/rails.h"
#include "kernels/common/kernels.h"
#include "sys/abstract_address.h"
#include "sys/locked_memory.h"

namespace muster {
MUSTER_RECORD(Gid, lenient, index, address)
}

namespace muster::kernels::rdma {

MUSTER_RECORD(AnnouncedPort, lenient, label, opt(problem), sparse(place), sparse(unmeasurable),
              sparse(number), sparse(rate_gbps), sparse(pcie_gbps), sparse(gids))

namespace {

constexpr double kListenSeconds = 20;

std::string tail_of(const std::string& text) { return end_of_output(text, 600); }

// Ends the perftest server on this port by a connection that sends nothing. If its partner never came, it
// would wait until its timeout. False: nothing listens.
bool ended_one(uint16_t port) {
  const auto fd = connect_until({"127.0.0.1", port, "", 0});
  if (fd.ok()) ::close(*fd);
  return fd.ok();
}

constexpr int kMostSeconds = 3600, kMostIterations = 1000000;

struct JobText {
  bool latency = false;
  Job job = {};
};
MUSTER_RECORD(JobText, lenient, latency, flat(job))

}  // namespace

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

Status Runs::start(const Job& job, const std::string& partner) {
  for (const auto& item : job.items) {
    const RdmaPort* on = ability_.rail(item.label);
    if (!on) return fail(Code::not_found, fmt::format("this node has no active port {}", item.label));
    const uint16_t port = static_cast<uint16_t>(port_ + 1 + item.rail);
    const int gpu = job.gpu ? nearest_gpu(files_, ability_.gpu, *on, item.rail) : -1;
    const bool known =
        std::any_of(on->gids.begin(), on->gids.end(), [&](const Gid& gid) { return gid.index == item.gid; });
    runs_.push_back({.test = job.test,
                     .program = ability_.perftest.words(job.test, job.carried),
                     .on = *on,
                     .port = port,
                     .partner = partner,
                     .seconds = job.seconds,
                     .iterations = job.iterations,
                     .gpu = gpu,
                     .dma_buf = ability_.gpu.dma_buf,
                     .tied = ability_.setpriv,
                     .gid = known              ? item.gid
                            : on->gids.empty() ? -1
                                               : on->gids.front().index,
                     .traffic_class = ability_.traffic_class});
  }
  if (partner.empty()) TRY_(wait_until_free());
  results_.resize(runs_.size());
  ended_ = std::vector<std::atomic<bool>>(runs_.size());
  early_.resize(runs_.size());
  for (size_t i = 0; i < runs_.size(); ++i)
    threads_.emplace_back([this, i] {
      results_[i] = result_of(runs_[i]);
      ended_[i] = true;
    });
  return partner.empty() ? wait_until_listening() : Status(Ok{});
}

Json Runs::finish() {
  join();
  Json out = Json::array();
  for (auto& one : results_) out.push_back(std::move(one));
  return out;
}

void Runs::give_up() {
  for (const auto& run : runs_) (void)ended_one(run.port);
}

// Ends any perftest that was left running: it would be mistaken for the one to be started, which would find
// its port in use. This node is reserved, so no other work needs the old one.
Status Runs::wait_until_free() const {
  const double until = seconds_now() + kListenSeconds;
  for (const auto& run : runs_)
    while (ended_one(run.port)) {
      if (seconds_now() > until)
        return fail(Code::failed, fmt::format("another program still listens on port {}", run.port));
      pause(kPoll);
    }
  return Ok{};
}

void Runs::join() {
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

Json Runs::result_of(const PerfRun& run) {
  Json out = {{"label", run.on.label}, {"error", ""}};
  const auto output = process_.run(perftest_command(run));
  if (!output.ok()) {
    out["error"] = output.error().message;
    return out;
  }
  const std::string said = output->err + output->out;
  if (!output->ok()) {
    out["error"] = fmt::format("perftest exited with {}: {}", output->exit_code, tail_of(said));
    return out;
  }
  if (run.partner.empty()) return out;
  const auto parsed = parse_perftest(output->out, run.test);
  if (!parsed.ok())
    out.update(
        {{"no_figure", true}, {"error", fmt::format("{}: {}", parsed.error().message, tail_of(said))}});
  else
    out.update({{"gbps", parsed->gbps},
                {"typical_us", parsed->typical_us},
                {"p99_us", parsed->p99_us},
                {"mtu", parsed->mtu}});
  return out;
}

bool Runs::listens(uint16_t port) const {
  const std::string wanted = fmt::format(":{:04X} ", port);
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string text = files_.read(table).value_or("");
    for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
      // If this is a local address, the remote address and the state follow: 0A is LISTEN.
      const size_t space = text.find(' ', at + wanted.size());
      if (space != std::string::npos && text.compare(space, 4, " 0A ") == 0) return true;
    }
  }
  return false;
}

// One that ends at once, or does not listen in time, concerns its own rail only.
Status Runs::wait_until_listening() {
  const double until = seconds_now() + kListenSeconds;
  for (size_t i = 0; i < runs_.size(); ++i)
    while (!early_[i]) {
      const bool ended = ended_[i];  // looked at first: what listens and ends between the two was there
      if (listens(runs_[i].port)) break;
      early_[i] = ended || seconds_now() > until;
      if (!early_[i]) pause(kPoll);
    }
  if (runs_.empty() || std::count(early_.begin(), early_.end(), false) > 0) return Ok{};
  return fail(Code::failed, ended_early().value(runs_.front().on.label, ""));
}

Json Runs::ended_early() const {
  Json out = Json::object();
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (!early_[i]) continue;
    std::string error = ended_[i] ? results_[i]["error"].get<std::string>() : "";
    if (error.empty()) error = fmt::format("perftest does not listen on port {}", runs_[i].port);
    out[runs_[i].on.label] = std::move(error);
  }
  return out;
}

MUSTER_RECORD(Job::Item, label, rail, sparse(gid))
MUSTER_RECORD(Job, seconds, iterations, gpu, sparse(carried), items)

// Each root of a test is a node of its own.
NodeLock::NodeLock(const Files& files) : name_("muster-rdma" + files.real("/")) {}

Result<bool> NodeLock::take() {
  if (fd_ >= 0) return true;
  const AbstractAddress address(name_);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::bind(fd, address.get(), address.size()) == 0) {
    fd_ = fd;
    return true;
  }
  const int number = errno;
  if (fd >= 0) ::close(fd);
  if (number == EADDRINUSE) return false;
  return fail(Code::unavailable,
              std::string("the lock of RDMA measurements cannot be created: ") + strerror(number));
}

void NodeLock::release() {
  if (const int fd = std::exchange(fd_, -1); fd >= 0) ::close(fd);
}

Ability look(const Files& files, Process& process, const CarriedPerftest& carried) {
  Ability out;
  for (auto& port : rail_ports(files)) {
    if (port.active)
      out.rails.push_back(std::move(port));
    else
      out.inactive.push_back(
          fmt::format("{} is {}", port.label, port.state.empty() ? "in an unknown state" : port.state));
  }
  if (const auto record = read_networks_record(files); record.ok()) {
    for (const auto& rail : record->rails()) out.declared.push_back(rail.rail);
    out.traffic_class = record->traffic_class;
  }
  std::vector<std::string> functions;
  for (const auto& port : out.rails) {
    if (port.pci.empty()) continue;
    functions.push_back(port.pci);
    out.ports[port.label] = {port_ability(files, port.interface, port.device_folder()),
                             adapter_model(files, port.device_folder())};
  }
  out.pcie = pcie_shares(files, functions);
  out.perftest = find_perftest(process, carried);
  const std::string locked = too_little_locked(locked_memory(files));
  if (out.perftest.problem.empty() && !locked.empty())
    out.perftest.problem =
        locked +
        ", which is too little for RDMA: raise memlock in /etc/security/limits.conf, or measure as root";
  out.gpu = gpu_direct(files, out.perftest.help);
  out.setpriv = files.exists("/usr/bin/setpriv");
  return out;
}

std::string rail_problem(const RdmaPort& port) {
  if (!port.reliable())
    return fmt::format("{} has no reliable connections (its link layer is {}, as of Amazon's EFA)",
                       port.label, to_string(port.layer));
  if (!port.lacks_address()) return "";
  return port.address.empty() ? fmt::format("{} has no RoCE v2 GID with an address of a network", port.label)
                              : fmt::format("{} has no RoCE v2 GID for {}", port.label, port.address);
}

Json to_json(const Ability& ability) {
  Json rails = Json::array();
  for (const auto& port : ability.rails) {
    const auto share = ability.pcie.find(port.pci);
    rails.push_back(record_json(
        AnnouncedPort{port.label, rail_problem(port), port.place, !port.reliable(), port.rail, port.rate_gbps,
                      share == ability.pcie.end() ? 0 : share->second.gbps, port.gids}));
  }
  return {{"rails", rails},
          {"inactive", ability.inactive},
          {"perftest", kernels::to_json(ability.perftest)},
          {"perftest_problem", ability.perftest.problem},
          {"gpu_problem", ability.gpu.problem}};
}

std::vector<AnnouncedPort> announced_ports(const Json& hello) {
  std::vector<AnnouncedPort> out;
  for (const auto& rail : hello.value("rails", Json::array())) {
    auto one = read_record<AnnouncedPort>(rail, "rails");
    if (!one.ok() || out.size() == kMostRails) continue;
    one->number = std::clamp(one->number, -1, static_cast<int>(kMostRails) - 1);
    out.push_back(std::move(*one));
  }
  return out;
}

std::vector<Rail> pair_ports(const Ability& own, const std::vector<AnnouncedPort>& others) {
  std::map<int, std::string> here, there;
  std::vector<RailEnd> ends, other_ends;
  std::vector<std::string> labels, other_labels;
  for (const int number : own.declared) here[number] = "";
  for (const auto& port : own.rails) {
    here[port.rail] = port.label;
    ends.push_back({port.label, port.place});
    labels.push_back(port.label);
  }
  for (const auto& rail : others) {
    there[rail.number] = rail.label;
    other_ends.push_back({rail.label, rail.place});
    other_labels.push_back(rail.label);
  }
  if (!here.count(-1) && !there.count(-1) && !here.empty() && !there.empty())
    return pair_declared(here, there);
  auto out = pair_places(ends, other_ends);
  return out.empty() ? pair_rails(labels, other_labels) : out;
}

double longest(const Job& job) {
  return static_cast<double>(
             perftest_command({.test = job.test, .seconds = job.seconds, .iterations = job.iterations})
                 .deadline) /
         kSecond;
}

Json to_json(const Job& job, const char* op) {
  Json out = record_json(job);
  out.update({{"op", op}, {"latency", job.test == PerfTest::latency}});
  return out;
}

Result<Job> job_from_json(const Json& json) {
  TRY(auto read, read_record<JobText>(json, "job"));
  Job& job = read.job;
  job.test = read.latency ? PerfTest::latency : PerfTest::bandwidth;
  if (job.seconds < 1 || job.seconds > kMostSeconds || job.iterations < 10 ||
      job.iterations > kMostIterations || job.items.size() > kMostRails)
    return fail(Code::invalid, "a value in the job is out of range");
  for (const Job::Item& item : job.items)
    if (item.rail >= kMostRails) return fail(Code::invalid, "a rail number is out of range");
  return std::move(job);
}

Status say(Connection& link, uint32_t type, const Json& json) {
  const std::string text = dump_json(json);
  return link.send(type, 0, text.data(), std::min(text.size(), kLargestFrame));
}
Result<Json> receive_json(Connection& link, uint32_t type) {
  TRY(const Header header, link.receive(type));
  return parse_json({link.body(), header.length});
}
Result<Json> request(Connection& link, const Json& question) {
  TRY_(say(link, question_type, question));
  TRY(Json out, receive_json(link, answer));
  if (out.contains("error") && out["error"].is_string())
    return fail(Code::failed, "the partner: " + out["error"].get<std::string>());
  return out;
}

}  // namespace muster::kernels::rdma
