#include "controller/power/ipmitool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <initializer_list>
#include <set>

#include "base/lower.h"
#include "base/printable.h"
#include "base/split.h"
#include "base/utf8.h"

namespace muster {

namespace {

constexpr DurationMs kPace = 5 * kSecond;      // Ironic's min_command_interval, for BMCs that crash
constexpr DurationMs kSession = 15 * kSecond;  // an unreachable BMC takes 12 s
constexpr DurationMs kPatientSession = 45 * kSecond;
constexpr int kSuite = 17, kOldSuite = 3;
constexpr int kNoPrivilege = 0xd4;
constexpr size_t kMaxIpmiOutput = 64 << 10;                 // a response is shorter than 300 bytes
constexpr size_t kLongestPassword = 20, kLongestUser = 16;  // IPMI 2.0, tables 22-30 and 13-11
constexpr size_t kLongestAnswer = 64;

bool has_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) { return has(text, part); });
}

// True for a failure unrelated to the suite: a full session table, or a response to another request.
bool passes(const std::string& complaint) {
  return has_any(lower(complaint), {"insufficient resources", "unexpected open session response"});
}

std::string last_line(const std::string& text) {
  size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "no reason given";
  const size_t begin = text.find_last_of('\n', end);
  const std::string line = text.substr(begin == std::string::npos ? 0 : begin + 1,
                                       begin == std::string::npos ? end + 1 : end - begin);
  return printable(first_bytes(line, 200));
}

// Returns the number after `key`, as in rsp=0xcc; -1 if there is none.
int number_behind(const std::string& line, const char* key) {
  const size_t at = line.find(key);
  if (at == std::string::npos) return -1;
  const long value = std::strtol(line.c_str() + at + std::string_view(key).size(), nullptr, 16);
  return value < 0 || value > 0xff ? -1 : static_cast<int>(value);
}

