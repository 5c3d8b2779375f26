#include "controller/power/ipmitool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "base/utf8.h"
#include "controller/power/logins.h"

namespace muster {

namespace {

constexpr DurationMs kPace = 5 * kSecond;      // Ironic's min_command_interval, for BMCs that crash
constexpr DurationMs kSession = 20 * kSecond;  // a BMC that is not there costs 6 s
// Before a login that was refused is repeated: BMCs refuse the right password for a moment while they are
// busy.
constexpr DurationMs kBetweenLogins = 10 * kSecond;
// Some need seconds for each answer. Asked again meanwhile they answer twice, with another random number
// each, and ipmitool calls the second one a wrong HMAC.
constexpr const char *kQuick = "1", *kPatient = "5";
constexpr DurationMs kPatientSession = 70 * kSecond;
constexpr int kConfusions = 2;           // sessions that a BMC mixes up in a row, before it counts as silent
constexpr size_t kMaxOutput = 64 << 10;  // an answer is below 300 bytes
constexpr size_t kLongestPassword = 20, kLongestUser = 16;  // IPMI 2.0, tables 22-30 and 13-11
constexpr size_t kLongestAnswer = 64;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// The last line that says something, for people.
std::string last_line(const std::string& text) {
  size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "no reason given";
  const size_t begin = text.find_last_of('\n', end);
  std::string line = text.substr(begin == std::string::npos ? 0 : begin + 1,
                                 begin == std::string::npos ? end + 1 : end - begin);
  line = std::string(first_bytes(line, 200));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return line;
}

// The number behind `key`, such as rsp=0xcc; -1 where there is none.
int number_behind(const std::string& line, const char* key) {
  const size_t at = line.find(key);
  if (at == std::string::npos) return -1;
  const long value = std::strtol(line.c_str() + at + std::string_view(key).size(), nullptr, 16);
  return value < 0 || value > 0xff ? -1 : static_cast<int>(value);
}

// One answer per line, each of hexadecimal pairs; nothing else is an answer.
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
  const size_t colon = target_.address.find(':');
  host_ = target_.address.substr(0, colon);
  if (colon != std::string::npos) port_ = target_.address.substr(colon + 1);
}

void IpmiTool::pause(DurationMs span) { waiter_.sleep(std::max<DurationMs>(0, std::min(span, left()))); }

// The commands come by standard input: as arguments each would need a session of its own. -v tells a login
// that was refused from a BMC that is not there; it prints nothing of the password.
Result<Output> IpmiTool::run(const std::string& script, int suite, bool patient) {
  if (last_ && waiter_.now() - *last_ < kPace) pause(*last_ + kPace - waiter_.now());
  if (left() <= 0)
    return fail(Code::unavailable, fmt::format("BMC {}: no time left to ask it", target_.address));
  Command command;
  command.argv = {"ipmitool",   "-I",
                  "lanplus",    "-H",
                  host_,        "-p",
                  port_,        "-U",
                  target_.user, "-E",
                  "-C",         std::to_string(suite),
                  "-L",         privilege_of(target_),
                  "-N",         patient ? kPatient : kQuick,
                  "-R",         "3",
                  "-v",         "exec",
                  "/dev/stdin"};
  command.input = script;
  command.env = {{"IPMITOOL_PASSWORD", target_.password}};
  command.deadline = std::min(left(), patient ? kPatientSession : kSession);
  command.max_output = kMaxOutput;
  auto output = process_->run(command);
  last_ = waiter_.now();
  if (output.ok()) return output;
  Error error = std::move(output).error();
  if (error.code == Code::not_found)
    return fail(Code::invalid, "ipmitool is not installed here (package ipmitool)");
  // Killed in the middle, or more output than a BMC has to give.
  slow_ = slow_ || error.code == Code::timeout;
  if (error.code != Code::unavailable) error.code = Code::timeout;
  return std::move(error).with("BMC " + target_.address);
}

// Only these judge user and password; the other status codes of RAKP messages (IPMI 2.0, table 13-15) say
// that sessions were mixed up, and no answer says nothing. A privilege is judged where a completion code
// stands behind it.
IpmiTool::Login IpmiTool::login_of(const std::string& complaint) {
  const std::string text = lower(complaint);
  if (!has(text, "unable to establish")) return Login::established;
  // Full tables pass by themselves.
  if (has(text, "insufficient resources") || has(text, "no response from")) return Login::unreachable;
  if (has(text, "unauthorized name") || has(text, "invalid integrity check value") ||
      has(text, "hmac is invalid"))
    return Login::refused;
  if (has(text, "invalid role") || has(text, "unauthorized role")) return Login::not_allowed;
  if (has(text, "privilege level") && has(text, "failed:")) return Login::not_allowed;
  if (has(text, "session id") || has(text, "illegal parameter")) return Login::confused;
  if (has(text, "algorithm") || has(text, "cipher suite")) return Login::other_suite;
  return Login::unreachable;
}

std::string privilege_of(const PowerTarget& target) {
  return target.privilege.empty() ? "ADMINISTRATOR" : target.privilege;
}

// Judged twice, the second time with a fresh session, the other suite where there is one, and enough time.
Error IpmiTool::judged(Login login, const std::string& complaint) {
  const std::string said = last_line(complaint.substr(0, complaint.rfind("Error:")));
  const std::string rights = privilege_of(target_) == "ADMINISTRATOR"
                                 ? "; if the account is an operator's, set power.privilege: operator"
                                 : "";
  if (login == Login::not_allowed)
    return fail(Code::denied, fmt::format("BMC {} does not let this user be {}: {}{}", target_.address,
                                          privilege_of(target_), said, rights));
  refused_ = fail(Code::denied, fmt::format("BMC {} refuses the user and password ({}){}", target_.address,
                                            said, has(lower(complaint), "unauthorized name") ? rights : ""));
  // One that took the password a moment ago refuses it for a reason that passes.
  if (const auto known = target_.logins ? target_.logins->find(target_) : std::nullopt; known)
    refused_ = fail(known->code, refused_->message);
  if (target_.on_refused) target_.on_refused();
  return *refused_;
}

// 17 first, since 3 rests on SHA-1; some BMCs do not answer at all to a suite that they do not know.
Result<Output> IpmiTool::in_a_suite(const std::string& script) {
  std::vector<int> suites = {17, 3};
  if (target_.cipher_suite) suites = {target_.cipher_suite};
  if (suite_) suites = {suite_};
  std::string said;
  bool refused_once = false;
  int confusions = 0;
  const auto note = [&said](const std::string& text) { said += (said.empty() ? "" : ", ") + text; };
  for (size_t at = 0; at < suites.size();) {
    TRY(Output output, run(script, suites[at], slow_));
    const Login login = login_of(output.err);
    if (login == Login::established) {
      suite_ = suites[at];
      if (target_.logins) target_.logins->let_in(target_);
      return output;
    }
    const bool last = at + 1 == suites.size();
    if (login == Login::refused || login == Login::not_allowed) {
      // A privilege is no login that failed.
      const bool counts = target_.logins && login == Login::refused;
      if (counts) target_.logins->failed(target_);
      if (std::exchange(refused_once, true) || (counts && target_.logins->find(target_)))
        return judged(login, output.err);
      slow_ = true;
      note(fmt::format("refused once with suite {}", suites[at]));
      pause(std::max(kBetweenLogins, counts ? target_.logins->pause(target_) : 0));
      if (!last) ++at;
      continue;
    }
    if (login == Login::confused && ++confusions <= kConfusions) continue;
    if (login == Login::other_suite) last_.reset();  // no session was opened, so the next one need not wait
    note(login == Login::other_suite ? fmt::format("suite {} is not offered", suites[at])
                                     : fmt::format("no answer with suite {}", suites[at]));
    ++at;
  }
  const bool none_offered = !has(said, "no answer") && !has(said, "refused");
  return fail(none_offered ? Code::invalid : Code::unavailable,
              fmt::format("BMC {} opens no IPMI session: {}", target_.address, said));
}

// What the BMC answered to a command that it did not carry out.
Error IpmiTool::judge(const std::string& complaint) {
  const size_t at = complaint.find("Unable to send RAW command");
  const std::string line = at == std::string::npos ? "" : complaint.substr(at, complaint.find('\n', at) - at);
  refusal_ = {number_behind(line, "cmd="), number_behind(line, "rsp=")};
  const std::string message =
      fmt::format("BMC {}: {}", target_.address, last_line(line.empty() ? complaint : line));
  switch (refusal_.completion) {
    case 0xc0:  // node busy
    case 0xce:  // no answer could be provided
    case 0xd0:  // its repository is being updated
    case 0xd1:  // firmware update
    case 0xd2:  // it starts
      return fail(Code::unavailable, message);
    case 0xd5:  // not in the present state
    case 0xd6:
      return fail(Code::conflict, message);
    case 0xd4:  // privilege
      return fail(Code::denied, message);
    case -1:
    case 0x00:
    case 0xc3:  // its own timeout
    case 0xff:  // unspecified
      return fail(Code::timeout, message);
    default:
      return fail(Code::invalid, message);
  }
}

Result<std::vector<IpmiBytes>> IpmiTool::ask(const std::vector<IpmiBytes>& commands) {
  refusal_ = {};
  if (refused_) return *refused_;
  if (target_.password.size() > kLongestPassword || target_.user.size() > kLongestUser)
    return fail(Code::invalid, fmt::format("IPMI users have at most {} characters and passwords {}: the "
                                           "secret of {} is longer",
                                           kLongestUser, kLongestPassword, target_.node));
  std::string script;
  for (const auto& command : commands) {
    script += "raw";
    for (const uint8_t byte : command) script += fmt::format(" 0x{:02x}", byte);
    script += '\n';
  }
  TRY(const Output output, in_a_suite(script));
  if (!output.ok()) return judge(output.err);
  auto answers = parse(output.out);
  if (!answers || answers->size() < commands.size() || has(output.err, "rsp=0x"))
    return fail(Code::timeout, fmt::format("BMC {}: ipmitool printed what is no answer", target_.address));
  answers->resize(commands.size());
  return *answers;
}

}  // namespace muster
