#include "controller/power/service/power_service.h"

#include <fmt/format.h>

#include <optional>

#include "base/json.h"
#include "base/json_dump.h"
#include "controller/power/describe/driver_description.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr char kPins[] = "/bmc-pins.json";
constexpr DurationMs kOperatorWaits =
    10 * kSecond;  // until a state that could not be read is not tried again

const PowerDriver* find_driver(const std::string& name) {
  for (const auto& driver : power_drivers())
    if (driver.name == name) return &driver;
  return nullptr;
}

}  // namespace

PowerService::PowerService(RealReactor& reactor, std::string state, Lookup lookup)
    : PowerService(reactor, std::move(state), std::move(lookup), Times()) {}

PowerService::PowerService(RealReactor& reactor, std::string state, Lookup lookup, const Times& times)
    : reactor_(reactor),
      files_(std::move(state)),
      lookup_(std::move(lookup)),
      manual_tasks_(reactor),
      times_(times) {
  wait_by(real_waiter());
  const auto known = parse_json(files_.read(kPins).value_or("{}"));
  if (!known.ok() || !known->is_object()) return;
  for (const auto& [node, pin] : known->items())
    if (pin.is_string()) pins_[node] = pin.get<std::string>();
}

void PowerService::wait_by(const Waiter& waiter) {
  waiter_ = std::make_shared<const Waiter>(waiter);
  logins_ = std::make_shared<Logins>(waiter.now);
}

Switcher PowerService::switcher(const NodeName& node) const {
  const auto where = lookup_(node);
  if (!where.ok()) return {};
  return {description_of(where->driver).by, {where->target.address, where->within}};
}

bool PowerService::request_manual(const NodeName& node, ByHand::Task task, const Done& done) {
  if (switcher(node).by != Switch::person) return false;
  if (const Status may = task == ByHand::Task::on ? Status(Ok{}) : may_switch_(node); may.ok())
    manual_tasks_.request(node, task, done);
  else
    reactor_.post([done, may] { done(may); });
  return true;
}

void PowerService::netboot(const NodeName& node, Done done) {
  if (request_manual(node, ByHand::Task::netboot, done)) return;
  netboots_[node] = submit<Ok>(
      node, [call = times_.call](Power& p) { return boot_from_network(p, call); }, std::move(done), true);
}

void PowerService::forget(const NodeName& node) {
  if (forget_install_) forget_install_(node);
  manual_tasks_.forget(node);
  const auto newest = netboots_.find(node);
  if (newest == netboots_.end()) return;
  if (const auto wanted = newest->second.lock()) *wanted = false;
  netboots_.erase(newest);
}

void PowerService::power_off(const NodeName& node, Done done) {
  if (request_manual(node, ByHand::Task::off, done)) return;
  submit<Ok>(
      node, [call = times_.call](Power& p) { return p.off(call, false); }, std::move(done), true);
}

void PowerService::shut_down(const std::string& node, Done done) {
  submit<Ok>(
      node, [call = times_.call](Power& p) { return p.off(call, true); }, std::move(done), true);
}

void PowerService::power_on(const NodeName& node, Done done) {
  if (request_manual(node, ByHand::Task::on, done)) return;
  submit<Ok>(
      node, [call = times_.call](Power& p) { return p.on(call); }, std::move(done));
}

void PowerService::reinstall(const NodeName& node, const Json& order, Done done) {
  Status may = may_switch_(node);
  if (may.ok() && install_) return install_(node, order, std::move(done));
  if (may.ok()) may = fail(Code::invalid, node + ": its power driver cannot reinstall machines");
  reactor_.post([done = std::move(done), may] { done(may); });
}

Result<std::function<Result<std::unique_ptr<Reinstall>>()>> PowerService::provider(const std::string& node) {
  TRY(const Where where, lookup_(node));
  const PowerDriver* driver = find_driver(where.driver);
  if (!driver || !driver->reinstall)
    return fail(Code::invalid,
                fmt::format("{}: the driver '{}' has no provider that installs systems", node, where.driver));
  PowerTarget target = where.target;
  add_known(node, target);
  if (target.pin_sha256.empty()) {
    // on_pin() is called on a worker. The target is fixed from this point on, so that the machine that was
    // checked is the one that is installed.
    target.on_pin = [this, node](const std::string& pin) {
      reactor_.post([this, node, pin] { learn_pin(node, pin); });
    };
  }
  return std::function<Result<std::unique_ptr<Reinstall>>()>(
      [driver, target] { return driver->reinstall(target); });
}

