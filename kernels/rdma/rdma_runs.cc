#include "kernels/rdma/rdma_runs.h"

#include <unistd.h>

#include <chrono>
#include <fmt/format.h>

#include "base/utf8.h"
#include "kernels/common/kernels.h"

namespace muster::kernels::rdma {
namespace {

constexpr double kListenSeconds = 20;

std::string tail_of(const std::string& text) { return std::string(last_bytes(text, 600)); }

// Ends the perftest server on this port by a connection that sends nothing. If its partner never came, it
// would wait until its timeout. False: nothing listens.
bool ended_one(uint16_t port) {
  const auto fd = connect_until({"127.0.0.1", port, "", 0});
  if (fd.ok()) ::close(*fd);
  return fd.ok();
}

}  // namespace

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

Status Runs::start(const Job& job, const std::string& partner) {
  for (const auto& item : job.items) {
    const RdmaPort* on = ability_.rail(item.label);
    if (!on) return fail(Code::not_found, fmt::format("this node has no active port {}", item.label));
    const uint16_t port = static_cast<uint16_t>(port_ + 1 + item.rail);
    const int gpu = job.gpu ? nearest_gpu(files_, ability_.gpu, *on, item.rail) : -1;
    runs_.push_back({.test = job.test,
                     .on = *on,
                     .port = port,
                     .partner = partner,
                     .seconds = job.seconds,
                     .iterations = job.iterations,
                     .gpu = gpu,
                     .dma_buf = ability_.gpu.dma_buf,
                     .tied = ability_.setpriv});
  }
  if (partner.empty()) TRY_(wait_until_free());
  results_.resize(runs_.size());
  ended_ = std::vector<std::atomic<bool>>(runs_.size());
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

Status Runs::wait_until_listening() {
  const double until = seconds_now() + kListenSeconds;
  for (size_t i = 0; i < runs_.size(); ++i)
    while (!listens(runs_[i].port)) {
      if (ended_[i]) return fail(Code::failed, results_[i]["error"].get<std::string>());
      if (seconds_now() > until)
        return fail(Code::failed, fmt::format("perftest does not listen on port {}", runs_[i].port));
      pause(kPoll);
    }
  return Ok{};
}

}  // namespace muster::kernels::rdma