// Parses the responses: one per line, of hexadecimal pairs. All other lines are ignored.
std::optional<std::vector<IpmiBytes>> parse(const std::string& text) {
  std::vector<IpmiBytes> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    IpmiBytes bytes;
    for (size_t i = at; i < end; ++i) {
      if (text[i] == ' ' || text[i] == '\r') continue;
      if (i + 1 >= end || !std::isxdigit(static_cast<unsigned char>(text[i])) ||
          !std::isxdigit(static_cast<unsigned char>(text[i + 1])) || bytes.size() == kLongestAnswer)
        return std::nullopt;
      bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
      ++i;
    }
    out.push_back(std::move(bytes));
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string hex_of(const IpmiBytes& bytes) {
  std::string out;
  for (const uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

IpmiTool::IpmiTool(PowerTarget target, Waiter waiter, std::shared_ptr<Process> process)
    : target_(std::move(target)), waiter_(std::move(waiter)), process_(std::move(process)) {
  logins_ = target_.logins ? target_.logins : std::make_shared<Logins>(waiter_.now);
  patient_ = logins_->needs_time(target_);
  const size_t colon = target_.address.find(':');
  host_ = target_.address.substr(0, colon);
  if (colon != std::string::npos) port_ = target_.address.substr(colon + 1);
}

void IpmiTool::pause(DurationMs span) { waiter_.sleep(std::max<DurationMs>(0, std::min(span, left()))); }

std::vector<std::string> IpmiTool::options(const PowerTarget& target, int suite, bool patient) {
  return {"-U", target.user, "-E", "-C", std::to_string(suite), "-L",
          target.as_operator ? "OPERATOR" : "ADMINISTRATOR",
          // If a message is resent before its response arrives, two responses arrive, and ipmitool takes the
          // second for a wrong password: some BMCs need five seconds. For all others one second is enough,
          // and an unreachable BMC, or one without the suite, takes 12 s instead of 40.
          "-N", patient ? "5" : "1", "-R", patient ? "2" : "3", "-v"};
}

// Commands are passed on standard input: as arguments, each would need a separate session. With -v, a
// rejected login can be distinguished from an unreachable BMC; it does not print the password.
Result<Output> IpmiTool::run(const std::string& script, int suite) {
  if (last_ && waiter_.now() - *last_ < kPace) pause(*last_ + kPace - waiter_.now());
  if (left() <= 0)
    return fail(Code::unavailable, fmt::format("BMC {}: no time left for a request", target_.address));
  Command command;
  command.argv = {"ipmitool", "-I", "lanplus", "-H", host_, "-p", port_};
  const auto more = options(target_, suite, patient_);
  command.argv.insert(command.argv.end(), more.begin(), more.end());
  command.argv.insert(command.argv.end(), {"exec", "/dev/stdin"});
  command.input = script;
  command.env = {{"IPMITOOL_PASSWORD", target_.password}};
  command.deadline = std::min(left(), patient_ ? kPatientSession : kSession);
  command.max_output = kMaxIpmiOutput;
  auto output = process_->run(command);
  last_ = waiter_.now();
  if (output.ok()) return output;
  Error error = std::move(output).error();
  if (error.code == Code::not_found)
    return fail(Code::invalid, "ipmitool is not installed on the controller host (package ipmitool)");
  // ipmitool was killed before it finished, or printed more than a BMC can return.
  if (error.code != Code::unavailable) error.code = Code::timeout;
  patient_ = true;
  return std::move(error).with("BMC " + target_.address);
}

// Uses the messages of ipmitool 1.8.19; for the status codes see IPMI 2.0, table 13-15.
IpmiTool::Login IpmiTool::login_of(const std::string& complaint) {
  const std::string text = lower(complaint);
  if (!has(text, "unable to establish")) return Login::established;
  if (has(text, "get auth capabilities")) return Login::absent;
  // A full session table is temporary.
  if (has(text, "insufficient resources")) return Login::no_answer;
  // Before the response to the session request, no user or password is sent.
  const bool opening = has(text, "open session response message");
  if (!opening && has_any(text, {"unauthorized name", "hmac is invalid", "integrity check value"}))
    return Login::refused;
  if (has(text, "no response from")) return Login::no_answer;
  if (has_any(text, {"invalid role", "unauthorized role"})) return Login::not_allowed;
  // If the message ends without a reason, the BMC did not respond.
  if (has(text, "privilege level to") && has(text, " failed: ")) return Login::not_allowed;
  if (has_any(text, {"algorithm", "integrity payload", "cipher suite"})) return Login::other_suite;
  if (opening || has(text, "message indicates an error")) return Login::mixed_up;
  return Login::no_answer;
}

// 17 first, since 3 relies on SHA-1.
std::vector<int> IpmiTool::suites_to_try() const {
  if (target_.cipher_suite) return {target_.cipher_suite};
  if (suite_) return {suite_};
  // Where 17 was rejected lately, one login more may be all that is left: some BMCs without it answer as if
  // the password was wrong.
  if (logins_->suite(target_) == kOldSuite || logins_->rejected_suite(target_) == kSuite)
    return {kOldSuite, kSuite};
  return {kSuite, kOldSuite};
}

void IpmiTool::came_in(int suite, bool other_failed) {
  suite_ = suite;
  // Another password may have been rejected because it was wrong: it says nothing about the suite.
  const int rejected = logins_->rejected(target_) ? logins_->rejected_suite(target_) : 0;
  const bool only_this = other_failed || (rejected != 0 && rejected != suite);
  logins_->let_in(target_);
  if (patient_) logins_->wants_time(target_);
  if (only_this && !target_.cipher_suite) logins_->has_suite(target_, suite);
}

Status IpmiTool::failed_login(int suite, const std::string& why) {
  logins_->rejects_suite(target_, suite);
  Status next = logins_->failed_login(target_);
  if (next.ok() || next.error().code != Code::denied) return next;
  return fail(Code::denied,
              fmt::format("BMC {} rejects the user and password ({}){}", target_.address, why,
                          target_.as_operator ? ""
                                              : "; some BMCs return this error when the user is not an "
                                                "administrator: try `power.privilege: operator`"));
}

// Opens a session with the first suite that works. An unusual error counts only if a new session, after a try
// with the other suite, gets it again.
Result<Output> IpmiTool::in_a_suite(const std::string& script) {
  std::vector<int> queue = suites_to_try();
  std::set<int> repeated;
  std::string said;
  bool none_offered = true, other_failed = false;
  int not_allowed = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    const int suite = queue[i];
    TRY_(logins_->may_log_in(target_, left(), [this](DurationMs span) { pause(span); }));
    TRY(Output output, run(script, suite));
    const Login login = login_of(output.err);
    if (login == Login::established) {
      came_in(suite, other_failed);
      return output;
    }
    const std::string why = last_line(output.err.substr(0, output.err.rfind("Error: Unable")));
    if (login == Login::refused) TRY_(failed_login(suite, why));
    if (login == Login::not_allowed && ++not_allowed == 2)
      return fail(
          Code::denied,
          fmt::format("BMC {} does not grant this user the privilege level {}: {}", target_.address,
                      target_.as_operator ? "operator"
                                          : "administrator (set `power.privilege: operator` to request less)",
                      why));
    if (login == Login::absent) {
      patient_ = true;
      return fail(Code::unavailable, fmt::format("BMC {} does not answer", target_.address));
    }
    if (login == Login::other_suite)
      last_.reset();  // no session was opened, so the next one need not wait
    else
      none_offered = false;
    const bool lost = has(output.err, "no response from");
    patient_ = patient_ || lost || login == Login::refused;
    // With a suite that they do not support, some BMCs do not respond, refuse the privilege level, or compute
    // wrong integrity codes, which looks like a wrong password.
    other_failed = other_failed || login == Login::other_suite || login == Login::not_allowed ||
                   login == Login::refused || (login == Login::no_answer && !lost && !passes(output.err));
    const bool odd = login == Login::mixed_up || login == Login::refused || login == Login::not_allowed;
    if (odd && repeated.insert(suite).second)
      queue.insert(login == Login::mixed_up ? queue.begin() + static_cast<long>(i) + 1 : queue.end(), suite);
    said += fmt::format("{}suite {}: {}", said.empty() ? "" : ", ", suite,
                        login == Login::other_suite ? "not offered" : why);
  }
  patient_ = true;
  return fail(none_offered ? Code::invalid : Code::unavailable,
              fmt::format("BMC {} did not open an IPMI session: {}", target_.address, said));
}

// Returns the error for a command that the BMC did not carry out.
Error IpmiTool::judge(const std::string& complaint) {
  const size_t at = complaint.find("Unable to send RAW command");
  const std::string line = at == std::string::npos ? "" : complaint.substr(at, complaint.find('\n', at) - at);
  refusal_ = {number_behind(line, "cmd="), number_behind(line, "rsp=")};
  const std::string message =
      fmt::format("BMC {}: {}", target_.address, last_line(line.empty() ? complaint : line));
  switch (refusal_.completion) {
    case 0xc0:  // node busy
    case 0xce:  // no response could be provided
    case 0xd0:  // its repository is being updated
    case 0xd1:  // firmware update
    case 0xd2:  // it is starting
      return fail(Code::unavailable, message);
    case 0xd5:  // not in the present state
    case 0xd6:
      return fail(Code::conflict, message);
    case kNoPrivilege:
      return fail(Code::denied, message);
    case -1:
      patient_ = true;
      [[fallthrough]];
    case 0x00:
    case 0xc3:  // its own timeout
    case 0xff:  // unspecified
      return fail(Code::timeout, message);
    default:
      return fail(Code::invalid, message);
  }
}

Result<std::vector<IpmiBytes>> IpmiTool::request(const std::vector<IpmiBytes>& commands) {
  refusal_ = {};
  if (target_.password.size() > kLongestPassword || target_.user.size() > kLongestUser)
    return fail(
        Code::invalid,
        fmt::format(
            "IPMI user names have at most {} characters and passwords at most {}: the secret of {} is longer",
            kLongestUser, kLongestPassword, target_.node));
  std::string script;
  for (const auto& command : commands) {
    script += "raw";
    for (const uint8_t byte : command) script += fmt::format(" 0x{:02x}", byte);
    script += '\n';
  }
  TRY(Output output, in_a_suite(script));
  if (!output.ok()) {
    Error error = judge(output.err);
    if (refusal_.completion != kNoPrivilege) return error;
    // A single such response is not final, since a session's privilege level may take effect late: retry. The
    // commands before it may be carried out twice.
    TRY(output, in_a_suite(script));
    if (!output.ok()) return judge(output.err);
    refusal_ = {};
  }
  auto answers = parse(output.out);
  if (!answers || answers->size() < commands.size() || has(output.err, "rsp=0x"))
    return fail(Code::timeout,
                fmt::format("BMC {}: the output of ipmitool could not be parsed", target_.address));
  answers->resize(commands.size());
  return *answers;
}

}  // namespace muster
