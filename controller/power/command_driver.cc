#include "controller/power/command_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/machine_uuid.h"
#include "base/printable.h"
#include "base/secrets.h"
#include "base/utf8.h"
#include "sys/own_program.h"

namespace muster {

namespace {

constexpr const char* kFolder = "/etc/muster/power.d";
constexpr DurationMs kRun = 60 * kSecond, kCommandPoll = 2 * kSecond;
constexpr DurationMs kLeastForOrder = 5 * kSecond;  // ended in between, its outcome would be unknown
constexpr size_t kMaxOutput = 256 << 10;

// A path is not allowed: with a path, the spec could name any program on the controller host.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 63 && name.front() != '.' && name.front() != '-' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-") == std::string::npos;
}

PowerState power_of(const Json& seen) {
  const std::string power = text_at(seen, "power");
  return power == "on" ? PowerState::on : power == "off" ? PowerState::off : PowerState::unknown;
}

class CommandPower : public Power {
 public:
  CommandPower(PowerTarget target, Waiter waiter, std::string folder, std::shared_ptr<Process> process)
      : target_(std::move(target)),
        waiter_(std::move(waiter)),
        folder_(std::move(folder)),
        process_(std::move(process)) {}

  Result<PowerState> state(DurationMs deadline) override {
    begin(deadline);
    return look();
  }
  Status on(DurationMs deadline) override {
    begin(deadline);
    return reach(PowerState::on, "on", false, 0);
  }
  Status off(DurationMs deadline, bool graceful) override {
    begin(deadline);
    if (graceful) {
      const Status polite = reach(PowerState::off, "off", true, deadline / 2);
      if (polite.ok() || polite.error().code == Code::denied) return polite;
    }
    return reach(PowerState::off, "off", false, 0);
  }
  Status boot_once_network(DurationMs deadline) override;
  Status can_boot_network(DurationMs deadline) override {
    begin(deadline);
    TRY(const std::string network, network_capability());
    (void)network;
    return Ok{};
  }
  Result<Json> describe(DurationMs deadline) override;

 private:
  void begin(DurationMs deadline) { end_ = waiter_.now() + deadline; }
  DurationMs left() const { return end_ - waiter_.now(); }
  void pause(DurationMs span) { waiter_.sleep(std::max<DurationMs>(0, std::min(span, left()))); }
  Result<Json> request(const std::string& verb, bool changes, Json more = Json::object());
  Result<Json> answer_of(const Output& output, bool changes);
  Error error_of(const Json& error, bool changes);
  Result<Json> see();
  Result<PowerState> look();
  Status check_identity(const std::string& uuid);
  Result<std::string> network_capability();
  Status confirm_network();
  std::string without_password(const std::string& text) const;
  Status reach(PowerState wanted, const std::string& verb, bool graceful, DurationMs reserve);
  Status wait_for(PowerState wanted, DurationMs reserve);

