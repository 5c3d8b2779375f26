#include "controller/daemon.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/kernel_line.h"
#include "base/version.h"
#include "controller/api/api.h"
#include "controller/api/dispatcher.h"
#include "controller/api/from_archive.h"
#include "controller/api/services.h"
#include "controller/api/trust.h"
#include "controller/boot/boot.h"
#include "controller/boot/service/boot_service.h"
#include "controller/boot/service/dhcp_service.h"
#include "controller/boot/service/kexec_order.h"
#include "controller/boot/service/ram_decision.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/conclude.h"
#include "controller/bringup/current_causes.h"
#include "controller/bringup/forget_declared.h"
#include "controller/bringup/held_run.h"
#include "controller/bringup/nodes_view.h"
#include "controller/bringup/own_machine_here.h"
#include "controller/current/current_spec.h"
#include "controller/doctor/service/doctor_service.h"
#include "controller/executor/executor.h"
#include "controller/image/service/image_service.h"
#include "controller/link/discovery.h"
#include "controller/link/event_keeper.h"
#include "controller/link/event_log.h"
#include "controller/link/link_hub.h"
#include "controller/link/storage_reports.h"
#include "controller/metrics/service/metrics_port.h"
#include "controller/metrics/service/metrics_service.h"
#include "controller/metrics/service/metrics_sources.h"
#include "controller/nodes/states.h"
#include "controller/notices/service/site_notices.h"
#include "controller/power/provider/provider_parts.h"
#include "controller/power/service/consoles.h"
#include "controller/power/service/power_service.h"
#include "controller/rollout/service/rollout_service.h"
#include "controller/rollout/service/rollout_shown.h"
#include "controller/rollout/service/rollout_world.h"
#include "controller/store/migrate.h"
#include "controller/store/sqlite_store.h"
#include "controller/trust/authority.h"
#include "controller/trust/vault.h"
#include "sys/clock.h"
#include "sys/contain.h"
#include "sys/http/http.h"
#include "sys/lock_file.h"
#include "sys/log.h"
#include "sys/os.h"

namespace muster {
namespace {

// All parts of the controller except the servers, in order of dependency.
struct Core {
  Core(RealReactor& r, DaemonOptions o, Authority a, std::unique_ptr<Store> s)
      : reactor(r), options(std::move(o)), authority(std::move(a)), store(std::move(s)) {}

  RealReactor& reactor;
  const DaemonOptions options;
  const PlanWorker::Offload offload = [this](Reactor::Task work, Reactor::Task done) {
    reactor.offload(std::move(work), std::move(done));
  };
  Authority authority;
  const OwnMachine own = read_own_machine(options.sys);
  MachinesWithOwn machines_with_own{own.uuid};
  std::unique_ptr<Store> store;
  std::shared_ptr<CertificateReader> certificates;  // for the servers' threads
  std::unique_ptr<Vault> vault;
  std::map<std::string, std::string> problems;

