// An executor over ports that do what the test says; one life at a time over one store.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "controller/executor/executor.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

namespace muster::testing {

inline Action action(const std::string& node, const std::string& name, ActionKind kind,
                     Json params = Json::object()) {
  Action a;
  a.id = node + "/" + name;
  a.node = NodeName(node);
  a.kind = kind;
  a.phase = name;
  a.title = name;
  a.params = std::move(params);
  return a;
}

struct RunBench : PowerPort, BootPort, LinkPort {
  ManualReactor reactor;
  MemStore store{reactor};
  std::vector<std::string> powered, forgotten, switched_on, switched_off;
  std::vector<Status> off_answers;     // taken from the front; then Ok
  std::string panic;                   // that consoles showed
  std::vector<std::string> withdrawn;  // ids of orders
  std::set<std::string> armed;
  std::map<std::string, wire::WorkOrder> offers;  // by node
  std::vector<Status> power_answers;              // taken from the front; then Ok
  std::vector<Status> rearm_answers;              // likewise
  std::vector<std::string> rearmed;
  Result<PowerState> power_state = PowerState::on;
  std::set<std::string> without_bmc;
  std::set<std::string> rented;           // switched by a provider that cannot boot them from the network
  std::vector<Json> reinstalls;           // orders to the provider
  PowerPort::Done reinstalled;            // its answer, for the test to give
  std::map<std::string, Person> persons;  // nodes that a person switches
  std::map<std::string, PowerPort::Done> requested;  // of them, "netboot n1": what is open
  std::vector<Result<Json>> leave_answers;           // taken from the front; then params with a token
  int tokens = 0;
  bool bmc_is_silent = false;
  std::string faulty;  // for this node the power port throws
  std::string jammed;  // and for this one the boot port, when it is closed
  int looks = 0;
  std::vector<RunRow> ended;
  Status verdict = Ok{};
  std::function<Conclusion(const RunRow&)> conclude;
  std::function<void(const RunRow&, ExecutorHooks::Concluded)> concludes;  // later
  std::unique_ptr<Executor> executor;
  Plan plan;

