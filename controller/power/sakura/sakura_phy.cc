#include "controller/power/sakura/sakura_phy.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/json_at.h"
#include "base/lower.h"

namespace muster {
namespace {

// All waiting nodes share the list of servers; reading a machine's own state takes a request per node.
constexpr DurationMs kPoll = 10 * kSecond, kListAge = 15 * kSecond, kLookAge = 2 * kMinute,
                     kLookAgain = 30 * kSecond;
constexpr const char* kPin = "server:";

class SakuraPhy : public Power {
 public:
  SakuraPhy(PowerTarget target, Waiter waiter, std::shared_ptr<PhyAccount> account)
      : target_(std::move(target)), waiter_(std::move(waiter)), account_(std::move(account)) {}

  Result<PowerState> state(DurationMs deadline) override {
    begin(deadline);
    TRY(const PhyServer server, find("power state", false));
    // While the server is locked, the provider may switch the machine on and off.
    if (!server.lock.empty()) return PowerState::unknown;
    return reported("power state", look(server, false, kLookAge));
  }
  Status on(DurationMs deadline) override {
    begin(deadline);
    return reach(PowerState::on, "power on", "on", 0);
  }
  Status off(DurationMs deadline, bool graceful) override {
    begin(deadline);
    if (graceful) {
      const Status polite = reach(PowerState::off, "shut down", "soft", deadline / 2);
      if (polite.ok() || polite.error().code == Code::denied) return polite;
    }
    return reach(PowerState::off, "power off", "off", 0);
  }
  Status boot_once_network(DurationMs) override { return no_network_boot(); }
  Status can_boot_network(DurationMs) override { return no_network_boot(); }
  Result<Json> describe(DurationMs deadline) override;

 private:
  void begin(DurationMs deadline) { end_ = waiter_.now() + deadline; }
  DurationMs left() const { return end_ - waiter_.now(); }
  void pause() { waiter_.sleep(std::max<DurationMs>(0, std::min(kPoll, left()))); }
  Error about(Error error, const std::string& what) const {
    return std::move(error).with(fmt::format("{} (server {}), {}", target_.node, target_.address, what));
  }
  Result<PhyServer> find(const std::string& what, bool for_order) {
    auto server = phy_server_of(target_, *account_, {for_order, kListAge, left()});
    if (!server.ok()) return about(std::move(server).error(), what);
    return server;
  }
  Result<std::string> look(const PhyServer& server, bool for_order, DurationMs max_age) {
    return account_->power(server, {for_order, max_age, left()});
  }
  Result<PowerState> reported(const std::string& what, Result<std::string> power) const {
    if (!power.ok()) return about(std::move(power).error(), what);
    return *power == "on" ? PowerState::on : *power == "off" ? PowerState::off : PowerState::unknown;
  }
  Status no_network_boot() const {
    return fail(Code::invalid,
                fmt::format("{} (server {}): the provider's API cannot boot a machine from the network; with "
                            "`power.install` in the spec the provider reinstalls the machine, and `muster "
                            "reimage` then starts from its running system",
                            target_.node, target_.address));
  }
  Status reach(PowerState wanted, const std::string& what, const std::string& operation, DurationMs reserve);
  Status wait_for(PowerState wanted, const std::string& what, DurationMs reserve);