  CurrentSpec spec{*store, [this] { return images.recipes(); }};
  EventLog events{reactor, *store};
  EventKeeper event_keeper{reactor, *store, [this] { return event_limits(spec).keep; }};
  ImageService images{reactor, options};
  PowerService power{reactor, options.state, [this](const std::string& node) { return bmc_of(node); }};
  BootService boot{
      reactor,
      *store,
      authority,
      {[this](const std::string& mac) { return node_of_mac(spec, mac); },
       [this](const std::string& node, const std::string& mac, const std::string& token) {
         return boot_script(node, mac, token);
       },
       [this] { return netboot_limit(spec); },
       [this](const std::string& node, EventKind kind, const Json& data) {
         events.add(executor.active() ? executor.run_id() : 0, NodeName(node), kind, data);
       },
       [this](const std::string& node) { link.begin_anew(NodeName(node)), provider_install->joined(node); },
       [this](const std::string& node, const std::string& why) { executor.quarantine(NodeName(node), why); },
       [this](const std::string& node, const std::string& token) { return leave_order(node, token); },
       [this](const std::string& node) { power.manual_tasks().saw_netboot(node); },
       [this](const std::string& node) { link.hang_up(NodeName(node)); },
       [this] { return joins_from_any_port(spec); }}};
  LinkHub link{reactor, *store, [this](const Json& params) { return vault->resolve(params); }};
  Executor executor{reactor, {*store, power, boot, link}, hooks()};
  HeldRun held_run{reactor, *store, spec, executor, problems, options.lab};
  Discovery discovery{reactor,
                      boot,
                      link,
                      {[this](const NodeName& name, const std::function<void(NodeRow&)>& change) {
                         executor.set_node(name, change);
                       },
                       [this](const NodeName& name, const HardwareFacts& facts) {
                         events.add(0, name, "node", {{"action", "seen"}, {"serial", facts.system.serial}});
                       },
                       [this](const NodeName& name) { link.hang_up(name); }}};
  Consoles consoles{
      reactor,
      options.state,
      {[this] { return serial_consoles(); },
       [this](const std::string& node, const std::string& panic) {
         events.add(executor.active() ? executor.run_id() : 0, NodeName(node), "console", {{"text", panic}});
       }}};
  StorageReports storage;
  const NodesView::Parts node_parts{options.lab, reactor, *store, spec, executor, storage, problems};
  const NodesView nodes{node_parts};
  std::unique_ptr<ProviderInstall> provider_install;
  std::unique_ptr<Bringup> bringup;
  std::unique_ptr<RolloutWorld> rollout_world;
  std::unique_ptr<RolloutService> rollout;
  api::ArchiveAnswers archive{reactor, *store};
  std::unique_ptr<MetricsService> metrics;
  CurrentCauses causes{{node_parts, images, authority},
                       [this] { return rollout ? rollout->record() : nullptr; },
                       [this] { return notices ? notices->service().recalled() : std::vector<Cause>(); }};
  std::unique_ptr<SiteNotices> notices;
  std::unique_ptr<DoctorService> doctor;
  std::unique_ptr<Services> services;
  std::function<void()> reopen = [] {};  // when the ports' address or the DHCP data has changed

