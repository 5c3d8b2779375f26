#include "controller/power/redfish.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/lower.h"
#include "base/machine_uuid.h"
#include "controller/power/redfish_client.h"

namespace muster {

namespace {

constexpr DurationMs kFirstPoll = 250, kRedfishPoll = 2 * kSecond;
constexpr DurationMs kMember =
    15 * kSecond;  // per system, so that a system that hangs does not use up the call's time
constexpr DurationMs kConflictPause = 5 * kSecond;
// "On" may be refused for this long after a power-off: iDRAC 10 takes 62 s.
constexpr DurationMs kConflictLasts = 90 * kSecond;
// A machine that a different client switched shows its old state for some seconds, and refuses the order.
constexpr DurationMs kShownLate = 10 * kSecond;

std::vector<std::string> texts(const Json& list) {
  std::vector<std::string> out;
  if (list.is_array())
    for (const Json& item : list)
      if (item.is_string()) out.push_back(item.get<std::string>());
  return out;
}

bool is_listed(const std::vector<std::string>& list, const std::string& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

struct System {
  std::string path;
  Json body;
  std::string shown_uuid() const { return json_text(body, "UUID"); }
  // "" also for a placeholder that does not identify a machine.
  std::string uuid() const { return machine_of(shown_uuid()); }
  const Json& reset() const { return json_at(body, {"Actions", "#ComputerSystem.Reset"}); }
  PowerState power() const {
    const std::string word = json_text(body, "PowerState");
    return word == "On" ? PowerState::on : word == "Off" ? PowerState::off : PowerState::unknown;
  }
};

struct Seen {
  struct Unread {
    std::string path;
    Error error;
    bool answered = false;  // true: the BMC reported that it cannot be read; false: no response
  };
  std::vector<System> able;  // can be reset
  std::vector<Unread> unread;
  bool matched = false;  // `able` is the one system with the node's UUID
};

class Redfish : public Power {
 public:
  Redfish(PowerTarget target, Waiter waiter, HttpClients http)
      : node_(target.node),
        address_(target.address),
        expected_uuid_(machine_of(target.expected_uuid)),
        machines_(target.machines),
        client_(std::move(target), std::move(waiter), std::move(http)) {}

  Result<PowerState> state(DurationMs deadline) override {
    client_.begin(deadline);
    TRY(const System system, read_system());
    return system.power();
  }

  Status on(DurationMs deadline) override {
    client_.begin(deadline);
    return reach(PowerState::on, {"On", "ForceOn", "PushPowerButton"}, 0);
  }

  Status off(DurationMs deadline, bool graceful) override {
    client_.begin(deadline);
    if (graceful) {
      const Status polite = reach(PowerState::off, {"GracefulShutdown", "PushPowerButton"}, deadline / 2);
      if (polite.ok() || polite.error().code == Code::denied) return polite;
    }
    return reach(PowerState::off, {"ForceOff"}, 0);
  }

  Status boot_once_network(DurationMs deadline) override;
  Result<Json> describe(DurationMs deadline) override;

 private:
  Result<std::string> find_system();
  Result<std::vector<std::string>> member_paths(std::string page);
  Status look_at(const std::vector<std::string>& paths, Seen& seen);
  Result<std::string> choose(const Seen& seen, size_t members) const;
  Result<System> read_system();
  Result<std::vector<std::string>> reset_types(const System& system);
  Status reach(PowerState wanted, const std::vector<std::string>& preferred, DurationMs reserve);
  Status order(const System& system, const std::string& type);
  Result<bool> shows(PowerState wanted, DurationMs span, System& system);
  Status wait_for(PowerState wanted, DurationMs reserve);
  Result<System> boot_resource(const System& system);
  Status write_boot(const System& resource);
  Status offers_network(const System& system, const System& resource) const;
  Status confirm_boot(const System& system, const System& resource);

  const std::string node_, address_, expected_uuid_;
  const std::shared_ptr<const Machines> machines_;
  RedfishClient client_;
  std::string system_path_, vendor_, product_, version_;
};

Result<std::string> Redfish::find_system() {
  TRY(const RedfishAnswer root, client_.get("/redfish/v1/"));
  vendor_ = json_text(root.body, "Vendor");
  product_ = json_text(root.body, "Product");
  version_ = json_text(root.body, "RedfishVersion");
  std::string page = json_text(json_at(root.body, {"Systems"}), "@odata.id");
  if (page.empty()) return fail(Code::invalid, fmt::format("BMC {} lists no systems", address_));
  TRY(const auto paths, member_paths(std::move(page)));
  Seen seen;
  TRY_(look_at(paths, seen));
  if (!seen.matched && seen.able.size() == 1 && !seen.unread.empty()) {
    // Only one system is left because others could not be read. Read again: only a system that remains
    // unreadable is a part that loses power with the host.
    client_.pause(kRedfishPoll);
    std::vector<std::string> again;
    for (const auto& one : std::exchange(seen.unread, {})) again.push_back(one.path);
    TRY_(look_at(again, seen));
  }
  return choose(seen, paths.size());
}

Result<std::vector<std::string>> Redfish::member_paths(std::string page) {
  std::vector<std::string> paths;
  for (int pages = 0; !page.empty() && pages < 16; ++pages) {
    TRY(const RedfishAnswer list, client_.get(page));
    for (const Json& member : json_at(list.body, {"Members"}))
      if (const std::string path = json_text(member, "@odata.id"); !path.empty()) paths.push_back(path);
    page = json_text(list.body, "Members@odata.nextLink");
  }
  if (paths.empty())
    return fail(Code::unavailable, fmt::format("BMC {} lists no systems", address_));  // it starts
  return paths;
}

// Reads these members; stops at the one that is certainly the node's machine.
Status Redfish::look_at(const std::vector<std::string>& paths, Seen& seen) {
  for (const std::string& path : paths) {
    auto answer = paths.size() > 1 || !seen.able.empty() ? client_.look(path, kMember)
                                                         : client_.look(path, client_.left());
    const bool answered = answer.ok() && answer->status / 100 != 2;
    const auto read = answer.ok() ? client_.readable(std::move(*answer), path) : std::move(answer);
    if (!read.ok() && read.error().code == Code::denied) return read.error();
    if (!read.ok()) {
      seen.unread.push_back({path, read.error(), answered});
      continue;
    }
    System system{path, read->body};
    if (json_text(system.reset(), "target").empty()) continue;
    seen.matched = !expected_uuid_.empty() && same_uuid(system.uuid(), expected_uuid_);
    if (seen.matched) seen.able.clear();
    seen.able.push_back(std::move(system));
    if (seen.matched) break;
  }
  return Ok{};
}

// A system that cannot be read may be the node's machine or another. The remaining system is used only if
// nothing contradicts it: it can be reset, shows no other machine's UUID, and the BMC reported twice that the
// others cannot be read, as for a DGX that is off: its baseboard loses power with the host.
Result<std::string> Redfish::choose(const Seen& seen, size_t members) const {
  const bool bound = !expected_uuid_.empty();
  if (seen.matched) return seen.able.front().path;
  const bool single = seen.able.size() == 1;
  if (single && seen.unread.empty())
    return seen.able.front().path;  // read_system() refuses another machine's
  const bool all_answered =
      std::all_of(seen.unread.begin(), seen.unread.end(), [](const auto& one) { return one.answered; });
  if (single && all_answered && (!bound || seen.able.front().shown_uuid().empty()))
    return seen.able.front().path;
  if (!seen.unread.empty() && (bound || seen.able.size() < 2)) {
    const Error& first = seen.unread.front().error;
    // Nothing was done, and the cause may be temporary.
    const Code code = first.code == Code::failed ? Code::failed : Code::unavailable;
    return fail(
        code, fmt::format(
                  "{} of the {} systems of BMC {} cannot be read, so {} cannot be identified among them: {}",
                  seen.unread.size(), members, address_, node_, first.message));
  }
  const std::string which =
      bound ? fmt::format("none of them is machine {}", expected_uuid_) : "exactly one is needed";
  return fail(
      bound ? Code::denied : Code::invalid,
      fmt::format("BMC {} lists {} systems that can be reset; {}", address_, seen.able.size(), which));
}

Result<System> Redfish::read_system() {
  if (system_path_.empty()) {
    TRY(system_path_, find_system());
  }
  TRY(RedfishAnswer answer, client_.get(system_path_));
  System system{system_path_, std::move(answer.body)};
  // Checked on every read: cables get swapped, addresses get reused.
  if (!expected_uuid_.empty() && !system.uuid().empty() && !same_uuid(system.uuid(), expected_uuid_))
    return fail(Code::denied,
                fmt::format("BMC {} controls machine {}, but {} is machine {}: nothing was done", address_,
                            lower(system.uuid()), node_, expected_uuid_));
  if (const std::string other = expected_uuid_.empty() && machines_ ? machines_->node_of(system.uuid()) : "";
      !other.empty())
    return fail(
        Code::denied,
        fmt::format("BMC {} controls machine {}, which is node {}, but {} was never seen: nothing was "
                    "done. Find out which machine has that address and correct power.address of {}; if that "
                    "machine is meant to be {}, remove {} from the spec, then run `muster node rm {}`",
                    address_, lower(system.uuid()), other, node_, node_, node_, other, other));
  return system;
}

// Empty: not reported. Some BMCs link to a list that does not exist; they refuse unsupported types anyway.
Result<std::vector<std::string>> Redfish::reset_types(const System& system) {
  auto types = texts(json_at(system.reset(), {"ResetType@Redfish.AllowableValues"}));
  const std::string info = json_text(system.reset(), "@Redfish.ActionInfo");
  if (!types.empty() || info.empty()) return types;
  TRY(RedfishAnswer looked, client_.look(info, client_.left()));
  if (looked.status / 100 == 4 && looked.status != 401 && looked.status != 403 && looked.status != 429)
    return types;
  TRY(const RedfishAnswer answer, client_.readable(std::move(looked), info));
  for (const Json& parameter : json_at(answer.body, {"Parameters"}))
    if (json_text(parameter, "Name") == "ResetType") types = texts(json_at(parameter, {"AllowableValues"}));
  return types;
}

Status Redfish::order(const System& system, const std::string& type) {
  TRY_(client_.post(json_text(system.reset(), "target"), {{"ResetType", type}}));
  return Ok{};
}

// Polls until the state was read back, stopping `reserve` before the deadline. Responses to orders are only
// hints; the state decides.
Status Redfish::reach(PowerState wanted, const std::vector<std::string>& preferred, DurationMs reserve) {
  TRY(System system, read_system());
  if (system.power() == wanted) return Ok{};
  TRY(const auto types, reset_types(system));
  const auto listed = std::find_if(preferred.begin(), preferred.end(),
                                   [&](const auto& one) { return is_listed(types, one); });
  if (listed == preferred.end() && !types.empty())
    return fail(Code::invalid, fmt::format("BMC {} supports none of the reset types {}", address_,
                                           fmt::join(preferred, ", ")));
  const std::string type = listed == preferred.end() ? preferred.front() : *listed;
  for (bool refused = false;; refused = true) {
    const Status answer = order(system, type);
    const Code code = answer.ok() ? Code::conflict : answer.error().code;
    if (answer.ok() || code == Code::timeout) {
      const Status reached = wait_for(wanted, kept_for_another_try(answer.ok(), reserve, client_.left()));
      return reached.ok() || answer.ok() ? reached : answer;
    }
    if (code == Code::denied || code == Code::unavailable) return answer;
    // 409: the machine is already in that state, or the order is not possible yet. Other errors: it is
    // already in that state, or the order is never possible.
    const bool later = code == Code::conflict;
    if (later && wanted == PowerState::on && !refused) client_.at_least(kConflictLasts);
    if (later && client_.left() <= reserve + kConflictPause)
      return fail(Code::unavailable, answer.error().message);
    TRY(const bool is_so,
        shows(wanted, later ? kConflictPause : std::min(kShownLate, client_.left() - reserve), system));
    if (is_so) return Ok{};
    if (!later) return answer;
  }
}

// Whether the state shows within this time. An Error: another machine or certificate, or a rejected password.
Result<bool> Redfish::shows(PowerState wanted, DurationMs span, System& system) {
  for (const DurationMs until = client_.left() - span; client_.left() > std::max<DurationMs>(until, 0);) {
    client_.pause(std::min(kRedfishPoll, client_.left() - until));
    auto now = read_system();
    if (!now.ok() && now.error().code == Code::denied) return now.error();
    if (now.ok()) system = std::move(*now);
    if (now.ok() && system.power() == wanted) return true;
  }
  return false;
}

// BMCs rebuild their resource tree around power changes and return unusual errors meanwhile: all are retried
// except a different machine or certificate, or a rejected password.
Status Redfish::wait_for(PowerState wanted, DurationMs reserve) {
  std::string last = "unknown";
  for (DurationMs poll = kFirstPoll; client_.left() > reserve; poll = std::min(2 * poll, kRedfishPoll)) {
    const auto system = read_system();
    if (system.ok() && system->power() == wanted) return Ok{};
    if (system.ok())
      last = json_text(system->body, "PowerState");
    else if (system.error().code == Code::denied)
      return system.error();
    else
      last = "unreadable: " + system.error().message;
    client_.pause(poll);
  }
  return fail(Code::timeout,
              fmt::format("BMC {} accepted the order, but the machine is not {} (last state: {})", address_,
                          to_string(wanted), last.empty() ? "unknown" : last));
}

// The override goes to the settings object if that has the property, else to the system.
Result<System> Redfish::boot_resource(const System& system) {
  const std::string settings =
      json_text(json_at(system.body, {"@Redfish.Settings", "SettingsObject"}), "@odata.id");
  if (settings.empty()) return system;
  TRY(RedfishAnswer answer, client_.get(settings));
  if (json_at(answer.body, {"Boot", "BootSourceOverrideTarget"}).is_null() &&
      json_at(answer.body, {"Boot", "BootSourceOverrideTarget@Redfish.AllowableValues"}).is_null())
    return system;
  return System{settings, std::move(answer.body)};
}

Status Redfish::offers_network(const System& system, const System& resource) const {
  auto targets = texts(json_at(resource.body, {"Boot", "BootSourceOverrideTarget@Redfish.AllowableValues"}));
  if (targets.empty())
    targets = texts(json_at(system.body, {"Boot", "BootSourceOverrideTarget@Redfish.AllowableValues"}));
  if (targets.empty() || is_listed(targets, "Pxe")) return Ok{};
  return fail(Code::invalid, fmt::format("BMC {} cannot boot from the network once", address_));
}

Status Redfish::write_boot(const System& resource) {
  Json boot = {{"BootSourceOverrideEnabled", "Once"}, {"BootSourceOverrideTarget", "Pxe"}};
  const Json& shown = json_at(resource.body, {"Boot"});
  if (!shown.contains("BootSourceOverrideMode") &&
      !shown.contains("BootSourceOverrideMode@Redfish.AllowableValues")) {
    TRY_(client_.patch(resource.path, {{"Boot", boot}}));
    return Ok{};
  }
  Json with_mode = boot;
  with_mode["BootSourceOverrideMode"] = "UEFI";
  const auto written = client_.patch(resource.path, {{"Boot", with_mode}});
  if (written.ok()) return Ok{};
  // HPE does not allow writing the mode.
  if (written.error().code != Code::invalid || !client_.moved_to().empty()) return written.error();
  TRY_(client_.patch(resource.path, {{"Boot", boot}}));
  return Ok{};
}

// The override as the resource shows it. Supermicro shows UefiBootNext for an accepted Pxe; Continuous is
// accepted as well: docs/decisions/0013-power-drivers.md.
struct Override {
  explicit Override(const Json& resource)
      : enabled(json_text(json_at(resource, {"Boot"}), "BootSourceOverrideEnabled")),
        target(json_text(json_at(resource, {"Boot"}), "BootSourceOverrideTarget")) {}
  bool network() const {
    return (enabled == "Once" || enabled == "Continuous") && (target == "Pxe" || target == "UefiBootNext");
  }
  std::string enabled, target;
};

// Reads the override from the resource to which it was written; or from the system itself if a settings
// object does not show it yet, or no longer shows it because its settings were applied at once. An override
// that the system showed before the order proves nothing: it may be left from the last boot.
Status Redfish::confirm_boot(const System& system, const System& resource) {
  const bool before = Override(system.body).network();
  std::string seen;
  for (int look = 0; look < 5; ++look) {
    if (look > 0) client_.pause(kRedfishPoll);
    const auto answer = client_.get(resource.path);
    if (!answer.ok() && answer.error().code == Code::denied) return answer.error();
    if (!answer.ok()) {  // as in wait_for()
      seen = answer.error().message;
      continue;
    }
    const Override shown(answer->body);
    if (shown.network()) return Ok{};
    seen = shown.enabled + " " + shown.target;
    if (resource.path == system.path || (before && !shown.enabled.empty())) continue;
    const auto now = read_system();
    if (!now.ok() && now.error().code == Code::denied) return now.error();
    if (now.ok() && Override(now->body).network()) return Ok{};
  }
  return fail(Code::failed,
              fmt::format("BMC {} accepted the boot override but reports '{}'", address_, seen));
}

Status Redfish::boot_once_network(DurationMs deadline) {
  client_.begin(deadline);
  TRY(const System system, read_system());
  TRY(System resource, boot_resource(system));
  TRY_(offers_network(system, resource));
  Status written = write_boot(resource);
  // AMI: the refusal names a different resource. It must be below the system, so that it is this machine's.
  if (const std::string moved = client_.moved_to();
      !written.ok() && moved != resource.path && moved.starts_with(system.path + "/")) {
    TRY(RedfishAnswer answer, client_.get(moved));
    resource = System{moved, std::move(answer.body)};
    TRY_(offers_network(system, resource));
    written = write_boot(resource);
  }
  // 409: not possible yet.
  if (!written.ok() && written.error().code == Code::conflict)
    return fail(Code::unavailable, written.error().message);
  // Some BMCs refuse the override but set it (Dell), or accept but do not set it: what is read back counts.
  if (!written.ok() && written.error().code != Code::invalid && written.error().code != Code::timeout)
    return written;
  const Status confirmed = confirm_boot(system, resource);
  return confirmed.ok() || written.ok() ? confirmed : written;
}

Result<Json> Redfish::describe(DurationMs deadline) {
  client_.begin(deadline);
  TRY(const System system, read_system());
  TRY(const auto types, reset_types(system));
  TRY(const System resource, boot_resource(system));
  const Json& boot = json_at(resource.body, {"Boot"});
  return Json{{"driver", "redfish"},
              {"address", address_},
              {"vendor", vendor_},
              {"product", product_},
              {"redfish", version_},
              {"system", system.path},
              {"manufacturer", json_text(system.body, "Manufacturer")},
              {"model", json_text(system.body, "Model")},
              {"serial", json_text(system.body, "SerialNumber")},
              {"uuid", lower(system.shown_uuid())},
              {"power", std::string(to_string(system.power()))},
              {"reset_types", types},
              {"boot_targets", texts(json_at(boot, {"BootSourceOverrideTarget@Redfish.AllowableValues"}))},
              {"boot_override", json_text(boot, "BootSourceOverrideEnabled") + " " +
                                    json_text(boot, "BootSourceOverrideTarget")},
              {"boot_written_to", resource.path},
              {"certificate", client_.fingerprint()}};
}

}  // namespace

std::unique_ptr<Power> make_redfish(PowerTarget target, Waiter waiter, HttpClients http) {
  return std::make_unique<Redfish>(std::move(target), std::move(waiter), std::move(http));
}

PowerDriver redfish_driver() {
  return {"redfish",
          "Controls power and sets a one-time network boot through a BMC with Redfish over HTTPS. Needs "
          "`address` and `secret` (user:password); the certificate is pinned on first use.",
          [](PowerTarget target) -> Result<std::unique_ptr<Power>> {
            if (target.address.empty()) return fail(Code::invalid, "redfish: `address` is missing");
            return make_redfish(target, waiter_of(target));
          }};
}

}  // namespace muster