  PowerTarget target_;
  Waiter waiter_;
  std::shared_ptr<PhyAccount> account_;
  TimeMs end_ = 0;
};

// Uses only the power state that the hardware reports, before and after the order.
Status SakuraPhy::reach(PowerState wanted, const std::string& what, const std::string& operation,
                        DurationMs reserve) {
  TRY(const PhyServer server, find(what, true));
  if (const auto lock = phy_lock(server)) return about(fail(lock->code, lock->words), what);
  TRY(const PowerState now, reported(what, look(server, true, 0)));
  if (now == wanted) return Ok{};
  const Status ordered = account_->post(server.id, "power_control/", Json{{"operation", operation}}, left());
  if (!ordered.ok() && ordered.error().code != Code::timeout) {
    Error error = ordered.error();
    if (error.code == Code::conflict) {  // locked since the list was read; nothing was done
      const auto again = find(what, true);
      if (const auto lock = again.ok() ? phy_lock(*again) : std::nullopt)
        return about(fail(lock->code, lock->words), what);
      error.code = Code::unavailable;
    }
    return about(std::move(error), what);
  }
  // If the order may not have arrived, wait half of the time: the caller can read the state and repeat it.
  const Status reached = wait_for(wanted, what, ordered.ok() ? reserve : std::max(reserve, left() / 2));
  return reached.ok() || ordered.ok() ? reached : about(ordered.error(), what);
}

// Polls the list until it shows a change; reads the machine's own state then and at intervals, since it is
// unknown how often the list is refreshed.
Status SakuraPhy::wait_for(PowerState wanted, const std::string& what, DurationMs reserve) {
  std::string last = "its power state is unknown";
  TimeMs looked = waiter_.now();
  while (left() > reserve + kPoll) {
    pause();
    const auto server = phy_server_of(target_, *account_, {true, kPoll / 2, left()});
    if (!server.ok()) {
      last = server.error().message;
      if (server.error().code == Code::denied) return about(server.error(), what);
      continue;
    }
    const bool shown = server->power == to_string(wanted);
    const bool at_last = left() <= reserve + 2 * kPoll;
    if (!shown && !at_last && waiter_.now() - looked < kLookAgain) continue;
    looked = waiter_.now();
    const auto now = reported(what, look(*server, true, 0));
    if (now.ok() && *now == wanted) return Ok{};
    last = now.ok() ? fmt::format("it is {}", to_string(*now)) : now.error().message;
  }
  return about(fail(Code::timeout, fmt::format("the API accepted the order, but the machine is not {}: {}; "
                                               "to read its power state again, run `muster power state {}`",
                                               to_string(wanted), last, target_.node)),
               what);
}

Result<Json> SakuraPhy::describe(DurationMs deadline) {
  begin(deadline);
  TRY(const PhyServer server, find("describe", false));
  TRY(const PowerState power, reported("describe", look(server, false, kLookAge)));
  Json networks = Json::array();
  const auto ports = server.raw.find("ports");
  if (ports != server.raw.end() && ports->is_array())
    for (const Json& port : *ports)
      if (port.is_object())
        networks.push_back({{"port", port.value("port_id", Json())},
                            {"nickname", port.value("nickname", Json())},
                            {"mode", port.value("mode", Json())},
                            {"enabled", port.value("enabled", Json())},
                            {"internet", port.value("internet", Json())},
                            {"private_networks", port.value("private_networks", Json())}});
  return Json{{"driver", "sakura-phy"},
              {"network_boot", false},
              {"server", server.id},
              {"service", server.service},
              {"nickname", server.nickname},
              {"power", std::string(to_string(power))},
              {"lock", server.lock},
              {"address", server.address},
              {"zone", server.raw.value("zone", Json())},
              {"hardware", server.raw.value("spec", Json())},
              {"ports", networks}};
}

TimeMs time_of_day() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<TimeMs>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

// Rejects another node's server before anything is pinned or done: it is unknown which node is right.
Status is_no_other_nodes(const PowerTarget& target, const PhyServer& server) {
  for (const std::string& name : {server.id, kPin + server.id, server.nickname}) {
    const auto other = target.servers_of_others.find(name);
    if (name.empty() || other == target.servers_of_others.end()) continue;
    return fail(
        Code::denied,
        fmt::format("'{}' leads to server {} ({}), which belongs to {}: nothing was done. Name each node's "
                    "own server by its id; if {} no longer has that server, run `muster node rm {}` to "
                    "remove that record",
                    target.address, server.id, server.nickname, other->second, other->second, other->second));
  }
  return Ok{};
}

// Rejects the controller's own server. The provider reports no MAC and no UUID: before its system is reached,
// a server can be identified only by address and nickname.
Status is_not_ours(const PowerTarget& target, const PhyServer& server) {
  for (const std::string& name : {server.address, lower(server.nickname)})
    if (!name.empty() && target.own_names.count(name))
      return fail(Code::denied,
                  fmt::format("own-machine: the controller runs on server {} ('{}' belongs to the controller "
                              "host): muster neither installs it nor controls its power",
                              server.id, name));
  return Ok{};
}

}  // namespace

Result<PhyServer> phy_server_of(const PowerTarget& target, PhyAccount& account, const PhyQuery& request) {
  TRY(const PhyServer server, account.server(target.address, request));
  TRY_(is_no_other_nodes(target, server));
  if (request.for_order) {
    TRY_(is_not_ours(target, server));
  }
  const std::string pin = kPin + server.id;
  if (target.pin_sha256.empty()) {
    if (target.on_pin) target.on_pin(pin);
    return server;
  }
  if (target.pin_sha256 != pin)
    return fail(Code::denied,
                fmt::format("'{}' leads to server {}, but {} used {} until now: nothing was done; if the "
                            "machine was replaced, run `muster node rm {}` to remove the old record",
                            target.address, server.id, target.node, target.pin_sha256, target.node));
  return server;
}

std::unique_ptr<Power> make_sakura_phy(PowerTarget target, Waiter waiter,
                                       std::shared_ptr<PhyAccount> account) {
  return std::make_unique<SakuraPhy>(std::move(target), std::move(waiter), std::move(account));
}

PowerDriver sakura_phy_driver() {
  PowerDriver driver;
  driver.name = "sakura-phy";
  driver.help =
      "Controls the power of a rented machine (Sakura dedicated server PHY) through the provider's API and, "
      "with `power.install`, reinstalls it. Needs `address` (the server's id or nickname) and `secret` (the "
      "account's TOKEN:SECRET).";
  // All servers of an account share one budget, so all drivers of this process share the account objects.
  const auto accounts = std::make_shared<PhyAccounts>(real_waiter(), time_of_day);
  const auto account_of = [accounts](const PowerTarget& target) -> Result<std::shared_ptr<PhyAccount>> {
    if (target.user.empty() || target.password.empty())
      return fail(Code::invalid, "sakura-phy: the secret must have the form TOKEN:SECRET");
    return accounts->of(target.api, target.user, target.password, target.state);
  };
  driver.make = [account_of](PowerTarget target) -> Result<std::unique_ptr<Power>> {
    TRY(auto account, account_of(target));
    return make_sakura_phy(std::move(target), real_waiter(), std::move(account));
  };
  driver.reinstall = [account_of](PowerTarget target) -> Result<std::unique_ptr<Reinstall>> {
    TRY(auto account, account_of(target));
    return make_phy_install(std::move(target), std::move(account));
  };
  return driver;
}

namespace {

// Maximum age of the list of servers, short enough that it shows an installation that was just accepted.
constexpr DurationMs kServerListAge = 15 * kSecond;

class PhyInstall : public Reinstall {
 public:
  PhyInstall(PowerTarget target, std::shared_ptr<PhyAccount> account)
      : target_(std::move(target)), account_(std::move(account)) {}