  PowerTarget target_;
  Waiter waiter_;
  const std::string folder_;
  std::shared_ptr<Process> process_;
  TimeMs end_ = 0;
};

Result<Json> CommandPower::request(const std::string& verb, bool changes, Json more) {
  if (left() <= (changes ? kLeastForOrder : 0))
    return fail(Code::unavailable, fmt::format("no time left to run {} {}", target_.program, verb));
  const std::string path = folder_ + "/" + target_.program;
  TRY_(must_be_own_program(folder_, target_.program));
  more["contract"] = 1;
  more["verb"] = verb;
  more["node"] = target_.node;
  more["address"] = target_.address;
  more["uuid"] = target_.expected_uuid;
  more["deadline_s"] = std::max<DurationMs>(1, std::min(left(), kRun) / kSecond);
  if (!target_.user.empty()) more["user"] = target_.user;
  if (!target_.password.empty()) more["password"] = target_.password;
  Command command;
  command.argv = {path};
  command.input = dump_json(more) + "\n";
  command.env = {{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                 {"LC_ALL", "C.UTF-8"},
                 {"HOME", "/root"}};
  command.clean_env = true;
  command.cwd = "/";
  command.deadline = std::min(left(), kRun);
  command.max_output = kMaxOutput;
  auto output = process_->run(command);
  if (output.ok()) {
    auto answer = answer_of(*output, changes);
    if (answer.ok()) return answer;
    Error error = std::move(answer).error();
    // A query changes nothing, so it may be repeated.
    if (!changes && (error.code == Code::conflict || error.code == Code::timeout))
      error.code = Code::unavailable;
    return std::move(error).with(fmt::format("{} {}", target_.program, verb));
  }
  Error error = std::move(output).error();
  if (error.code == Code::timeout || error.code == Code::failed)
    error.code = changes ? Code::timeout : Code::unavailable;
  return error;
}

Result<Json> CommandPower::answer_of(const Output& output, bool changes) {
  auto answer = parse_json(output.out);
  if (answer.ok() && answer->is_object()) {
    const auto error = answer->find("error");
    if (error != answer->end()) return error_of(*error, changes);
    if (output.ok()) return std::move(*answer);
  }
  // Without a JSON object, it is unknown what the program did.
  const std::string said = printable(end_of_output(without_password(output.err), 300));
  return fail(changes ? Code::timeout : Code::failed,
              fmt::format("exit status {}, but no JSON object on standard output{}{}", output.exit_code,
                          said.empty() ? "" : ": ", said));
}

Error CommandPower::error_of(const Json& error, bool changes) {
  const std::string code = text_at(error, "code");
  std::string message(first_bytes(without_password(text_at(error, "message")), 500));
  if (message.empty()) message = "no reason given";
  if (code == "unavailable") return fail(Code::unavailable, message);
  if (code == "invalid") return fail(Code::invalid, message);
  if (code == "conflict") return fail(Code::conflict, message);
  if (code == "wrong-machine") return fail(Code::denied, message);
  if (code == "denied") {
    if (target_.on_refused && !target_.user.empty()) target_.on_refused();
    return fail(Code::denied, message);
  }
  if (code == "timeout") return fail(Code::timeout, message);
  return fail(changes ? Code::timeout : Code::failed, message);
}

// Queries the machine's state, and checks that it is the node's machine.
Result<Json> CommandPower::see() {
  TRY(Json answer, request("state", false));
  TRY_(check_identity(text_at(answer, "uuid")));
  const std::string power = text_at(answer, "power");
  if (power == "on" || power == "off" || power == "unknown") return answer;
  return fail(Code::failed, fmt::format("{} state: 'power' must be on, off or unknown", target_.program));
}

Result<PowerState> CommandPower::look() {
  TRY(const Json seen, see());
  return power_of(seen);
}

// Checks the machine's identity, if the program reports it.
Status CommandPower::check_identity(const std::string& uuid) {
  if (machine_of(uuid).empty()) return Ok{};
  const std::string expected = machine_of(target_.expected_uuid);
  const std::string whose =
      fmt::format("{} at {} controls machine {}", target_.program, target_.address, first_bytes(uuid, 40));
  if (!expected.empty() && !same_uuid(uuid, expected))
    return fail(Code::denied,
                fmt::format("{}, but {} is machine {}: nothing was done", whose, target_.node, expected));
  const std::string other = expected.empty() && target_.machines ? target_.machines->node_of(uuid) : "";
  if (other.empty()) return Ok{};
  return fail(Code::denied, fmt::format("{}, which is node {}, but {} was never seen: nothing was done",
                                        whose, other, target_.node));
}

// Polls until the state was read back, stopping `reserve` before the deadline. Nothing else is success.
Status CommandPower::reach(PowerState wanted, const std::string& verb, bool graceful, DurationMs reserve) {
  for (;;) {
    TRY(const PowerState now, look());
    if (now == wanted) return Ok{};
    Json more = Json::object();
    if (wanted == PowerState::off) more["graceful"] = graceful;
    const auto answer = request(verb, true, std::move(more));
    if (answer.ok() || answer.error().code == Code::timeout) {
      const Status reached = wait_for(wanted, kept_for_another_try(answer.ok(), reserve, left()));
      return reached.ok() || answer.ok() ? reached : answer.error();
    }
    if (answer.error().code != Code::conflict) return answer.error();
    if (left() <= reserve + 2 * kCommandPoll) return fail(Code::unavailable, answer.error().message);
    pause(kCommandPoll);
  }
}

Status CommandPower::wait_for(PowerState wanted, DurationMs reserve) {
  std::string last = "unknown";
  while (left() > reserve) {
    const auto now = look();
    if (now.ok() && *now == wanted) return Ok{};
    if (!now.ok() && now.error().code == Code::denied) return now.error();
    last = now.ok() ? std::string(to_string(*now)) : "unreadable: " + now.error().message;
    pause(kCommandPoll);
  }
  return fail(Code::timeout, fmt::format("{} accepted the order, but the machine is not {} (last state: {})",
                                         target_.program, to_string(wanted), last));
}

// "once" or "always".
Result<std::string> CommandPower::network_capability() {
  TRY(const Json can, request("capabilities", false));
  const std::string network = text_at(can, "network");
  if (network == "once" || network == "always") return network;
  return fail(Code::invalid, fmt::format("{} cannot boot {} from the network: it reports '{}'",
                                         target_.program, target_.node, first_bytes(network, 40)));
}

// A program may print its secrets (`set -x`, `curl -v`): they are masked in journals and reports.
std::string CommandPower::without_password(const std::string& text) const {
  return SecretMask({target_.password}).text(text);
}

// A machine whose firmware always boots from the network first needs no order: the boot server decides what
// it boots, and lets it boot from disk unless a netboot is pending.
Status CommandPower::boot_once_network(DurationMs deadline) {
  begin(deadline);
  TRY_(look());
  TRY(const std::string network, network_capability());
  if (network == "always") return Ok{};
  auto done = request("network-once", true);
  // Safe to retry: either nothing was set, or it is set again to the same value.
  if (!done.ok() && done.error().code == Code::conflict) done = fail(Code::unavailable, done.error().message);
  if (!done.ok()) return done.error();
  return confirm_network();
}

// Checks the next boot, if the program reports it.
Status CommandPower::confirm_network() {
  TRY(const Json seen, see());
  const std::string next = text_at(seen, "next");
  if (next.empty() || next == "network") return Ok{};
  return fail(Code::failed,
              fmt::format("{} accepted the order for a network boot, but reports '{}' as the next boot",
                          target_.program, first_bytes(next, 40)));
}

Result<Json> CommandPower::describe(DurationMs deadline) {
  begin(deadline);
  TRY(const Json seen, see());
  TRY(const Json can, request("capabilities", false));
  const std::string network = text_at(can, "network");
  Json out = {{"driver", "command"},        {"program", target_.program},
              {"address", target_.address}, {"power", std::string(to_string(power_of(seen)))},
              {"network", network},         {"network_boot", network == "once" || network == "always"}};
  if (const std::string next = text_at(seen, "next"); !next.empty() && network == "once")
    out["boots_network_next"] = next == "network";
  return out;
}

}  // namespace

std::unique_ptr<Power> make_command_power(PowerTarget target, Waiter waiter, std::string folder,
                                          std::shared_ptr<Process> process) {
  return std::make_unique<CommandPower>(std::move(target), std::move(waiter), std::move(folder),
                                        std::move(process));
}

PowerDriver command_driver() {
  return {
      "command",
      "Runs your own program in /etc/muster/power.d to control the machine's power (PDU, virsh, a provider's "
      "API). Needs `program` and `address`; for the contract, see docs/drivers.md#command.",
      [](PowerTarget target) -> Result<std::unique_ptr<Power>> {
        if (!is_plain_name(target.program))
          return fail(Code::invalid, "command: '" + target.program + "' is not a program name");
        const char* folder = std::getenv("MUSTER_POWER_PROGRAMS");
        return make_command_power(std::move(target), real_waiter(), folder && *folder ? folder : kFolder,
                                  make_process());
      }};
}

}  // namespace muster
