#include "tests/sim/node.h"

#include <algorithm>

namespace muster::sim {

namespace {
constexpr int kSlices = 12;
constexpr DurationMs kLinkDeadline = 40 * kSecond;
}  // namespace

// Carries out orders on the simulated machine. Dies with its host.
class SimRunner : public WorkRunner {
 public:
  SimRunner(SimNode& node, std::shared_ptr<bool> alive) : node_(node), alive_(std::move(alive)) {}

  void run(const wire::WorkOrder& order, OrderPart part, Emit emit, Done done) override {
    order_ = order;
    emit_ = std::move(emit);
    done_ = std::move(done);
    cancelled_ = false;
    next_ = 0;
    steps_ = Json::array();
    node_.world_.trace(node_.name_, "run " + order.id);
    const auto& kept = node_.system_ == SimNode::System::ram ? node_.ram_journal_ : node_.disk_journal_;
    using wire::OrderKind;
    if (order.kind == OrderKind::boot_slot && part != OrderPart::work) return leave_or_stay(part);
    const bool stops = order.kind == OrderKind::power_off;
    const bool leaves = order.kind == OrderKind::boot_disk || order.kind == OrderKind::reboot || stops;
    const bool ended = !leaves && std::any_of(kept.begin(), kept.end(), [&](const OrderRecord& r) {
      return r.finished && r.order == order.id;
    });
    node_.checkers_.on_order_run(node_.name_, order, ended);
    if (leaves) node_.checkers_.on_order_end(node_.name_, order.id, true);
    later(1000, 3000, [this, leaves, stops] {
      if (stops)
        node_.world_.reactor.after(0, [node = &node_] { node->shut_down(); });
      else if (leaves)
        node_.world_.reactor.after(0, [node = &node_] { node->reset(); });
      else if (order_.kind == wire::OrderKind::image)
        image_slice();
      else if (order_.kind == wire::OrderKind::inventory)
        end(Ok{}, {{"facts", to_json(node_.facts())}});
      else if (order_.kind == OrderKind::write_slot)
        slot_slice();
      else if (order_.kind == OrderKind::boot_slot)
        get_ready();
      else
        step();
    });
  }
  void cancel() override { cancelled_ = true; }

 private:
  void later(DurationMs from, DurationMs to, std::function<void()> then) {
    node_.world_.reactor.after(node_.world_.random.range(from, to), [alive = alive_, then] {
      if (*alive) then();
    });
  }
  void end(Status status, Json result) {
    node_.world_.trace(node_.name_,
                       "end " + order_.id + (status.ok() ? " ok" : " " + status.error().message));
    node_.checkers_.on_order_end(node_.name_, order_.id, status.ok());
    done_({std::move(status), std::move(result)});
  }

  void image_slice() {
    const auto job = wire::image_job_from_json(order_.params);
    if (!job.ok()) return end(job.error(), Json::object());
    if (cancelled_) return end(fail(Code::cancelled, "stopped"), Json::object());
    if (next_++ == 0) {
      const std::string content = node_.content();
      const bool resumes = !node_.writing_.empty() && node_.approved_ == job->content_hash;
      const bool allowed =
          content == job->content_hash || resumes || (job->allow_ours && node_.ours_) || node_.ours_;
      if (job->disk.serial != node_.facts().disks[0].serial || !allowed)
        return end(fail(Code::conflict, "the disk changed"), Json::object());
      if (!resumes) {
        node_.checkers_.on_disk_write(node_.name_, job->disk.serial,
                                      node_.ours_ ? job->content_hash : content);
        node_.slices_ = 0;
      }
      if (node_.writing_ != job->digest) node_.slices_ = 0;
      node_.writing_ = job->digest;
      node_.approved_ = job->content_hash;
      node_.ours_ = true;
    }
    if (++node_.slices_ >= kSlices) {
      node_.image_ = job->digest;
      node_.writing_.clear();
      node_.slices_ = 0;
      node_.applied_.clear();
      return end(Ok{}, {{"digest", job->digest}});
    }
    emit_("progress", {{"done", node_.slices_}, {"total", kSlices}, {"unit", "slices"}, {"text", "image"}});
    later(2000, 8000, [this] { image_slice(); });
  }

