#include "controller/power/ipmi.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/machine_uuid.h"
#include "controller/power/ipmitool.h"

namespace muster {

namespace {

constexpr DurationMs kIpmiPoll = 5 * kSecond;

// IPMI 2.0, sections 20.8, 28.2, 28.3, 28.12, 28.13.
const IpmiBytes kGetGuid = {0x06, 0x37}, kGetDevice = {0x06, 0x01}, kChassisStatus = {0x00, 0x01};
const IpmiBytes kPowerOn = {0x00, 0x02, 0x01}, kPowerOff = {0x00, 0x02, 0x00}, kSoftOff = {0x00, 0x02, 0x05};
// Keeps boot flags valid even if no power command follows within 60 s; OpenBMC rejects this parameter.
const IpmiBytes kKeepBootFlags = {0x00, 0x08, 0x03, 0x08};
// Valid, UEFI, once; device PXE. Sent as bytes since ipmitool's `options=` lost the UEFI bit up to 1.8.18.
const IpmiBytes kBootNetworkOnce = {0x00, 0x08, 0x05, 0xa0, 0x04, 0x00, 0x00, 0x00};
const IpmiBytes kGetBootFlags = {0x00, 0x09, 0x05, 0x00, 0x00};
constexpr int kUnknownCommand = 0xc1;

// Boot option parameter 5 (the boot flags) as read back.
struct BootFlags {
  IpmiBytes raw;
  bool readable() const { return raw.size() >= 4 && (raw[1] & 0x7f) == 5; }
  bool valid() const { return readable() && raw[2] & 0x80; }
  bool uefi() const { return readable() && raw[2] & 0x20; }
  bool network() const { return readable() && ((raw[3] >> 2) & 0xf) == 1; }
};

// Formats 16 bytes as a UUID, in the order in which they were received.
std::string uuid_of(const IpmiBytes& bytes) {
  const std::string hex = hex_of(bytes);
  if (hex.size() != 32) return "";
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

class Ipmi : public Power {
 public:
  Ipmi(PowerTarget target, Waiter waiter, std::shared_ptr<Process> process)
      : target_(target), tool_(std::move(target), std::move(waiter), std::move(process)) {}

  Result<PowerState> state(DurationMs deadline) override {
    tool_.begin(deadline);
    return look();
  }
  Status on(DurationMs deadline) override {
    tool_.begin(deadline);
    TRY_(reach(PowerState::on, kPowerOn, 0));
    armed_ = false;
    return Ok{};
  }
  Status off(DurationMs deadline, bool graceful) override {
    tool_.begin(deadline);
    if (graceful) {
      const Status polite = reach(PowerState::off, kSoftOff, deadline / 2);
      if (polite.ok() || polite.error().code == Code::denied) return polite;
    }
    return reach(PowerState::off, kPowerOff, 0);
  }
  Status boot_once_network(DurationMs deadline) override {
    tool_.begin(deadline);
    TRY_(look());
    return arm();
  }
  Result<Json> describe(DurationMs deadline) override;

 private:
  Result<PowerState> look();
  Result<std::vector<IpmiBytes>> query_with_guid(std::vector<IpmiBytes> commands);
  Status check_identity(const IpmiBytes& guid);
  Status reach(PowerState wanted, const IpmiBytes& order, DurationMs reserve);
  Status wait_for(PowerState wanted, DurationMs reserve);
  Status arm();
  Status keep_armed();

  PowerTarget target_;
  IpmiTool tool_;
  bool no_guid_ = false;  // the BMC does not support the command
  std::string guid_;      // as reported; "" if it does not identify a machine
  // True if this object set the next boot to the network and that boot has not begun.
  bool armed_ = false;
  bool shows_validity_ = false;  // some BMCs and simulators clear the valid bit at once
  BootFlags flags_;              // as last read
};

// Sends commands, preceded by a request for the GUID, so that every access to a BMC checks its identity.
Result<std::vector<IpmiBytes>> Ipmi::query_with_guid(std::vector<IpmiBytes> commands) {
  if (!no_guid_) {
    auto with = commands;
    with.insert(with.begin(), kGetGuid);
    auto answers = tool_.request(with);
    if (answers.ok()) {
      TRY_(check_identity(answers->front()));
      answers->erase(answers->begin());
      return answers;
    }
    if (tool_.refusal().command != kGetGuid[1] || tool_.refusal().completion != kUnknownCommand)
      return answers;
    no_guid_ = true;
  }
  TRY_(check_identity({}));
  return tool_.request(commands);
}

// Vendors store the GUID in three byte orders: as printed, as in SMBIOS, and completely reversed.
Status Ipmi::check_identity(const IpmiBytes& guid) {
  const std::string shown = uuid_of(guid), reversed = uuid_of({guid.rbegin(), guid.rend()});
  guid_ = names_one_machine(shown) ? shown : "";
  const std::string pin = guid_.empty() ? "" : "guid:" + hex_of(guid);
  const std::string whose = fmt::format("BMC {} has {}", target_.address,
                                        guid_.empty() ? "no GUID" : fmt::format("the GUID {}", pin));
  if (!target_.pin_sha256.empty() && target_.pin_sha256 != pin)
    return fail(
        Code::denied,
        fmt::format("{}, but the BMC pinned for {} has {}: nothing was done. If the BMC was replaced, set "
                    "power.pin, or run `muster node rm {}` to have it pinned again",
                    whose, target_.node, target_.pin_sha256, target_.node));
  if (guid_.empty()) return Ok{};  // BMCs without a GUID cannot be distinguished
  const std::string expected = machine_of(target_.expected_uuid);
  const bool same = same_uuid(shown, expected) || same_uuid(reversed, expected);
  if (!expected.empty() && !same && target_.pin_sha256.empty())
    return fail(Code::denied, fmt::format("{}, but {} is machine {}: nothing was done. If that BMC does "
                                          "belong to the node, set power.pin to {}",
                                          whose, target_.node, expected, pin));
  if (expected.empty() && target_.machines) {
    std::string other = target_.machines->node_of(shown);
    if (other.empty()) other = target_.machines->node_of(reversed);
    if (!other.empty())
      return fail(Code::denied,
                  fmt::format("{}, which is node {}, but {} was never seen: nothing was done. Find out "
                              "which machine has that address and correct power.address of {}",
                              whose, other, target_.node, target_.node));
  }
  if (target_.pin_sha256.empty()) {
    target_.pin_sha256 = pin;
    if (target_.on_pin) target_.on_pin(pin);
  }
  return Ok{};
}

Result<PowerState> Ipmi::look() {
  auto answers = query_with_guid({kChassisStatus});
  // A query changes nothing, so it may be retried after an unknown outcome.
  if (!answers.ok()) {
    Error error = std::move(answers).error();
    if (error.code == Code::timeout || error.code == Code::conflict) error.code = Code::unavailable;
    return error;
  }
  const IpmiBytes& status = answers->front();
  if (status.size() < 3) return PowerState::unknown;
  return status[0] & 1 ? PowerState::on : PowerState::off;
}

// Polls until the state was read back, stopping `reserve` before the deadline. Nothing else is success.
Status Ipmi::reach(PowerState wanted, const IpmiBytes& order, DurationMs reserve) {
  for (;;) {
    TRY(const PowerState now, look());
    if (now == wanted) return Ok{};
    if (wanted == PowerState::on && armed_) TRY_(keep_armed());
    const auto answer = tool_.request({order});
    if (answer.ok() || answer.error().code == Code::timeout) {
      const Status reached = wait_for(wanted, kept_for_another_try(answer.ok(), reserve, tool_.left()));
      return reached.ok() || answer.ok() ? reached : answer.error();
    }
    if (answer.error().code != Code::conflict) return answer.error();
    // "Not in present state": the machine is already in that state, or the order is not possible yet.
    if (tool_.left() <= reserve + 2 * kIpmiPoll) return fail(Code::unavailable, answer.error().message);
    tool_.pause(kIpmiPoll);
  }
}

Status Ipmi::wait_for(PowerState wanted, DurationMs reserve) {
  std::string last = "unknown";
  while (tool_.left() > reserve) {
    const auto now = look();
    if (now.ok() && *now == wanted) return Ok{};
    if (!now.ok() && now.error().code == Code::denied) return now.error();
    last = now.ok() ? std::string(to_string(*now)) : "unreadable: " + now.error().message;
    tool_.pause(kIpmiPoll);
  }
  return fail(Code::timeout,
              fmt::format("BMC {} accepted the order, but the machine is not {} (last state: {})",
                          target_.address, to_string(wanted), last));
}

Status Ipmi::arm() {
  const auto kept = tool_.request({kKeepBootFlags});
  // Some BMCs reject this; power-on must then follow within a minute, which on() checks.
  if (!kept.ok() && tool_.refusal().completion < 0) return kept.error();
  TRY(const auto answers, tool_.request({kBootNetworkOnce, kGetBootFlags}));
  flags_ = {answers[1]};
  if (!flags_.network())
    return fail(Code::failed, fmt::format("BMC {} accepted the boot flags but reports '{}'", target_.address,
                                          hex_of(flags_.raw)));
  shows_validity_ = flags_.valid();
  armed_ = true;
  return Ok{};
}

// A BMC that refused to keep the boot flags drops them after 60 s: reads them again before the power-on that
// needs them, and sets them again if they are gone.
Status Ipmi::keep_armed() {
  const auto answers = tool_.request({kGetBootFlags});
  if (!answers.ok()) {
    Error error = answers.error();
    if (error.code == Code::timeout) error.code = Code::unavailable;
    return error;
  }
  flags_ = {answers->front()};
  if (flags_.network() && (flags_.valid() || !shows_validity_)) return Ok{};
  return arm();
}

Result<Json> Ipmi::describe(DurationMs deadline) {
  tool_.begin(deadline);
  TRY(const PowerState power, look());
  TRY(const auto answers, tool_.request({kGetDevice}));
  const IpmiBytes& device = answers.front();
  Json out = {{"driver", "ipmi"},
              {"address", target_.address},
              {"guid", guid_},
              {"power", std::string(to_string(power))},
              {"cipher_suite", tool_.suite()}};
  if (device.size() >= 11) {
    out["firmware"] = fmt::format("{}.{:02x}", device[2] & 0x7f, device[3]);
    out["manufacturer_id"] = device[6] | device[7] << 8 | device[8] << 16;
    out["product_id"] = device[9] | device[10] << 8;
  }
  const auto boot = tool_.request({kGetBootFlags});
  const BootFlags flags = {boot.ok() ? boot->front() : IpmiBytes{}};
  out["boot_flags"] = hex_of(flags.raw);
  out["boots_network_next"] = flags.network();
  return out;
}

}  // namespace

std::unique_ptr<Power> make_ipmi(PowerTarget target, Waiter waiter, std::shared_ptr<Process> process) {
  return std::make_unique<Ipmi>(std::move(target), std::move(waiter), std::move(process));
}

PowerDriver ipmi_driver() {
  return {
      "ipmi",
      "Controls power and sets a one-time network boot through a BMC with IPMI 2.0 (RMCP+), using "
      "the program ipmitool. Needs `address` and `secret` (user:password); the GUID is pinned on first use.",
      [](PowerTarget target) -> Result<std::unique_ptr<Power>> {
        if (target.address.empty()) return fail(Code::invalid, "ipmi: `address` is missing");
        Waiter waiter = waiter_of(target);
        return make_ipmi(std::move(target), std::move(waiter), make_process());
      }};
}

}  // namespace muster
