#include "tests/fakes/fake_hosts.h"

#include <fmt/format.h>

#include <utility>

#include "agent/core/agent.h"
#include "base/digest.h"
#include "base/json_dump.h"

namespace muster {

class FakeHosts::Wire : public HostWire, public ControllerLink, public AgentJournal, public WorkRunner {
 public:
  Wire(FakeHosts& all, std::string name, HostWireEvents events)
      : all_(all), name_(std::move(name)), events_(std::move(events)), host_(all.hosts_.at(name_)) {
    all_.open_[name_] = this;
    ++all_.opened_[name_];
    if (host_.refuses && host_.refuses_times-- > 0)
      later([this] { lose(*host_.refuses); });
    else
      later([this] { greet(); });
  }
  ~Wire() override {
    *alive_ = false;
    if (const auto found = all_.open_.find(name_); found != all_.open_.end() && found->second == this)
      all_.open_.erase(found);
  }
  void leave(std::function<void()> done) override {
    agent_.reset();
    silent_ = true;
    ++all_.left_;
    all_.reactor_.post([done = std::move(done)] { done(); });
  }
  void lose(Error error) {
    if (std::exchange(silent_, true)) return;
    agent_.reset();
    events_.lost(std::move(error));
  }

 private:
  void later(std::function<void()> what) {
    all_.reactor_.post([alive = alive_, what = std::move(what)] {
      if (*alive) what();
    });
  }
  void greet() {
    HostHello hello;
    hello.boot_id = host_.boot;
    hello.incarnation = fmt::format("{}-{}", name_, all_.opened_[name_]);
    hello.machine = "x86_64";
    hello.hostname = host_.hostname;
    hello.ssh_server = host_.ssh_server;
    hello.addresses = host_.addresses;
    hello.root = host_.how != "user";
    hello.how = host_.how;
    hello.why_user = host_.why_user;
    events_.hello(hello);
    Json busy = Json::array();
    if (!host_.busy.empty()) busy.push_back({{"kind", "job"}, {"text", host_.busy}});
    events_.looked({to_json(host_.facts), {{"busy", busy}}});
    if (silent_) return;
    AgentIdentity identity;
    identity.mode = wire::Mode::adopted;
    identity.boot_id = host_.boot;
    identity.incarnation = hello.incarnation;
    AgentOptions options;
    options.flush_delay = 1;
    options.idle_poll_pause = 1;
    agent_ = std::make_unique<Agent>(all_.reactor_, *this, *this, *this, identity, options);
    (void)agent_->start();
  }

  // ControllerLink
  void poll(const std::vector<std::string>& have, Orders done) override {
    later([this, have, done = std::move(done)] {
      if (silent_) return;
      events_.poll({have.begin(), have.end()}, {host_.boot, wire::Mode::adopted},
                   [alive = alive_, done](wire::PollReply reply) {
                     if (*alive) done(std::move(reply));
                   });
    });
  }
  void post(const wire::EventBatch& batch, Acked done) override {
    later([this, batch, done = std::move(done)] {
      if (silent_) return;
      events_.post(batch, [alive = alive_, done](Result<uint64_t> acked) {
        if (*alive) done(std::move(acked));
      });
    });
  }
  // AgentJournal
  Result<std::vector<OrderRecord>> load() override { return std::vector<OrderRecord>{}; }
  void append(const OrderRecord&, AgentJournal::Done done) override {
    later([done = std::move(done)] { done(Ok{}); });
  }
  // WorkRunner
  void run(const wire::WorkOrder& order, OrderPart, Emit emit, WorkRunner::Done done) override {
    done_ = std::move(done);
    later([this, order, emit = std::move(emit)] {
      const int n = ++all_.orders_[name_];
      all_.steps_[name_] += dump_json(order.params.value("steps", Json::array()));
      all_.programs_[name_] += dump_json(order.params.value("programs", Json::array()));
      if (all_.on_order) all_.on_order(name_, n);
      if (silent_ || host_.holds || !done_) return;
      Json steps = Json::array();
      for (const Json& step : order.params.value("steps", Json::array())) {
        Json data = {{"step", step.value("id", "")},
                     {"name", step.value("id", "")},
                     {"status", "measured"},
                     {"message", ""},
                     {"ms", 1},
                     {"result", measured()}};
        emit("step", data);
        steps.push_back(std::move(data));
      }
      end({Ok{}, {{"steps", steps}}});
    });
  }
  void cancel() override {
    later([this] { end({fail(Code::cancelled, "stopped"), Json::object()}); });
  }
  void end(WorkOutcome outcome) {
    if (auto done = std::exchange(done_, nullptr)) done(std::move(outcome));
  }
  Json measured() const {
    return {{"check", host_.check},
            {"outcome", "measured"},
            {"error", ""},
            {"blame", Json::array()},
            {"metrics", {{"lanes_lost", {{"value", host_.lanes_lost}, {"unit", "lanes"}}}}}};
  }

  FakeHosts& all_;
  const std::string name_;
  const HostWireEvents events_;
  FakeHost& host_;
  bool silent_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  WorkRunner::Done done_;
  std::unique_ptr<Agent> agent_;
};

FakeHost& FakeHosts::add(const std::string& name) {
  FakeHost& host = hosts_[name];
  host.boot = "boot-1-of-" + name;
  const std::string hex = sha256(name).substr(7);
  host.facts.system = {"Example", "Server", "S" + hex.substr(0, 8),
                       fmt::format("{}-{}-4{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 3),
                                   hex.substr(15, 3), hex.substr(18, 12))};
  host.facts.cpus = {64, 2, "Processor"};
  host.facts.memory_bytes = uint64_t{256} << 30;
  host.facts.kernel = "6.1.0-25-amd64";
  return host;
}

HostLinks::Open FakeHosts::opener() {
  return [this](const HostWireOptions& options, HostWireEvents events) -> std::unique_ptr<HostWire> {
    return std::make_unique<Wire>(*this, options.host, std::move(events));
  };
}

void FakeHosts::cut(const std::string& name, Error error) {
  if (const auto found = open_.find(name); found != open_.end()) found->second->lose(std::move(error));
}

int FakeHosts::opened(const std::string& name) const {
  const auto found = opened_.find(name);
  return found == opened_.end() ? 0 : found->second;
}

size_t FakeHosts::open_now() const { return open_.size(); }

}  // namespace muster