void PowerService::state(const NodeName& node, std::function<void(Result<PowerState>)> done) {
  submit<PowerState>(
      node, [call = times_.call](Power& p) { return p.state(call); }, std::move(done));
}

void PowerService::state_now(const NodeName& node, std::function<void(Result<PowerState>)> done) {
  submit<PowerState>(
      node, [call = times_.call](Power& p) { return p.state(call); }, std::move(done), false, kOperatorWaits);
}

void PowerService::boot_once_network(const std::string& node, Done done) {
  submit<Ok>(
      node, [call = times_.call](Power& p) { return p.boot_once_network(call); }, std::move(done), true);
}

void PowerService::describe(const std::string& node, std::function<void(Result<Json>)> done) {
  submit<Json>(
      node, [call = times_.call](Power& p) { return p.describe(call); }, std::move(done));
}

template <typename T>
std::shared_ptr<std::atomic<bool>> PowerService::submit(const std::string& node,
                                                        std::function<Result<T>(Power&)> work,
                                                        std::function<void(Result<T>)> done, bool takes_down,
                                                        std::optional<DurationMs> retries_for) {
  const auto where = lookup_(node);
  if (!where.ok()) {
    reactor_.post([done, error = where.error()] { done(error); });
    return nullptr;
  }
  auto result =
      std::make_shared<Result<T>>(fail(Code::failed, "internal error: the power driver did not run"));
  Job job;
  job.node = node;
  job.takes_down = takes_down;
  job.retries_for = retries_for;
  job.work = [result, work = std::move(work)](Power& power) { *result = work(power); };
  job.done = [result, done] { done(std::move(*result)); };
  job.failed = [done](const Error& error) { done(error); };
  const auto wanted = job.wanted;
  enqueue(where->target.address, std::move(job));
  return wanted;
}

std::shared_ptr<std::atomic<bool>> PowerService::try_login(const std::string& node, const Where& where,
                                                           DurationMs limit, LoginTried done) {
  auto result = std::make_shared<Status>(fail(Code::failed, "internal error: the power driver did not run"));
  const auto finished = [this, target = where.target, done = std::move(done)](const Status& tried) {
    done(tried, logins_->rejected(target));
  };
  Job job;
  job.node = node;
  job.where = where;
  job.where->target.one_login = true;
  job.retries_for = 0;
  job.work = [result, limit](Power& power) {
    const auto state = power.state(limit);
    *result = state.ok() ? Status(Ok{}) : Status(state.error());
  };
  job.done = [result, finished] { finished(*result); };
  job.failed = [finished](const Error& error) { finished(error); };
  const auto wanted = job.wanted;
  enqueue(where.target.address, std::move(job));
  return wanted;
}

void PowerService::enqueue(const std::string& address, Job job) {
  job.requested = reactor_.steady();
  queues_[address].push_back(std::move(job));
  if (!busy_[address]) next(address);
}

void PowerService::next(const std::string& address) {
  auto& queue = queues_[address];
  if (queue.empty()) {
    queues_.erase(address);
    busy_.erase(address);
    return;
  }
  busy_[address] = true;
  Job job = std::move(queue.front());
  queue.pop_front();
  start(address, std::move(job));
}

