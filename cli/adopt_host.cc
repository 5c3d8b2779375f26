#include "cli/adopt_host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/json_at.h"
#include "base/json_dump.h"
#include "cli/terminal.h"
#include "controller/ssh/ssh_keys.h"
#include "sys/os.h"

namespace muster::cli {
namespace {

// The reply of an unverified host may be malformed: anything that is not a string is treated as empty.
Json previews_in(const Json& answer) {
  Json out = Json::array();
  const auto steps = answer.find("steps");
  if (steps == answer.end() || !steps->is_array()) return out;
  for (const Json& step : *steps) {
    Json one;
    for (const char* key : {"step", "module", "outcome", "diff", "message"}) one[key] = text_at(step, key);
    out.push_back(std::move(one));
  }
  return out;
}

constexpr DurationMs kConnect = 20 * kSecond, kCommand = 30 * kSecond, kLook = 10 * kMinute,
                     kSign = 15 * kSecond;

Result<std::string> read_file(const std::string& path) {
  auto text = Files().read(std::filesystem::absolute(path).string());
  if (!text.ok()) return fail(Code::invalid, path + ": " + text.error().message);
  return text;
}

// Opens an SSH session as root, with sudo if the login is a different user.
Result<std::unique_ptr<SshSession>> open_session(const SshTarget& target) {
  TRY(auto session, ssh_connect(target, kConnect));
  if (target.user != "root") session = as_root(std::move(session));
  TRY(const auto who, session->run("id -u; uname -s", "", kCommand));
  if (who.out == "0\nLinux\n") return session;
  const std::string said = clean_lines(who.err.empty() ? who.out : who.err);
  if (target.user == "root")
    return fail(Code::denied, fmt::format("{}: not a Linux host, or the login has no root privileges: {}",
                                          target.address, said));
  return fail(Code::denied,
              fmt::format("{}@{} is not root, and `sudo -n` failed (passwordless sudo is required): {}",
                          target.user, target.address, said));
}

}  // namespace

Result<SshTarget> target_of(const Adopting& what, const std::string& place, const Json& declared) {
  SshTarget target;
  target.address = place;
  const auto text = [&](const char* key) {
    return declared.is_object() ? declared.value(key, "") : std::string();
  };
  if (declared.is_object()) target.port = static_cast<uint16_t>(declared.value("port", 22));
  if (const auto colon = place.rfind(':'); colon != std::string::npos) {
    const std::string port = place.substr(colon + 1);
    const bool digits =
        !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoi(port) < 1 || std::stoi(port) > 65535 || place.find(':') != colon)
      return fail(Code::invalid, fmt::format("--adopt {}: expected HOST or HOST:PORT", place));
    target.port = static_cast<uint16_t>(std::stoi(port));
    target.address = place.substr(0, colon);
  }
  if (!what.user.empty())
    target.user = what.user;
  else if (!text("user").empty())
    target.user = text("user");
  if (!what.key.empty()) {
    TRY(const std::string key, read_file(what.key));
    if (key.empty()) return fail(Code::invalid, what.key + " is empty");
    // The public key selects one of the SSH agent's keys.
    if (auto half = public_key_in(key))
      target.agent_key = std::move(*half);
    else
      target.private_key = key;
  }
  return target;
}

Result<std::vector<std::string>> allowed_keys(const Adopting& what, const SshTarget& target,
                                              const Json& declared) {
  if (declared.is_object()) return std::vector<std::string>{declared.value("host_key", "")};
  if (what.host_key.empty()) return std::vector<std::string>{};
  if (what.host_key.starts_with("SHA256:")) return host_keys_in(what.host_key, "");
  TRY(const auto text, read_file(what.host_key));
  const bool usual = target.port == 22;
  auto keys =
      host_keys_in(text, usual ? target.address : fmt::format("[{}]:{}", target.address, target.port));
  if (!keys.ok()) return std::move(keys).error().with(what.host_key);
  return keys;
}

Status is_allowed(const SshTarget& target, const std::vector<std::string>& allowed, bool by_spec) {
  if (std::find(allowed.begin(), allowed.end(), target.host_key) != allowed.end()) return Ok{};
  return fail(
      Code::denied,
      fmt::format("{}:{} presents the host key {}, which is of a different type from the key {} ({}): "
                  "a different machine answered, or the host was reinstalled; nothing was sent to it",
                  target.address, target.port, target.host_key, by_spec ? "pinned in the spec" : "allowed",
                  fmt::join(allowed, " or ")));
}

Status Host::open() {
  dialog_.reset();
  TRY(session_, open_session(target_));
  TRY(dialog_, talk_to_agent_unseen(*session_, agent_, "adopt --stdin", kLook));
  return Ok{};
}

Result<Json> Host::request(const Json& what, DurationMs deadline) {
  // The operator's approval may take a while, during which an idle connection may be lost unnoticed. So a
  // request that changes nothing is sent first; without a reply, a new connection is made.
  if (dialog_ && !dialog_->request(R"({"ask":"nothing"})", kSign).ok()) dialog_.reset();
  if (!dialog_) TRY_(open());
  auto said = dialog_->request(dump_json(what), deadline);
  if (!said.ok()) {
    dialog_.reset();  // a late reply would be taken for the reply to the next request
    return said.error();
  }
  TRY(Json answer, parse_json(*said));
  if (!answer.is_object()) return fail(Code::failed, target_.address + ": unexpected answer");
  const Json error = answer.value("error", Json());
  if (!error.is_object()) return answer;
  // The agent replied with an error, so the result is known: `timeout` is only for lost replies.
  const Code code = code_from_string(text_at(error, "code"));
  return fail(code == Code::timeout ? Code::failed : code, clean_lines(text_at(error, "message")));
}

Result<Json> Host::look(const std::string& node, const std::string& pin, const Json& steps) {
  auto requested = request({{"ask", "look"}, {"node", node}, {"pin", pin}, {"steps", steps}}, kLook);
  if (!requested.ok()) return std::move(requested).error().with("inspecting " + target_.address);
  const Json& answer = *requested;
  const auto facts = answer.find("facts"), joined = answer.find("joined");
  if (facts == answer.end() || !facts->is_object())
    return fail(Code::failed, target_.address + ": unexpected answer");
  const std::string refusal = clean_lines(text_at(answer, "refusal"));
  if (!refusal.empty())
    return fail(Code::conflict, fmt::format("{} cannot be adopted: {}", target_.address, refusal));
  return Json{{"facts", *facts},
              {"joined", joined != answer.end() && *joined == Json(true)},
              {"steps", previews_in(answer)}};
}

}  // namespace muster::cli