  // ---- two slots ----

  void slot_slice() {
    const auto job = wire::slot_job_from_json(order_.params);
    if (!job.ok()) return end(job.error(), Json::object());
    if (cancelled_) return end(fail(Code::cancelled, "stopped"), Json::object());
    const int slot = job->slot == "b";
    if (next_++ == 0) {
      if (slot == node_.running_ || slot == node_.standing_)
        return end(fail(Code::denied, "that slot is in use"), Json::object());
      if (node_.running_ != node_.standing_)
        return end(fail(Code::denied, "what runs is not committed"), Json::object());
      node_.slots_[slot].clear();
      node_.applied_in_[slot].clear();
      node_.slices_ = 0;
    }
    if (++node_.slices_ < kSlices) return later(2000, 8000, [this] { slot_slice(); });
    node_.slots_[slot] = job->image.digest;
    end(Ok{}, {{"digest", job->image.digest}});
  }
  void get_ready() {
    const auto job = wire::boot_slot_job_from_json(order_.params);
    if (!job.ok()) return end(job.error(), Json::object());
    const int slot = job->slot == "b";
    if (slot == node_.running_ || node_.running_ != node_.standing_ || node_.slots_[slot] != job->digest)
      return end(fail(Code::conflict, "that slot cannot be tried"), Json::object());
    if (!order_.preconditions.is_null() && node_.world_.chance(node_.world_.options.resumed))
      return end(fail(Code::conflict, "it has jobs"), {{"precondition", "old/pause"}});
    node_.once_ = slot;
    end(Ok{}, Json::object());
  }
  void leave_or_stay(OrderPart part) {
    if (part == OrderPart::leave)
      return later(1000, 3000, [this] { node_.world_.reactor.after(0, [node = &node_] { node->reset(); }); });
    node_.once_ = -1;
    done_({Ok{}, Json::object()});
  }
  // False: the order ended.
  bool step_in_slot(const std::string& id) {
    node_.checkers_.on_step_in_slot(node_.name_, id, node_.slot_word());
    if (fate_of(node_.image_) == "broken" && id.find("hostname") != std::string::npos) {
      end(fail(Code::denied, id + ": its driver does not load"), {{"steps", steps_}});
      return false;
    }
    if (id.find("slot/commit") != std::string::npos) node_.standing_ = node_.running_;
    return true;
  }

  void step() {
    const Json& all = order_.params["steps"];
    if (cancelled_) return end(fail(Code::cancelled, "stopped"), {{"steps", steps_}});
    if (next_ >= all.size()) {
      const bool fails =
          order_.kind == wire::OrderKind::check && (node_.bad || fate_of(node_.image_) == "slow");
      return end(fails ? Status(fail(Code::failed, "too slow")) : Status(Ok{}), {{"steps", steps_}});
    }
    const std::string id = all[next_++]["id"].get<std::string>();
    node_.checkers_.on_step(node_.name_, id);
    if (node_.world_.options.in_place && !step_in_slot(id)) return;
    if (const std::string host = all[next_ - 1]["params"].value("host", ""); !host.empty())
      return probe(id, host);
    const bool holds = node_.applied_.count(id) > 0;
    if (!holds && node_.world_.chance(node_.world_.options.step_fails))
      return end(fail(Code::failed, id + ": did not work"), {{"steps", steps_}});
    if (order_.kind == wire::OrderKind::steps) node_.applied_.insert(id);
    went(id, holds ? "already" : "applied");
  }
  void went(const std::string& id, const std::string& status) {
    Json data = {{"step", id}, {"name", id}, {"status", status}, {"message", ""}, {"ms", 1}};
    emit_("step", data);
    steps_.push_back(data);
    if (status != "failed") later(100, 4000, [this] { step(); });
  }
  // Looks for another node over the network, for a while.
  void probe(const std::string& id, const std::string& host) {
    node_.world_.answers(host, true);
    later(1000, 10000, [this, id, host] {
      const bool answered = !node_.cut() && node_.world_.answers(host, false);
      if (!answered && node_.cut())
        node_.world_.blind.insert(node_.name_);
      else
        node_.world_.blind.erase(node_.name_);
      went(id, answered ? "already" : "failed");
      if (!answered)
        end(fail(Code::failed, fmt::format("{}: {} does not answer, asked from {}.", id, host, node_.name_)),
            {{"steps", steps_}});
      else if (order_.kind == wire::OrderKind::steps)
        node_.applied_.insert(id);
    });
  }