void PowerService::start(const std::string& address, Job job) {
  if (job.takes_down)
    if (auto may = may_switch_(job.node); !may.ok()) return give_up(address, job, may.error());
  auto where = job.where ? Result<Where>(*job.where) : lookup_(job.node);
  const PowerDriver* driver = where.ok() ? find_driver(where->driver) : nullptr;
  if (!driver) {
    return give_up(
        address, job,
        where.ok() ? fail(Code::invalid, "unknown power driver '" + where->driver + "'") : where.error());
  }
  PowerTarget target = std::move(where->target);
  if (auto refused = logins_->find(target)) return give_up(address, job, std::move(*refused));
  add_known(job.node, target);
  target.logins = logins_;
  target.waiter = waiter_;
  target.retries_for = job.retries_for;
  auto learned = std::make_shared<std::string>();
  target.on_pin = [learned](const std::string& fingerprint) { *learned = fingerprint; };
  auto refused = std::make_shared<bool>(false);
  target.on_refused = [refused] { *refused = true; };
  auto failure = std::make_shared<std::optional<Error>>();
  reactor_.offload(
      [this, driver, target, job, failure] {
        // Checked on the worker, because the pool may have been busy with other BMCs.
        if (!*job.wanted) {
          *failure = fail(Code::cancelled, "no longer needed; the BMC was not contacted");
          return;
        }
        if (reactor_.steady() - job.requested > times_.turn) {
          *failure = fail(Code::unavailable,
                          "the controller was busy with other BMCs for too long; this BMC was not contacted");
          return;
        }
        auto power = driver->make(target);
        if (power.ok())
          job.work(**power);
        else
          *failure = power.error();
      },
      [this, address, job, target, failure, learned, refused] {
        reactor_.post([this, address] {
          next(address);
        });  // first, so that the BMC is free even if handling the result fails
        if (!learned->empty() && !job.where) learn_pin(job.node, *learned);
        if (*refused) target.logins->refused(target);
        if (*failure)
          job.failed(**failure);
        else
          job.done();
      });
}

// Ends a call without contacting the BMC.
void PowerService::give_up(const std::string& address, const Job& job, Error error) {
  reactor_.post([this, address, job, error = std::move(error)] {
    reactor_.post([this, address] { next(address); });
    job.failed(error);
  });
}

// Adds the state folder, the node's own pin, and the servers of all other nodes, declared or not: a node
// keeps its server until its record is removed.
void PowerService::add_known(const std::string& node, PowerTarget& target) const {
  target.state = files_.root();
  for (const auto& [name, pin] : pins_) {
    if (name == node && target.pin_sha256.empty()) target.pin_sha256 = pin;
    if (name != node && pin.starts_with("server:")) target.servers_of_others.emplace(pin, name);
  }
}

void PowerService::learn_pin(const std::string& node, const std::string& fingerprint) {
  if (pins_[node] == fingerprint) return;
  pins_[node] = fingerprint;
  log::info("BMC pinned on first use", {{"node", node}, {"fingerprint", fingerprint}});
  const auto written = files_.write(kPins, dump_json(Json(pins_), 2) + "\n", 0600);
  if (!written.ok()) log::error("BMC pins could not be stored", {{"error", written.error().message}});
}

void PowerService::forget_pin(const std::string& node) {
  if (!pins_.erase(node)) return;
  const auto written = files_.write(kPins, dump_json(Json(pins_), 2) + "\n", 0600);
  if (!written.ok()) log::error("BMC pins could not be stored", {{"error", written.error().message}});
}

std::string_view to_string(ByHand::Task task) {
  switch (task) {
    case ByHand::Task::netboot:
      return "restart it and boot it from the network";
    case ByHand::Task::on:
      return "power it on";
    case ByHand::Task::off:
      break;
  }
  return "power it off";
}

void ByHand::request(const std::string& node, Task task, Done done) {
  forget(node);
  open_[node] = {task, std::move(done)};
}

void ByHand::forget(const std::string& node) { end(node, fail(Code::cancelled, "manual task cancelled")); }

std::optional<ByHand::Task> ByHand::requested(const std::string& node) const {
  const auto found = open_.find(node);
  if (found == open_.end()) return std::nullopt;
  return found->second.task;
}

void ByHand::saw_netboot(const std::string& node) {
  if (requested(node) == Task::netboot) end(node, Ok{});
}

void ByHand::saw_agent(const std::string& node) {
  if (requested(node) == Task::on) end(node, Ok{});
}

Result<ByHand::Task> ByHand::said_done(const std::string& node) {
  const auto task = requested(node);
  if (!task) return fail(Code::conflict, "no manual task is pending for " + node);
  end(node, Ok{});
  return *task;
}

void ByHand::end(const std::string& node, Status how) {
  const auto found = open_.find(node);
  if (found == open_.end()) return;
  reactor_.post([done = std::move(found->second.done), how = std::move(how)] { done(how); });
  open_.erase(found);
}

}  // namespace muster
