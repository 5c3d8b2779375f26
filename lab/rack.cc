#include "lab/rack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

#include "base/json_dump.h"
#include "lab/lab_network.h"
#include "sys/log.h"
#include "sys/pki.h"

namespace muster::lab {
namespace {

// The BMC's own certificate, created once per machine, since clients pin it.
Result<pki::KeyPair> bmc_certificate(const LabDir& dir, const LabNode& node) {
  Files files("/");
  const auto key_path = dir.node(node.name, "bmc.key"), certificate_path = dir.node(node.name, "bmc.crt");
  if (files.exists(key_path) && files.exists(certificate_path)) {
    pki::KeyPair pair;
    TRY(pair.key_pem, files.read(key_path));
    TRY(pair.certificate_pem, files.read(certificate_path));
    return pair;
  }
  TRY(auto maker, pki::make_ca("BMC maker of " + node.name, 3650));
  TRY(auto pair, pki::issue(maker, {.common_name = "bmc-" + node.name,
                                    .organization = "muster lab",
                                    .addresses = {node.bmc_address},
                                    .server = true,
                                    .days = 3650}));
  TRY_(files.write(key_path, pair.key_pem, 0600));
  TRY_(files.write(certificate_path, pair.certificate_pem));
  return pair;
}

const std::map<std::string, Strike>& strikes() {
  static const std::map<std::string, Strike> all = {{"crash-once", Strike::machine_check},
                                                    {"panic-first-boot", Strike::panic}};
  return all;
}

// Returns seconds; null if no firmware tests are in progress.
Json seconds_left(std::optional<DurationMs> span) {
  return span ? Json((*span + kSecond - 1) / kSecond) : Json();
}

}  // namespace

Rack::Rack(RackOptions options, LabSpec spec, Process& process, Reactor& reactor)
    : options_(std::move(options)), process_(process), reactor_(reactor), spec_(std::move(spec)) {}
Rack::~Rack() = default;

Status Rack::start() {
  std::lock_guard lock(mutex_);
  if (!spec_.provider_api.empty()) TRY_(open_provider());
  for (const auto& node : spec_.nodes) TRY_(mount(node));
  return Ok{};
}

Result<std::string> Rack::bmc_password() const {
  TRY(auto text, Files("/").read(options_.dir.secret()));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto colon = text.find(':');
  if (colon == std::string::npos)
    return fail(Code::corrupt, options_.dir.secret() + ": expected user:password");
  return text.substr(colon + 1);
}

Status Rack::mount(const LabNode& node) {
  const auto* profile = find_profile(node.profile);
  if (!profile) return fail(Code::invalid, node.name + ": no BMC profile named " + node.profile);
  auto slot = std::make_unique<Slot>();
  slot->machine = std::make_unique<QemuMachine>(options_.dir, node, options_.host);
  TRY_(slot->machine->prepare());
  TRY(auto password, bmc_password());
  const BmcIdentity identity{node.name, node.uuid, node.serial, node.mac, node.memory_mib, node.smp};
  slot->bmc = std::make_unique<Bmc>(*profile, identity, "admin", password, *slot->machine, wall_clock);
  if (!node.server.empty())
    put_behind_provider(node, *slot);
  else if (node.ipmi)
    TRY_(serve_ipmi(node, *slot, password));
  else if (!node.bmc_address.empty())  // without a BMC, a person switches it: `muster lab power`
    TRY_(serve_redfish(node, *slot));
  slots_[node.name] = std::move(slot);
  return Ok{};
}

Status Rack::serve_ipmi(const LabNode& node, Slot& slot, const std::string& password) {
  slot.ipmi = std::make_unique<IpmiBmc>(
      options_.dir, node,
      IpmiOptions{
          .program = options_.program, .user = "admin", .password = password, .address = node.bmc_address});
  return slot.ipmi->start();
}

Status Rack::serve_redfish(const LabNode& node, Slot& slot) {
  TRY(auto certificate, bmc_certificate(options_.dir, node));
  HttpServerOptions http;
  http.address = node.bmc_address;
  http.port = options_.bmc_port;
  http.tls = true;
  http.tls_options.certificate_pem = certificate.certificate_pem;
  http.tls_options.key_pem = certificate.key_pem;
  http.threads = 1;
  http.max_body = 64 << 10;
  http.idle_timeout = 30 * kSecond;
  auto server = start_http_server(
      http, [this, name = node.name, bmc = slot.bmc.get()](HttpRequest request, ResponderPtr responder) {
        auto response = bmc->handle(request);
        log_request(name, request, response.status);
        responder->respond(std::move(response));
      });
  if (!server) return std::move(server).error().with("BMC of " + node.name);
  slot.server = std::move(*server);
  return Ok{};
}

Result<Json> Rack::chassis(const std::string& node, const std::vector<std::string>& words) {
  std::lock_guard lock(mutex_);
  auto* slot = find(node);
  if (!slot) return fail(Code::not_found, "the lab has no machine named " + node);
  auto answer = slot->bmc->chassis(words);
  if (!words.empty() && words[0] == "set")
    log_order(node, fmt::format("IPMI {} {}", fmt::join(words, " "), answer.ok() ? "ok" : "refused"));
  return answer;
}

void Rack::log_order(const std::string& node, const std::string& text) {
  std::lock_guard lock(log_mutex_);
  std::ofstream(options_.dir.path("bmc.log"), std::ios::app)
      << fmt::format("{} {} {}\n", to_iso8601(wall_clock()), node, text);
}

// Logs requests that change something to bmc.log, for users and tests. Logins contain a password, so they are
// logged without their body.
void Rack::log_request(const std::string& node, const HttpRequest& request, int status) {
  if (request.method == "GET" || request.method == "HEAD") return;
  const bool login = request.path.find("/Sessions") != std::string::npos;
  log_order(node, fmt::format("{} {} {} {}", request.method, request.path, status,
                              login ? "-" : request.body.substr(0, 300)));
}

Rack::Slot* Rack::find(const std::string& name) {
  const auto found = slots_.find(name);
  return found == slots_.end() ? nullptr : found->second.get();
}

Status Rack::save() { return Files("/").write(options_.dir.spec(), dump_json(to_json(spec_), 1) + "\n"); }

Result<Json> Rack::add(const std::string& name, bool on) {
  std::lock_guard lock(mutex_);
  if (provider_)
    return fail(Code::invalid, "a lab with a provider's API can have only the machines in its spec");
  TRY(auto node, make_extra_node(spec_, name));
  TRY_(run_all(process_, node_commands(node, "")));
  auto mounted = join_outages(node);
  if (mounted) mounted = mount(node);
  if (!mounted) {
    if (auto undone = run_all(process_, node_removal_commands(node, "")); !undone)
      log::warning(undone.error().message, {{"node", name}});
    return std::move(mounted).error();
  }
  spec_.nodes.push_back(node);
  TRY_(save());
  if (on) find(name)->machine->start();
  return Json{{"node", name},
              {"mac", node.mac},
              {"bmc_address", node.bmc_address},
              {"profile", node.profile},
              {"power", on ? "on" : "off"}};
}

Json Rack::status() {
  std::lock_guard lock(mutex_);
  Json nodes = Json::array();
  for (const auto& declared : spec_.nodes) {
    auto* slot = find(declared.name);
    if (!slot) continue;
    const auto node = slot->machine->node();
    for (const auto& [fault, strike] : strikes())
      if (!slot->machine->wanted(strike)) slot->faults.erase(fault);
    Json drives = Json::array();
    for (const auto& drive : node.drives)
      drives.push_back({{"name", drive.name},
                        {"serial", drive.serial},
                        {"size_bytes", drive.size_bytes},
                        {"file", drive_file(options_.dir, node, drive)}});
    nodes.push_back({{"name", node.name},
                     {"power", slot->machine->running() ? "on" : "off"},
                     {"boot_override", slot->bmc->override_text()},
                     {"mac", node.mac},
                     {"address", node.address},
                     {"bmc_address", node.bmc_address},
                     {"bmc_requests", slot->bmc->requests_served()},
                     {"profile", node.profile},
                     {"ipmi", node.ipmi},
                     {"server", node.server},
                     {"in_spec", node.in_spec},
                     {"uuid", node.uuid},
                     {"serial", node.serial},
                     {"drives", drives},
                     {"ports", ports_json(node.ports)},
                     {"simulated_gpus", node.gpus},
                     {"firmware_tests_left_s", seconds_left(slot->machine->testing())},
                     {"faults", slot->faults}});
  }
  return {{"cluster", spec_.cluster},
          {"accel", std::string(to_string(options_.host.accel))},
          {"time_scale", spec_.time_scale},
          {"networks", networks()},
          {"nodes", nodes}};
}

void Rack::power_off_all() {
  std::lock_guard lock(mutex_);
  for (auto& [name, slot] : slots_) slot->machine->cut_power();
  for (auto& [name, slot] : slots_) slot->machine->settle();
}

Result<Json> Rack::carry_out(const Break& request) {
  std::lock_guard lock(mutex_);
  return request.network_switch.empty() ? break_node(request) : break_switch(request);
}

Result<Json> Rack::break_node(const Break& request) {
  auto* slot = find(request.node);
  if (!slot) return fail(Code::not_found, "the lab has no machine named " + request.node);
  if (!fault_list().count(request.fault)) {
    std::string known;
    for (const auto& [name, help] : fault_list()) known += (known.empty() ? "" : ", ") + name;
    return fail(Code::invalid, fmt::format("no fault named '{}' (known: {})", request.fault, known));
  }
  TRY(auto words, break_machine(*slot, request));
  if (request.heal) slot->faults.erase(shown_name(request));
  return Json{{"node", request.node}, {"fault", request.fault}, {"done", words}};
}

Result<std::string> Rack::break_machine(Slot& slot, const Break& request) {
  const auto& fault = request.fault;
  if (fault == "post" || strikes().count(fault)) return break_boot(slot, request);
  if (fault == "bmc-503" || fault == "other-guid" || fault == "never-powers-on" || fault == "kill")
    return break_bmc(slot, request);
  if (fault.starts_with("api-")) return break_provider(request);
  if (fault == "net-cut" || fault == "shape") return break_network(slot, request);
  if (fault == "pull-cable") return pull_cable(slot, request);
  if (fault == "port-errors") return port_errors(slot, request);
  if (fault == "extra-disk") return extra_disk(slot, request);
  if (fault == "gpu-xid") return break_gpu(slot, request);
  return break_drive(slot, request);
}

Result<std::string> Rack::break_boot(Slot& slot, const Break& request) {
  if (const auto strike = strikes().find(request.fault); strike != strikes().end()) {
    slot.machine->set_strike(strike->second, !request.heal);
    if (request.heal) return std::string("no crash");
    const std::string words = strike->second == Strike::panic ? "the next system that boots from disk panics"
                                                              : "the next system that boots crashes";
    slot.faults[request.fault] = words;
    return words + " (once)";
  }
  const auto declared = request.seconds * kSecond;
  const auto here = static_cast<DurationMs>(static_cast<double>(declared) * spec_.time_scale);
  if (!request.heal && here <= 0) return fail(Code::invalid, "post takes a duration such as 12m or 90s");
  slot.machine->set_firmware_tests(request.heal ? 0 : here);
  if (request.heal) return std::string("no firmware tests");
  auto words = to_human(declared);
  if (here != declared) words += fmt::format(" ({} at time scale {})", to_human(here), spec_.time_scale);
  slot.faults[request.fault] = words;
  return fmt::format("the firmware's self-test takes {} from the next power-on or reset", words);
}

Result<std::string> Rack::break_bmc(Slot& slot, const Break& request) {
  if (request.fault == "kill") {
    if (!slot.machine->running()) return fail(Code::conflict, request.node + " is off");
    slot.machine->cut_power();
    slot.machine->settle();
    return std::string("power cut");
  }
  if (request.fault == "never-powers-on") {
    slot.machine->set_dead_power_button(!request.heal);
    if (!request.heal) slot.faults[request.fault] = "power-on is accepted but has no effect";
    return std::string(request.heal ? "powers on again" : "power-on is accepted but has no effect");
  }
  if (slot.ipmi && request.fault == "other-guid") {
    TRY_(slot.ipmi->start(!request.heal));
    if (!request.heal) slot.faults[request.fault] = "the BMC reports a different GUID";
    return std::string(request.heal ? "reports its own GUID"
                                    : "reports a different GUID, as a replaced BMC does");
  }
  if (slot.ipmi || request.fault == "other-guid")
    return fail(Code::invalid, fmt::format("{} has {} BMC, to which {} does not apply", request.node,
                                           slot.ipmi ? "an IPMI" : "a Redfish", request.fault));
  const auto seconds = request.heal ? 0 : request.seconds > 0 ? request.seconds : 30;
  slot.bmc->fail_until(wall_clock() + seconds * kSecond);
  return fmt::format("the BMC answers 503 for {} s", seconds);
}

Result<std::string> Rack::break_drive(Slot& slot, const Break& request) {
  const auto node = slot.machine->node();
  const LabDrive* drive = nullptr;
  for (const auto& d : node.drives)
    if (d.name == request.drive) drive = &d;
  if (!drive)
    return fail(Code::not_found, fmt::format("{} has no drive '{}' (--drive)", node.name, request.drive));
  if (request.fault == "slow-drive") {
    int64_t rate = 0;
    if (!request.heal) {
      rate = std::strtoll(request.rate.c_str(), nullptr, 10);
      if (rate <= 0) return fail(Code::invalid, "slow-drive needs --rate in bytes per second");
      slot.faults[request.fault] = fmt::format("{} at {} B/s", drive->name, rate);
    }
    TRY_(slot.machine->throttle(drive->name, rate));
    return rate ? fmt::format("{} limited to {} B/s", drive->name, rate) : drive->name + " at full speed";
  }
  if (request.fault == "pcie-error") return break_pcie(slot, *drive, request.heal);
  if (slot.machine->running())
    return fail(Code::denied,
                node.name + " is on: a file system can only be written while the machine is off");
  const auto file = drive_file(options_.dir, node, *drive);
  const auto kind = request.file_system.empty() ? "ext4" : request.file_system;
  if (kind != "ext4" && kind != "xfs") return fail(Code::invalid, "--fs takes ext4 or xfs");
  const Argv argv = kind == "xfs" ? Argv{"mkfs.xfs", "-q", "-f", "-L", "foreign", file}
                                  : Argv{"mkfs.ext4", "-q", "-F", "-L", "foreign", file};
  TRY_(run_all(process_, {argv}));
  return fmt::format("{} of {} now contains {} labelled 'foreign'", drive->name, node.name, kind);
}

Result<std::string> Rack::extra_disk(Slot& slot, const Break& request) {
  const auto node = slot.machine->node();
  const auto group = request.drive.empty() ? spec_.drives.back().name : request.drive;
  for (const auto& pattern : spec_.drives) {
    if (pattern.name != group) continue;
    int index = pattern.count;
    LabDrive drive;
    do {
      ++index;
      drive.name = fmt::format("{}{}", pattern.name, index);
      drive.serial = fmt::format("{}{:02}{:02}", pattern.serial_prefix, node.number, index);
    } while (
        std::any_of(node.drives.begin(), node.drives.end(), [&](auto& d) { return d.name == drive.name; }));
    drive.size_bytes = pattern.size_bytes;
    TRY_(slot.machine->add_drive(drive));
    for (auto& saved : spec_.nodes)
      if (saved.name == node.name) saved.drives.push_back(drive);
    TRY_(save());
    return fmt::format("{} gets drive {} (serial {}) at its next power-on", node.name, drive.name,
                       drive.serial);
  }
  return fail(Code::not_found, "the lab has no drive group named " + group);
}

}  // namespace muster::lab