  SimNode& node_;
  std::shared_ptr<bool> alive_;
  wire::WorkOrder order_;
  Emit emit_;
  Done done_;
  bool cancelled_ = false;
  size_t next_ = 0;
  Json steps_ = Json::array();
};

namespace {

class SimJournal : public AgentJournal {
 public:
  SimJournal(World& world, std::vector<OrderRecord>& kept, std::shared_ptr<bool> alive)
      : world_(world), kept_(kept), alive_(std::move(alive)) {}
  Result<std::vector<OrderRecord>> load() override {
    if (world_.options.plant == "again") return std::vector<OrderRecord>{};
    return kept_;
  }
  void append(const OrderRecord& record, Done done) override {
    world_.reactor.after(world_.random.range(1, 20), [this, alive = alive_, record, done] {
      if (!*alive) return;
      kept_.push_back(record);
      done(Ok{});
    });
  }

 private:
  World& world_;
  std::vector<OrderRecord>& kept_;
  std::shared_ptr<bool> alive_;
};

// A call answers once, at the latest after its deadline; what comes later is lost.
template <typename Reply>
std::function<void(Reply)> once(World& world, const std::shared_ptr<bool>& alive,
                                std::function<void(Reply)> done) {
  auto open = std::make_shared<bool>(true);
  auto answer = [alive, open, done](Reply reply) {
    if (*alive && std::exchange(*open, false)) done(std::move(reply));
  };
  world.reactor.after(kLinkDeadline, [answer] { answer(fail(Code::timeout, "no answer")); });
  return answer;
}

class SimLink : public ControllerLink {
 public:
  SimLink(World& world, Uplink& uplink, std::string node, const AgentIdentity& who, const TimeMs& cut_until,
          std::shared_ptr<bool> alive)
      : world_(world),
        uplink_(uplink),
        node_(std::move(node)),
        present_{who.boot_id, who.mode, Digest(who.image_digest), {}, who.slot},
        on_trial_(who.on_trial),
        cut_until_(cut_until),
        alive_(std::move(alive)) {}

  void poll(const std::vector<std::string>& have, Orders done) override {
    const auto answer = once<Result<wire::PollReply>>(world_, alive_, done);
    if (cut()) return;
    present_.trial = on_trial_ && on_trial_();
    world_.send([this, alive = alive_, have, answer, world = &world_, uplink = &uplink_, node = node_,
                 present = present_] {
      if (!uplink->up())
        return (void)world->reactor.after(5, [answer] { answer(fail(Code::unavailable, "refused")); });
      uplink->request(node, have, present, [this, alive, answer, world](Result<wire::PollReply> reply) {
        if (*alive && !cut()) world->send([answer, reply] { answer(reply); });
      });
    });
  }
  void post(const wire::EventBatch& batch, Acked done) override {
    const auto answer = once<Result<uint64_t>>(world_, alive_, done);
    if (cut()) return;
    world_.send([this, alive = alive_, batch, answer, world = &world_, uplink = &uplink_, node = node_] {
      if (!uplink->up())
        return (void)world->reactor.after(5, [answer] { answer(fail(Code::unavailable, "refused")); });
      uplink->take(node, batch, [this, alive, answer, world](Result<uint64_t> ack) {
        if (*alive && !cut()) world->send([answer, ack] { answer(ack); });
      });
    });
  }