  Result<Ready> prepare(const std::string& image, DurationMs deadline) override;
  Status begin(const Order& order, DurationMs deadline) override;
  Result<Look> look(const std::string& server, DurationMs deadline) override;

 private:
  Error about(Error error, const std::string& what) const {
    return std::move(error).with(fmt::format("{} (server {}), {}", target_.node, target_.address, what));
  }
  // `name`: the recorded server; "" if none is recorded yet.
  Result<PhyServer> unlocked(const std::string& name, DurationMs deadline) {
    const PhyQuery query{true, 0, deadline};
    TRY(PhyServer server, name.empty() ? phy_server_of(target_, *account_, query) : only(name, query));
    if (const auto lock = phy_lock(server)) return fail(lock->code, lock->words);
    return server;
  }
  // Returns the server that the node's address leads to, if it is the recorded one.
  Result<PhyServer> only(const std::string& server, const PhyQuery& query) {
    TRY(PhyServer found, phy_server_of(target_, *account_, query));
    if (found.id == server) return found;
    return fail(
        Code::denied,
        fmt::format("the node's installation was started on server {}, but '{}' leads to server {}: nothing "
                    "was done; `muster node rm {}` removes the record of that installation",
                    server, target_.address, found.id, target_.node));
  }
  Result<Json> image_named(const PhyServer& server, const std::string& image, DurationMs deadline);