  Status finish();
  ExecutorHooks hooks();
  void observe(const RunEvent& event);
  Result<PowerService::Where> bmc_of(const std::string& node);
  Result<PowerService::Where> bmc_of(const Spec& cluster, const NodeSpec& node);
  std::map<std::string, PowerTarget> serial_consoles();
  Status may_take_down(const std::string& node);
  Result<std::string> boot_script(const std::string& node, const std::string& mac, const std::string& token);
  RamSource ram_source(const Spec& cluster, const NodeSpec* node) {
    return {options, cluster, node, address(), authority.ca_fingerprint()};
  }
  Result<Json> leave_order(const std::string& node, const std::string& token);
  std::string address();
  void connect_agents();
  void warn_of_older_copy();
  void read_inventories();
};

Status Core::finish() {
  TRY(certificates, CertificateReader::open(options.state + "/muster.db"));
  TRY(vault, Vault::open(options.state, reactor, *store));
  provider_install = install_by_provider(
      {reactor, power, boot, *vault, spec, options.agent_binary,
       [this](const std::string& node, const std::string& what) {
         events.add(executor.active() ? executor.run_id() : 0, NodeName(node), "power", {{"action", what}});
       },
       [this](const std::string& node) { return executor.node_row(NodeName(node)).boot_id; }});
  bringup = std::make_unique<Bringup>(Bringup::Parts{options, reactor, *store, spec, executor, images, *vault,
                                                     offload, authority.identity(), own});
  rollout_world = std::make_unique<RolloutWorld>(RolloutWorld::Parts{
      *store, spec, *bringup, images, storage, [this] { return held_run.holds(); },
      [this](const rollout::Record& record) { events.add(0, "", "rollout", rollout_event(record)); },
      [this](const Json& event) { events.add(0, "", "image", event); }, offload});
  rollout = std::make_unique<RolloutService>(reactor, *store, *rollout_world,
                                             [boot = Files().read_line("/proc/sys/kernel/random/boot_id")] {
                                               return rollout::BootTime{boot, since_boot()};
                                             });
  metrics = std::make_unique<MetricsService>(MetricsService::Parts{
      reactor, nodes, *store, executor, [this] { return authority.certificate_ends(); },
      [this] { return rollout->record(); }, [this] { return image_metrics(images, spec); },
      [this] { return cause_counts(causes.look()); },
      [this] {
        const auto counts = notices->service().counts();
        return NoticeMetrics{counts.waiting, counts.lost, counts.failing};
      }});
  notices = std::make_unique<SiteNotices>(SiteNotices::Parts{reactor, *store, spec, *vault,
                                                             [this] { return rollout->record(); },
                                                             [this] { return causes.look(); }, problems});
  doctor = std::make_unique<DoctorService>(DoctorService::Parts{
      reactor, options, authority, power, *bringup,
      [this](const Spec& cluster, const NodeSpec& node) { return bmc_of(cluster, node); }});
  services = std::make_unique<Services>(Services{options, authority, reactor,  *store,   spec,
                                                 events,  link,      boot,     power,    *vault,
                                                 images,  *bringup,  executor, *rollout, notices->service(),
                                                 archive, discovery, *metrics, problems, nodes,
                                                 causes,  reopen,    *doctor});
  // Reads the playbooks, which takes longer than a request should.
  contain_exceptions("reading the playbooks", [this] { (void)bringup->names(); });
  power.guard([this](const std::string& node) { return may_take_down(node); });
  connect_agents();
  spec.on_change([this] {
    forget_declared(spec, *store, executor, link);
    link.set_limits(event_limits(spec));
    if (const auto now = spec.get(); now.ok()) forget_installs(*vault, *store, (*now)->spec);
    reopen();
    held_run.spec_changed();
    rollout->poke();
  });
  link.set_limits(event_limits(spec));
  discovery.on_change([this] { reopen(); });
  return Ok{};
}

// In pieces, so that all are read before the first notices.
void Core::read_inventories() {
  constexpr DurationMs kPause = 100;
  if (causes.read_inventories()) reactor.after(kPause, [this] { read_inventories(); });
}

// Messages of undeclared machines go to Discovery only, never to the executor, which changes nodes.
void Core::connect_agents() {
  const auto undeclared = [](const NodeName& node) { return !mac_of_unknown(node).empty(); };
  link.connect({[this, undeclared](const Hello& hello) {
                  undeclared(hello.node) ? discovery.on_hello(hello) : executor.on_hello(hello);
                },
                [this, undeclared](const NodeName& node, const wire::Event& event) {
                  undeclared(node) ? discovery.on_event(node, event) : executor.on_event(node, event);
                },
                [this, undeclared](const NodeName& node, const Presence& present) {
                  if (undeclared(node)) return discovery.on_contact(node);
                  if (present.storage) storage.update(node, *present.storage);
                  executor.on_contact(node, present);
                  power.manual_tasks().saw_agent(node);
                },
                [this](const NodeName& node, const OrderId& order) {
                  return held_run.holds() || executor.expects(node, order);
                }});
}

void Core::warn_of_older_copy() {
  const std::string why = store->restored_why();
  if (why.empty()) return;
  problems["database"] = why;
  log::warning("the database was restored from an older backup", {{"why", why}});
}

ExecutorHooks Core::hooks() {
  ExecutorHooks made = acceptance_hooks({spec, executor, *store, authority.report_key(), offload});
  made.panic = [this](const std::string& node, SteadyMs since) { return consoles.panic_since(node, since); };
  made.observe = [this](const RunEvent& event) { observe(event); };
  made.ended = [this](const RunRow& run) {
    log::info("run ended", {{"run", std::to_string(run.id)}, {"state", std::string(to_string(run.state))}});
    provider_install->run_over(installed_by_provider(executor.plan()));
    events.poke();
    rollout->poke();
  };
  return made;
}

// The executor's events; agents' messages are in the live log already (controller/link/link_hub.cc).
void Core::observe(const RunEvent& event) {
  if (event.kind == "step" || event.kind == "progress" || event.kind == "log") return;
  events.add(event.run, event.node, event.kind, event.data);
}

std::string Core::address() {
  if (!options.listen.empty()) return options.listen;
  const auto current = spec.get();
  return current.ok() ? controller_address((*current)->spec) : "";
}

Result<PowerService::Where> Core::bmc_of(const std::string& name) {
  TRY(const auto current, spec.get());
  const NodeSpec* node = current->spec.node(name);
  if (!node) return fail(Code::not_found, "no node '" + name + "' in the spec");
  return bmc_of(current->spec, *node);
}

Result<PowerService::Where> Core::bmc_of(const Spec& cluster, const NodeSpec& node) {
  TRY(auto where, declared_power(cluster, node, own, *vault));
  where.target.expected_uuid = machine_of(executor.node_row(node.name).product_uuid);
  if (where.target.expected_uuid.empty()) {
    where.target.machines = executor.machines();
    if (!where.target.machines)
      return fail(Code::unavailable, "the identities of the nodes cannot be read from the store");
    where.target.machines = machines_with_own.of(where.target.machines);
  }
  return where;
}

// Returns the serial consoles of the nodes in the active run.
std::map<std::string, PowerTarget> Core::serial_consoles() {
  std::map<std::string, PowerTarget> out;
  const auto current = spec.get();
  if (!executor.active() || !current.ok()) return out;
  for (const auto& name : executor.plan().nodes) {
    const NodeSpec* node = (*current)->spec.node(name);
    if (!node || !node->power.sol) continue;  // decided before the password is looked up
    auto where = bmc_of(name);
    if (!where.ok()) continue;
    where->target.logins = power.logins();
    out[name] = std::move(where->target);
  }
  return out;
}

// Checked before each power-off or reset, by plan or operator: the controller host must never be powered off.
Status Core::may_take_down(const std::string& name) {
  TRY(const auto current, spec.get());
  const NodeSpec* node = current->spec.node(name);
  if (!node) return fail(Code::not_found, "no node '" + name + "' in the spec");
  OwnMachine known = own;
  known.addresses.insert({address(), controller_address(current->spec)});
  const auto sign = sign_of_own_machine(known, *node, executor.node_row(node->name).product_uuid, nullptr);
  if (sign.empty()) return Ok{};
  return fail(
      Code::denied,
      fmt::format("own-machine: the controller runs on {} ({}); muster never powers it off", name, sign));
}

Result<std::string> Core::boot_script(const std::string& name, const std::string& mac,
                                      const std::string& token) {
  TRY(const auto current, spec.get());
  const Spec& cluster = current->spec;
  const NodeSpec* node = cluster.node(name);
  if (!node && cluster.nodes.empty()) return fail(Code::not_found, "the spec has no nodes");
  BootDecision decision = ram_decision(ram_source(cluster, node), name, token);
  decision.mac = mac;
  const int prefix = prefix_length(cluster.network.provisioning.cidr);
  if (node)
    decision.ip = fmt::format("{}/{}", node->address, prefix);
  else
    decision.dhcp_prefix = prefix;
  // Fail here: otherwise the machine boots from its disk, and the run waits in vain for the RAM system.
  if (const std::string wrong = wrong_ram_arguments(decision); !wrong.empty())
    return fail(Code::invalid, name + ": " + wrong);
  return ipxe_script(decision);
}

// The RAM system gives up after at most half of the time that the run waits for it, so that the old system is
// back while the run is still waiting.
Result<Json> Core::leave_order(const std::string& name, const std::string& token) {
  constexpr DurationMs kGiveUp = 10 * kMinute;
  TRY(const auto current, spec.get());
  const Spec& cluster = current->spec;
  const NodeSpec* node = cluster.node(name);
  if (!node) return fail(Code::not_found, "no node '" + name + "' in the spec");
  BootDecision decision = ram_decision(ram_source(cluster, node), name, token);
  decision.give_up = std::min<DurationMs>(kGiveUp, cluster.limits.netboot / 2);
  return kexec_order(cluster, *node, decision, images.folder(node->image));
}

class RealDaemon : public Daemon {
 public:
  RealDaemon(LockFile lock, std::unique_ptr<Core> core)
      : lock_(std::move(lock)),
        core_(std::move(core)),
        dispatcher_(*core_->services),
        dhcp_(core_->reactor, core_->options, core_->problems),
        metrics_(core_->reactor, core_->options, core_->problems,
                 [this]() -> const std::string& { return core_->metrics->text(); }) {}
  ~RealDaemon() override { stop(); }

