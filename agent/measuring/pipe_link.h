// PipeLink: the ControllerLink of an agent that runs over SSH for a limited time (`muster accept --hosts`).
// Its controller is the command at the other end of a pipe; the protocol is in controller/hosts/host_wire.h.
//
// Owned by agent/measuring/measure.cc. Data is passed through functions, so that the owner keeps the pipe
// itself. Every 10 s the link sends a message to show that this agent is alive; a command that sends nothing
// for 60 s counts as gone. Orders that do more than measure are replaced by orders that the agent rejects.
// Thread: the reactor's, except fetch().
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "agent/core/agent.h"
#include "base/alive.h"
#include "base/wire.h"
#include "sys/reactor.h"

namespace muster {

// Returns the order itself if it only measures: `inventory`, and `check` with measuring steps only; otherwise
// an order of an unknown kind, which every agent rejects (agent/work/work_runner.h). The name of that kind
// gives the reason. The command plans no other orders; they are rejected because they could do harm.
wire::WorkOrder only_measuring(wire::WorkOrder order);

class PipeLink : public ControllerLink {
 public:
  struct Ports {
    std::function<void(std::string)> send;  // a line including its newline
    // Called once at the end of the link, never inside a call to it. cancelled: the command ended it;
    // unavailable: the command stopped sending; invalid: it sent an invalid message.
    std::function<void(Error)> ended;
  };
  struct Packed {
    std::string bytes;  // gzip
    size_t size = 0;    // when unpacked
  };
  PipeLink(Reactor& reactor, std::string boot_id, Ports ports);
  ~PipeLink() override;
  PipeLink(const PipeLink&) = delete;
  PipeLink& operator=(const PipeLink&) = delete;

  void poll(const std::vector<std::string>& have, Orders done) override;
  void post(const wire::EventBatch& batch, Acked done) override;

  void send_looked(const Json& facts, const Json& look);
  // Takes bytes received from the command, in pieces of any size.
  void receive(std::string_view bytes);
  // To be called at the end of standard input.
  void closed() { end(fail(Code::unavailable, "the command at the other end is gone")); }

  // Fetches a program by its digest. Blocks; on any thread except the reactor's. not_found: the command does
  // not have it; cancelled; unavailable: the link has ended.
  Result<Packed> fetch(const std::string& sha256, const std::function<bool()>& cancelled);

 private:
  using Answer = std::function<void(Result<Json>)>;
  struct Call {
    Answer answer;
    Reactor::TimerId timer = 0;
  };
  struct Fetching {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Result<Packed>> result;
    void set(Result<Packed> value);
  };
  void call(Json request, DurationMs deadline, Answer answer);
  void begin_fetch(const std::string& sha256, std::shared_ptr<Fetching> fetching);
  void take_line(std::string_view line);
  void take_answer(const Json& json);
  void end(Error why);
  void beat();

  Reactor& reactor_;
  std::string boot_id_;
  Ports ports_;
  std::map<uint64_t, Call> calls_;
  std::map<uint64_t, std::shared_ptr<Fetching>> fetching_;
  uint64_t last_ = 0;  // number of the last call
  std::string line_;   // an incomplete line
  std::shared_ptr<Fetching> incoming_;
  Packed packed_;
  size_t missing_ = 0;
  SteadyMs last_sign_;  // when the command last sent something
  Reactor::TimerId beat_timer_ = 0;
  bool ended_ = false;
  Alive alive_;
};

}  // namespace muster
