#include "controller/hosts/accept_core.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "controller/bringup/nodes_view.h"
#include "controller/store/sqlite_store.h"
#include "controller/trust/authority.h"
#include "sys/log.h"
#include "sys/os.h"

namespace muster {
namespace {

// All measuring modules are in agent/checks/, and their names begin with this prefix.
constexpr std::string_view kMeasures = "accept";
constexpr std::string_view kNothing = "not_applicable";  // module that reports why nothing is measured

// What a step uses that has to do with the addresses of hosts.
constexpr std::array kOfOthers = {"node.address", "peers", "rdma_peers", "nodes"};

bool is_measurement(const std::string& module) {
  return module == kMeasures || module == kNothing || module.starts_with(std::string(kMeasures) + "_");
}

Status refused(const Action& action, const std::string& what) {
  return fail(Code::denied, fmt::format("{}: {}: nothing was done. Running hosts are only measured, never "
                                        "changed: this is an error in muster or in its acceptance profile",
                                        action.id, what));
}

Status measures_only(const Action& action) {
  if (action.kind != ActionKind::check)
    return refused(action, fmt::format("the plan has an action of kind '{}'", to_string(action.kind)));
  for (const Json& step : action.params.value("steps", Json::array())) {
    const std::string module = step.is_object() ? step.value("module", "") : "";
    if (!is_measurement(module)) return refused(action, fmt::format("a step uses module '{}'", module));
    const Json verify = step.value("verify", Json());
    if (verify.is_object() && !is_measurement(verify.value("module", "")))
      return refused(action, fmt::format("a step is verified by module '{}'", verify.value("module", "")));
  }
  return Ok{};
}

Error nothing_here(const std::string& node) {
  return fail(Code::invalid, node + " is a running host: muster does not control its power or boot it");
}

Status make_private(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(Code::denied, fmt::format("{}: {}: history and the signing key are kept in this folder; set "
                                          "XDG_STATE_HOME to use a different folder",
                                          folder, error.message()));
  if (::chmod(folder.c_str(), 0700) != 0)
    return fail(
        Code::denied,
        fmt::format("{} belongs to another user: set XDG_STATE_HOME to use a different folder", folder));
  return Ok{};
}

}  // namespace

Status measures_only(const Plan& plan) {
  if (!plan.destroys.empty())
    return fail(Code::denied, fmt::format("the plan would destroy data on {}: nothing was done",
                                          plan.destroys.front().node));
  for (const Action& action : plan.actions) TRY_(measures_only(action));
  return Ok{};
}

void NoPower::refuse(const std::string& node, Done done) {
  reactor_.post([node, done = std::move(done)] { done(nothing_here(node)); });
}

void NoPower::state(const NodeName& node, std::function<void(Result<PowerState>)> done) {
  reactor_.post([node, done = std::move(done)] { done(nothing_here(node)); });
}

void NoBoot::arm(const NodeName& node, std::function<void(Status)> done) {
  reactor_.post([node, done = std::move(done)] { done(nothing_here(node)); });
}

void NoBoot::leave_order(const NodeName& node, std::function<void(Result<Json>)> done) {
  reactor_.post([node, done = std::move(done)] { done(nothing_here(node)); });
}

Result<std::unique_ptr<AcceptCore>> AcceptCore::open(RealReactor& reactor, const DaemonOptions& given,
                                                     const std::string& keys, Owner owner) {
  TRY_(make_private(keys));
  TRY_(make_private(given.state));
  DaemonOptions options = given;
  options.state = std::filesystem::canonical(given.state).string();
  TRY(auto lock, LockFile::take(options.state + "/accept.lock",
                                "another `muster accept` is running under this name; use --name to run "
                                "a separate one with its own history"));
  TRY(auto key, shared_pair(std::filesystem::canonical(keys).string(), {"/report.key", "/report.pub"},
                            [] { return pki::make_signing_key(); }));
  TRY(auto store, open_sqlite_store(options.state + "/muster.db", reactor));
  auto core = std::make_unique<AcceptCore>(reactor, std::move(options), std::move(lock), std::move(key),
                                           std::move(store), std::move(owner));
  TRY_(core->finish());
  return core;
}

AcceptCore::AcceptCore(RealReactor& r, DaemonOptions given, LockFile taken, pki::KeyPair pair,
                       std::unique_ptr<Store> opened, Owner user)
    : reactor(r),
      options(std::move(given)),
      lock(std::move(taken)),
      key(std::move(pair)),
      owner(std::move(user)),
      store(std::move(opened)) {}

Status AcceptCore::finish() {
  TRY(vault, Vault::open(options.state, reactor, *store));
  bringup = std::make_unique<Bringup>(Bringup::Parts{
      options, reactor, *store, spec, executor, images, *vault,
      [this](Reactor::Task work, Reactor::Task done) { reactor.offload(std::move(work), std::move(done)); }});
  link.connect(
      {[this](const Hello& hello) { executor.on_hello(hello); },
       [this](const NodeName& node, const wire::Event& event) { executor.on_event(node, event); },
       [this](const NodeName& node, const Presence& present) { executor.on_contact(node, present); },
       [this](const NodeName& node, const OrderId& order) { return executor.expects(node, order); }});
  end_interrupted();
  return Ok{};
}

// A killed command leaves its run marked as running, although its agents ended with it.
void AcceptCore::end_interrupted() {
  const auto newest = store->run(0);
  if (!newest.ok() || newest->state != RunState::running) return;
  RunRow ended = *newest;
  ended.state = RunState::cancelled;
  ended.ended = reactor.now();
  JournalRow row;
  row.run = ended.id;
  row.event = "ended";
  row.time = ended.ended;
  row.data = {{"state", to_string(ended.state)}, {"reason", "the command ended during the run"}};
  store->write({ended, row}, [](Status written) {
    if (!written.ok())
      log::error("the end of the run could not be recorded", {{"error", written.error().message}});
  });
}

ExecutorHooks AcceptCore::hooks() {
  ExecutorHooks made = acceptance_hooks(
      {spec, executor, *store, key,
       [this](Reactor::Task work, Reactor::Task done) { reactor.offload(std::move(work), std::move(done)); },
       owner.added});
  made.ended = owner.ended;
  return made;
}

int64_t AcceptCore::newest_run() {
  const auto newest = store->run(0);
  return newest.ok() ? newest->id : 0;
}

void AcceptCore::take_inventory(const ReachedHost& host) {
  const auto facts = host.text.facts();
  executor.set_node(NodeName(host.name),
                    [text = host.text, now = reactor.now(), system = facts->system](NodeRow& row) {
                      row.facts = text;
                      row.facts_time = now;
                      row.product_uuid = system.uuid;
                      row.system_serial = system.serial;
                      if (row.state == NodeState::unknown) row.state = NodeState::discovered;
                    });
}

Status AcceptCore::find_profile(const std::string& profile) {
  const auto playbooks = bringup->playbooks(nullptr);
  if (!playbooks.ok() || (*playbooks)->all.count("acceptance/" + profile) > 0) return Ok{};
  return fail(Code::not_found, fmt::format("there is no acceptance profile '{}'", profile));
}

bool AcceptCore::needs_addresses(const std::string& profile) {
  const auto playbooks = bringup->playbooks(nullptr);
  if (!playbooks.ok()) return true;
  const auto found = (*playbooks)->all.find("acceptance/" + profile);
  if (found == (*playbooks)->all.end()) return true;
  const auto uses_them = [](const PlaybookStep& step) {
    const auto names = names_in(step.params);
    return std::any_of(kOfOthers.begin(), kOfOthers.end(),
                       [&](const char* name) { return names.count(name) > 0; });
  };
  const auto& steps = found->second.steps;
  return std::any_of(steps.begin(), steps.end(), uses_them);
}

Json AcceptCore::status() {
  Json all = NodesView({false, reactor, *store, spec, executor, storage, problems}).status();
  Json declared = Json::array();
  for (Json& node : all["nodes"])
    if (node.value("declared", false)) declared.push_back(std::move(node));
  all["nodes"] = std::move(declared);
  return all;
}

}  // namespace muster