  Status start() override;
  void stop() override;
  uint16_t tls_port() const override { return tls_ ? tls_->port() : 0; }
  uint16_t boot_port() const override { return boot_ ? boot_->port() : 0; }
  Services& services() override { return *core_->services; }

 private:
  Status open_unix();
  void open_network();
  Status open_port(api::Listener listener, uint16_t port, std::unique_ptr<HttpServer>& server);

  LockFile lock_;
  std::unique_ptr<Core> core_;
  api::Dispatcher dispatcher_;
  DhcpService dhcp_;
  MetricsPort metrics_;
  std::unique_ptr<HttpServer> unix_, tls_, boot_;
  std::string open_address_, tls_digest_;
};

Status RealDaemon::open_unix() {
  HttpServerOptions options;
  options.unix_path = core_->options.socket;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(options.unix_path).parent_path(), ignored);
  TRY(unix_, start_http_server(options, dispatcher_.handler(api::Listener::local)));
  return Ok{};
}

Status RealDaemon::open_port(api::Listener listener, uint16_t port, std::unique_ptr<HttpServer>& server) {
  HttpServerOptions options;
  options.address = open_address_;
  options.port = port;
  options.threads = 2;
  if (listener == api::Listener::tls) {
    options.tls = true;
    options.tls_options.certificate_pem = core_->authority.server().certificate_pem;
    options.tls_options.key_pem = core_->authority.server().key_pem;
    options.tls_options.client_ca_pem = core_->authority.ca_pem();
    options.trust = [token = core_->authority.operator_token(),
                     certificates = core_->certificates](const HttpRequest& head) {
      return api::trust_of(head, token, [&](const auto& serial) { return certificates->find(serial); });
    };
    options.holds_back = [&held = core_->link.held_back()](const HttpRequest& head, size_t length) {
      return !head.peer.empty() && held.holds(head.peer, length);
    };
  } else {
    options.max_unknown_body = 0;  // booting machines only download
  }
  TRY(server, start_http_server(options, dispatcher_.handler(listener)));
  return Ok{};
}

// Opens the ports once the address is known; again when it, or what the TLS port shows or accepts, changes.
void RealDaemon::open_network() {
  const std::string address = core_->address();
  if (address.empty()) return;
  if (address != open_address_) boot_.reset();
  if (address != open_address_ || core_->authority.tls_digest() != tls_digest_) tls_.reset();
  open_address_ = address;
  tls_digest_ = core_->authority.tls_digest();
  core_->problems.erase("listen");
  const auto open = [&](api::Listener listener, uint16_t port, std::unique_ptr<HttpServer>& server) {
    if (server) return;
    const auto opened = open_port(listener, port, server);
    if (opened.ok()) return;
    core_->problems["listen"] = opened.error().message;
    log::error("the port could not be opened",
               {{"address", address}, {"port", std::to_string(port)}, {"error", opened.error().message}});
  };
  open(api::Listener::tls, core_->options.tls_port, tls_);
  open(api::Listener::boot, core_->options.boot_port, boot_);
  const auto current = core_->spec.get();
  if (core_->options.dhcp && current.ok()) dhcp_.apply((*current)->spec, address, core_->discovery.active());
}

Status RealDaemon::start() {
  core_->reopen = [this] { open_network(); };
  core_->vault->make_own_secrets([](Status made) {
    if (!made.ok())
      log::error("the controller's own secrets could not be created", {{"error", made.error().message}});
  });
  // Open the ports first, so that agents that reconnect get responses while the run is being resumed.
  core_->reactor.post([this] {
    open_network();
    metrics_.open();
    core_->warn_of_older_copy();
    core_->held_run.begin();
    core_->rollout->begin();
    core_->notices->service().begin();
    core_->event_keeper.begin();
    core_->read_inventories();
  });
  // Open the operators' socket last, so that a resumed run is active before their first request.
  TRY_(open_unix());
  log::info("musterd is ready", {{"version", kProgramVersion},
                                 {"state", core_->options.state},
                                 {"socket", core_->options.socket},
                                 {"lab", core_->options.lab ? "yes" : "no"}});
  return Ok{};
}

void RealDaemon::stop() {
  core_->link.close();
  core_->events.close();
  tls_.reset();
  boot_.reset();
  metrics_.close();
  unix_.reset();
  dhcp_.stop();
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::create(RealReactor& reactor, DaemonOptions options) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(options.state, error);
  if (error) return fail(Code::denied, options.state + ": " + error.message());
  if (made) ::chmod(options.state.c_str(), 0700);
  options.state = std::filesystem::canonical(options.state).string();
  TRY(auto lock, LockFile::take(options.state + "/musterd.lock",
                                "another controller uses the state folder " + options.state));
  if (const Status clear = remove_left_copies(options.state); !clear.ok())
    log::warning("what a killed controller left is not removed", {{"error", clear.error().message}});
  std::vector<std::string> addresses = {"127.0.0.1"};
  if (!options.listen.empty()) addresses.push_back(options.listen);
  TRY(auto authority, Authority::open(options.state, addresses, reactor.now()));
  TRY(auto store, open_sqlite_store(options.state + "/muster.db", reactor));
  auto core = std::make_unique<Core>(reactor, std::move(options), std::move(authority), std::move(store));
  TRY_(core->finish());
  return std::unique_ptr<Daemon>(new RealDaemon(std::move(lock), std::move(core)));
}

}  // namespace muster