  RunBench() { plan.kind = PlanKind::install, plan.cluster = "test"; }
  void live() {
    ExecutorHooks hooks;
    hooks.judge = [this](const Action&, const Json&) { return verdict; };
    if (conclude)
      hooks.conclude = [this](const RunRow& run, ExecutorHooks::Concluded done) { done(conclude(run)); };
    if (concludes) hooks.conclude = concludes;
    hooks.panic = [this](const std::string&, SteadyMs) { return panic; };
    hooks.ended = [this](const RunRow& run) { ended.push_back(run); };
    executor = std::make_unique<Executor>(reactor, ExecutorPorts{store, *this, *this, *this}, hooks);
  }
  void netboot(const NodeName& node, PowerPort::Done done) override {
    powered.push_back(node);
    if (persons.count(node)) return request("netboot " + node, std::move(done));
    if (node == faulty) throw std::runtime_error("meant to be");
    if (bmc_is_silent) return;
    Status answer = Ok{};
    if (!power_answers.empty()) {
      answer = power_answers.front();
      power_answers.erase(power_answers.begin());
    }
    reactor.post([done, answer] { done(answer); });
  }
  void forget(const NodeName& node) override {
    forgotten.push_back(node);
    for (const char* verb : {"netboot ", "off ", "on "})
      answer(verb + node, fail(Code::cancelled, "forgotten"));
  }
  Switcher switcher(const NodeName& node) const override {
    if (const auto found = persons.find(node); found != persons.end()) return {Switch::person, found->second};
    return {without_bmc.count(node) ? Switch::agent : rented.count(node) ? Switch::provider : Switch::bmc};
  }
  void request(const std::string& what, PowerPort::Done done) { requested[what] = std::move(done); }
  // The person did it, or it was seen; false: no task was open.
  bool answer(const std::string& what, const Status& status = Ok{}) {
    const auto found = requested.find(what);
    if (found == requested.end()) return false;
    reactor.post([done = found->second, status] { done(status); });
    requested.erase(found);
    return true;
  }
  void power_off(const NodeName& node, PowerPort::Done done) override {
    if (persons.count(node)) return request("off " + node, std::move(done));
    switched_off.push_back(node);
    Status answer = Ok{};
    if (!off_answers.empty()) {
      answer = off_answers.front();
      off_answers.erase(off_answers.begin());
    }
    reactor.post([done, answer] { done(answer); });
  }
  void power_on(const NodeName& node, PowerPort::Done done) override {
    if (persons.count(node)) return request("on " + node, std::move(done));
    switched_on.push_back(node);
    reactor.post([done] { done(Ok{}); });
  }
  void state(const NodeName&, std::function<void(Result<PowerState>)> done) override {
    ++looks;
    reactor.post([this, done] { done(power_state); });
  }
  void arm(const NodeName& node, std::function<void(Status)> done) override {
    armed.insert(node);
    reactor.post([done] { done(Ok{}); });
  }
  void rearm(const NodeName& node, std::function<void(Status)> done) override {
    rearmed.push_back(node);
    if (rearm_answers.empty()) return arm(node, std::move(done));
    const Status answer = rearm_answers.front();
    rearm_answers.erase(rearm_answers.begin());
    reactor.post([done, answer] { done(answer); });
  }
  // As the controller does it: with another token each time.
  void leave_order(const NodeName& node, std::function<void(Result<Json>)> done) override {
    Result<Json> answer = Json{{"arguments", "muster.token=" + std::to_string(++tokens)}};
    if (!armed.count(node)) answer = fail(Code::unavailable, "not armed");
    if (!leave_answers.empty()) {
      answer = leave_answers.front();
      leave_answers.erase(leave_answers.begin());
    }
    reactor.post([done, answer] { done(answer); });
  }
  void reinstall(const NodeName&, const Json& order, PowerPort::Done done) override {
    reinstalls.push_back(order);
    reinstalled = std::move(done);
  }
  void disarm(const NodeName& node) override {
    if (node == jammed) throw std::runtime_error("meant to be");
    armed.erase(node);
  }
  void offer(const NodeName& node, wire::WorkOrder order) override { offers[node] = order; }
  void withdraw(const NodeName& node, const OrderId& id) override {
    let_go(node, id);
    withdrawn.push_back(id);
  }
  void let_go(const NodeName& node, const OrderId& id) override {
    if (offers.count(node) && offers[node].id == id) offers.erase(node);
  }

  void add(Action a, std::vector<Dependency> after = {}) {
    if (std::find(plan.nodes.begin(), plan.nodes.end(), a.node) == plan.nodes.end())
      plan.nodes.push_back(a.node);
    a.after = std::move(after);
    plan.actions.push_back(std::move(a));
  }
  // The controller ends, and another begins over the same store.
  void restart() {
    executor.reset();
    offers.clear();
    requested.clear();
    live();
  }
  void start() {
    live();
    executor->start(plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
    reactor.advance(100);
  }
  void hello(const std::string& node, wire::Mode mode, const std::string& boot, const std::string& image = "",
             const std::string& slot = "", bool trial = false) {
    executor->on_hello({NodeName(node), mode, boot, Digest(image), slot, trial});
    reactor.advance(100);
  }
  void finish(const std::string& node, bool ok = true, const std::string& code = "failed",
              Json result = Json::object()) {
    REQUIRE(offers.count(node));
    finish_order(node, offers[node].id, ok, code, std::move(result));
  }
  void finish_order(const std::string& node, const OrderId& id, bool ok, const std::string& code,
                    Json result) {
    wire::Event e;
    e.order = id;
    e.kind = "finished";
    e.data = {
        {"ok", ok}, {"code", ok ? "" : code}, {"message", ok ? "" : "broken"}, {"result", std::move(result)}};
    executor->on_event(NodeName(node), e);
    reactor.advance(100);
  }
  OrderId id(const std::string& action, int attempt) { return order_id(*store.run(1), action, attempt); }
  OrderId offered(const std::string& node) { return offers.count(node) ? offers[node].id : OrderId(); }
  NodeRow row(const std::string& node) { return store.node(NodeName(node)).value_or({}); }
};

}  // namespace muster::testing