  PowerTarget target_;
  std::shared_ptr<PhyAccount> account_;
};

Result<Json> PhyInstall::image_named(const PhyServer& server, const std::string& image, DurationMs deadline) {
  TRY(const Json answer, account_->get(server.id, "os_images/", {true, 0, deadline}));
  const Json images = answer.is_object() ? answer.value("os_images", Json()) : Json();
  std::string known;
  for (const Json& one : images.is_array() ? images : Json::array()) {
    const std::string id = text_at(one, "os_image_id");
    if (id == image) return one;
    known += (known.empty() ? "" : ", ") + id;
  }
  return fail(Code::invalid,
              fmt::format("there is no image '{}' for this server (power.install.image); available: {}",
                          image, known.empty() ? "none" : known.substr(0, 400)));
}

Result<Reinstall::Ready> PhyInstall::prepare(const std::string& image, DurationMs deadline) {
  const char* what = "checking whether the server can be reinstalled";
  auto server = unlocked("", deadline);
  if (!server.ok()) return about(std::move(server).error(), what);
  auto found = image_named(*server, image, deadline);
  if (!found.ok()) return about(std::move(found).error(), what);
  if (!is_true_at(*found, "public_key_authentication"))
    return about(fail(Code::invalid, fmt::format("image '{}' accepts no SSH keys, so muster could not log in "
                                                 "to it: choose another one (power.install.image)",
                                                 image)),
                 what);
  Ready ready;
  ready.server = server->id;
  ready.address = server->address;
  ready.user = text_at(*found, "superuser_name");
  if (ready.user.empty()) ready.user = "root";
  ready.needs_password = is_true_at(*found, "require_password");
  return ready;
}

// Sends all five fields: the published API description requires only one of them, its copy in the client
// libraries all five. Manual partitioning at a console is not possible.
Status PhyInstall::begin(const Order& order, DurationMs deadline) {
  const char* what = "reinstalling the operating system";
  if (!order.permit)
    return about(fail(Code::invalid, "internal error: the order has no cancellation permit"), what);
  if (order.server.empty())
    return about(fail(Code::invalid, "no server is recorded for this installation"), what);
  const auto server = unlocked(order.server, deadline);
  if (!server.ok()) return about(server.error(), what);
  const Json body = {{"os_image_id", order.image},
                     {"password", order.password},
                     {"manual_partition", false},
                     {"ssh_public_keys", {order.public_key}},
                     {"allow_password_login", false}};
  const Status begun = account_->post(server->id, "os_install/", body, deadline,
                                      [permit = order.permit] { return permit->take(); });
  if (begun.ok()) return Ok{};
  return about(begun.error(), what);
}

Result<Reinstall::Look> PhyInstall::look(const std::string& name, DurationMs deadline) {
  const auto server = only(name, {false, kServerListAge, deadline});
  if (!server.ok()) return about(server.error(), "reading the state of the installation");
  if (server->lock == "os_install") return Look::installing;
  const auto lock = phy_lock(*server);
  if (!lock) return Look::idle;
  if (lock->code == Code::denied) return about(fail(lock->code, lock->words), "installing it");
  return Look::busy;
}

}  // namespace

std::unique_ptr<Reinstall> make_phy_install(PowerTarget target, std::shared_ptr<PhyAccount> account) {
  return std::make_unique<PhyInstall>(std::move(target), std::move(account));
}

}  // namespace muster