 private:
  bool cut() const { return world_.now() < cut_until_; }
  World& world_;
  Uplink& uplink_;
  std::string node_;
  Presence present_;
  std::function<bool()> on_trial_;
  const TimeMs& cut_until_;
  std::shared_ptr<bool> alive_;
};

AgentIdentity identity_of(wire::Mode mode, const std::string& boot, uint64_t number, const std::string& image,
                          const std::string& slot) {
  AgentIdentity id;
  id.mode = mode;
  id.boot_id = boot;
  id.incarnation = fmt::format("{}-{}", boot, number);
  id.image_digest = mode == wire::Mode::ram ? "" : image;
  id.slot = slot;
  id.jitter_seed = number + std::hash<std::string>()(boot) % 1000;
  return id;
}

}  // namespace

struct SimNode::Host {
  Host(SimNode& node, std::vector<OrderRecord>& kept, AgentIdentity identity)
      : link(node.world_, node.uplink_, node.name_, identity, node.cut_until_, alive),
        journal(node.world_, kept, alive),
        runner(node, alive),
        agent(node.world_.reactor, link, journal, runner, std::move(identity)) {}
  ~Host() { *alive = false; }
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  SimLink link;
  SimJournal journal;
  SimRunner runner;
  Agent agent;
};

SimNode::SimNode(World& world, Checkers& checkers, Uplink& uplink, std::string name)
    : world_(world), checkers_(checkers), uplink_(uplink), name_(std::move(name)) {}
SimNode::~SimNode() = default;

std::string SimNode::content() const {
  if (ours_) return "sha256:ours-" + name_;
  return "sha256:blank-" + name_;
}

HardwareFacts SimNode::facts() const {
  HardwareFacts f;
  f.system.uuid = "uuid-" + name_;
  DiskFacts os;
  os.serial = "OS-" + name_;
  os.model = "SIM OS";
  os.size_bytes = 8ull << 30;
  os.transport = "nvme";
  os.blank = !ours_;
  os.content = ours_ ? "muster" : "blank";
  os.content_hash = content();
  if (ours_ && !image_.empty()) {
    os.muster_cluster = "sim";
    os.muster_authority = "sha256:sim";
    os.muster_node = name_;
    for (const char* label : {"muster-esp", "muster-root-a", "muster-root-b", "muster-state"}) {
      PartitionFacts p;
      p.label = label;
      os.partitions.push_back(p);
    }
  }
  DiskFacts data = os;
  data.muster_cluster = data.muster_node = data.muster_authority = "";
  data.serial = "DATA-" + name_;
  data.model = "SIM DATA";
  data.size_bytes = 2ull << 30;
  data.partitions.clear();
  data.blank = true;
  data.content = "blank";
  data.content_hash = "sha256:data-" + name_;
  f.disks = {os, data};
  return f;
}

// ---- BMC ----

void SimNode::netboot(std::function<void(Status)> done) {
  const Options& o = world_.options;
  const DurationMs takes = world_.random.range(500, 8000);
  const auto reply = [this, done](DurationMs after, Status status) {
    world_.reactor.after(after, [done, status] { done(status); });
  };
  if (world_.chance(o.bmc_busy)) return reply(takes, fail(Code::unavailable, "503 service unavailable"));
  const bool idle = world_.chance(o.bmc_idle);      // accepts and does nothing
  const bool silent = world_.chance(o.bmc_silent);  // does it, or not, and never says
  if (!idle && !(silent && world_.random.chance(0.5)))
    world_.reactor.after(takes, [this] { power_cycle(true); });
  if (silent) return reply(60 * kSecond, fail(Code::timeout, "no answer from the BMC"));
  reply(takes + 100, Ok{});
}

void SimNode::power_on(std::function<void(Status)> done) {
  const Options& o = world_.options;
  const DurationMs takes = world_.random.range(500, 4000);
  const auto reply = [this, done](DurationMs after, Status status) {
    world_.reactor.after(after, [done, status] { done(status); });
  };
  if (world_.chance(o.bmc_busy)) return reply(takes, fail(Code::unavailable, "503 service unavailable"));
  world_.reactor.after(takes, [this] {
    if (powered_) return;
    world_.trace(name_, "power on");
    powered_ = true;
    boot();
  });
  if (world_.chance(o.bmc_silent)) return reply(60 * kSecond, fail(Code::timeout, "no answer from the BMC"));
  reply(takes + 100, Ok{});
}

void SimNode::power_state(std::function<void(Result<PowerState>)> done) {
  const Options& o = world_.options;
  Result<PowerState> answer = powered_ ? PowerState::on : PowerState::off;
  if (world_.chance(o.bmc_silent))
    answer = fail(Code::timeout, "no answer from the BMC");
  else if (world_.chance(o.bmc_lies))
    answer = world_.random.chance(0.5) ? PowerState::unknown : PowerState::on;
  world_.reactor.after(world_.random.range(100, 3000), [done, answer] { done(answer); });
}

void SimNode::power_cycle(bool network) {
  world_.trace(name_, "power cycle");
  stop();
  powered_ = true;
  network_once_ = network;
  boot();
}

void SimNode::stop() {
  host_.reset();
  system_ = System::none;
  ram_journal_.clear();
  checkers_.node_stopped(name_);
}

void SimNode::lose_power() {
  world_.trace(name_, "power lost");
  stop();
  powered_ = false;
}

// In order, unless something in it hangs.
void SimNode::shut_down() {
  world_.trace(name_, "shutting down");
  stop();
  if (world_.chance(world_.options.stop_hangs)) return;
  world_.reactor.after(world_.random.range(1, 60) * kSecond, [this, boot = boot_id_] {
    if (boot == boot_id_ && powered_) lose_power();
  });
}

void SimNode::reset() {
  if (!powered_) return;
  world_.trace(name_, "reset");
  stop();
  boot();
}

void SimNode::crash_agent() {
  if (!host_) return;
  world_.trace(name_, "agent crashed");
  host_.reset();
  checkers_.node_stopped(name_);
  world_.reactor.after(2 * kSecond, [this, boot = boot_id_] {
    if (boot == boot_id_ && !host_ && (system_ == System::ram || system_ == System::installed)) start_agent();
  });
}

void SimNode::boot() {
  system_ = System::booting;
  boot_id_ = fmt::format("{}-boot{}", name_, ++boots_);
  if (dead) return;
  world_.reactor.after(world_.random.range(10, 60) * kSecond, [this, boot = boot_id_] {
    if (boot != boot_id_ || system_ != System::booting || !powered_) return;
    if (world_.options.in_place) return start_slot();
    const bool network = std::exchange(network_once_, false) || image_.empty();
    if (network && uplink_.armed(name_)) return start_system(System::ram);
    if (!image_.empty()) return start_system(System::installed);
    reset();  // nothing to boot: the firmware tries again
  });
}

void SimNode::start_system(System system) {
  system_ = system;
  world_.trace(name_, system == System::ram ? "RAM system" : "installed system");
  start_agent();
}

void SimNode::start_agent() {
  const bool ram = system_ == System::ram;
  AgentIdentity identity =
      identity_of(ram ? wire::Mode::ram : wire::Mode::installed, boot_id_, ++agents_, image_, slot_word());
  identity.on_trial = [this] { return !slot_word().empty() && running_ != standing_; };
  host_ = std::make_unique<Host>(*this, ram ? ram_journal_ : disk_journal_, std::move(identity));
  if (auto started = host_->agent.start(); !started.ok()) world_.violated("agent", started.error().message);
}

}  // namespace muster::sim
