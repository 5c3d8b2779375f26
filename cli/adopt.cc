#include "cli/adopt.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>
#include <thread>

#include "base/json_dump.h"
#include "base/os.h"
#include "cli/render.h"
#include "controller/ssh/ssh.h"

namespace muster::cli {
namespace {

constexpr DurationMs kConnect = 20 * kSecond, kCommand = 30 * kSecond, kLook = 10 * kMinute,
                     kStart = 5 * kMinute;

Result<std::string> read_file(const std::string& path) {
  auto text = Files().read(std::filesystem::absolute(path).string());
  if (!text.ok()) return fail(Code::invalid, path + ": " + text.error().message);
  return text;
}

// What the spec says about it already fills in what was not said on the command line.
Result<SshTarget> target_of(const Adopting& what, const Json& declared) {
  SshTarget target;
  target.address = what.host;
  const auto text = [&](const char* key) {
    return declared.is_object() ? declared.value(key, "") : std::string();
  };
  if (declared.is_object()) target.port = static_cast<uint16_t>(declared.value("port", 22));
  if (const auto colon = what.host.rfind(':'); colon != std::string::npos) {
    const std::string port = what.host.substr(colon + 1);
    const bool digits =
        !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoi(port) < 1 || std::stoi(port) > 65535 || what.host.find(':') != colon)
      return fail(Code::invalid, fmt::format("--adopt {}: not HOST or HOST:PORT", what.host));
    target.port = static_cast<uint16_t>(std::stoi(port));
    target.address = what.host.substr(0, colon);
  }
  if (!what.user.empty())
    target.user = what.user;
  else if (!text("user").empty())
    target.user = text("user");
  if (!what.key.empty()) {
    TRY(target.private_key, read_file(what.key));
    if (target.private_key.empty()) return fail(Code::invalid, what.key + " is empty");
  }
  return target;
}

Result<std::vector<std::string>> allowed_keys(const Adopting& what, const Json& declared) {
  if (declared.is_object()) return std::vector<std::string>{declared.value("host_key", "")};
  if (what.host_key.empty()) return std::vector<std::string>{};
  if (what.host_key.rfind("SHA256:", 0) == 0) return host_keys_in(what.host_key);
  TRY(const auto text, read_file(what.host_key));
  auto keys = host_keys_in(text);
  if (!keys.ok()) return std::move(keys).error().with(what.host_key);
  return keys;
}

// The pin: what the spec or the command line says, or what the operator has compared and confirmed.
Status pin_host_key(const Context& context, const Adopting& what, const Json& declared, SshTarget& target) {
  TRY(const auto allowed, allowed_keys(what, declared));
  TRY(const auto shown, learn_host_key(target.address, target.port, kConnect));
  const std::string where = fmt::format("{}:{}", target.address, target.port);
  target.host_key = shown;
  if (std::find(allowed.begin(), allowed.end(), shown) != allowed.end()) return Ok{};
  if (!allowed.empty())
    return fail(Code::denied,
                fmt::format("{} shows the host key {}, and {} is {}: another machine answers, or it was "
                            "installed anew; nothing was sent to it",
                            where, shown, declared.is_object() ? "pinned in the spec" : "allowed",
                            fmt::join(allowed, " or ")));
  if (!context.json)
    fmt::print(
        "{} shows the host key {}\nCompare it with what the host itself says: ssh-keygen -lf "
        "/etc/ssh/ssh_host_ed25519_key.pub\n",
        where, shown);
  if (!context.json && ask("Is it the same?")) return Ok{};
  return fail(Code::denied,
              fmt::format("the host key of {} is not confirmed: if it is the right one, say --host-key {}",
                          where, shown));
}

// A session as root.
Result<std::unique_ptr<SshSession>> open_session(const SshTarget& target) {
  TRY(auto session, ssh_connect(target, kConnect));
  if (target.user != "root") session = as_root(std::move(session));
  TRY(const auto who, session->run("id -u; uname -s", "", kCommand));
  if (who.out == "0\nLinux\n") return session;
  const std::string said = clean_lines(who.err.empty() ? who.out : who.err);
  if (target.user == "root")
    return fail(Code::denied,
                fmt::format("{}: not a Linux host, or not root there: {}", target.address, said));
  return fail(
      Code::denied,
      fmt::format(
          "{}@{} is not root there, and `sudo -n` does not make it so (it needs sudo without a password): {}",
          target.user, target.address, said));
}

// The host, and the agent that was sent there once and answers for as long as the connection lasts.
class Host {
 public:
  Host(const SshTarget& target, const std::string& agent) : target_(target), agent_(agent) {}

  Result<Json> ask(const Json& what, DurationMs deadline) {
    if (!dialog_) TRY_(open());
    auto said = dialog_->ask(dump_json(what), deadline);
    // An operator may take his time before he approves, and a connection that nobody speaks on may end
    // meanwhile. Nothing was asked over it: another one will do.
    if (!said.ok() && said.error().code == Code::unavailable) {
      TRY_(open());
      said = dialog_->ask(dump_json(what), deadline);
    }
    if (!said.ok()) return said.error();
    TRY(Json answer, parse_json(*said));
    if (!answer.is_object()) return fail(Code::failed, target_.address + ": its answer is not understood");
    const Json error = answer.value("error", Json());
    if (!error.is_object()) return answer;
    // It did answer, whatever it ran into there: `timeout` is for answers that were lost.
    const Code code = code_from_string(error.value("code", ""));
    return fail(code == Code::timeout ? Code::failed : code, clean_lines(error.value("message", "")));
  }
  const SshTarget& target() const { return target_; }

 private:
  Status open() {
    dialog_.reset();
    TRY(session_, open_session(target_));
    TRY(dialog_, talk_to_agent_unseen(*session_, agent_, "adopt --stdin", kLook));
    return Ok{};
  }
  const SshTarget& target_;
  const std::string& agent_;
  std::unique_ptr<SshSession> session_;
  std::unique_ptr<SshDialog> dialog_;  // ends before its session
};

// What muster-agent says about the host, and about `steps` there.
Result<Json> look(Host& host, const std::string& node, const std::string& pin, const Json& steps) {
  const std::string& address = host.target().address;
  auto asked = host.ask({{"ask", "look"}, {"node", node}, {"pin", pin}, {"steps", steps}}, kLook);
  if (!asked.ok()) return std::move(asked).error().with("looking at " + address);
  Json answer = std::move(asked).value();
  if (!answer.contains("facts")) return fail(Code::failed, address + ": its answer is not understood");
  const std::string refusal = clean_lines(answer.value("refusal", ""));
  if (!refusal.empty())
    return fail(Code::conflict, fmt::format("{} cannot be adopted: {}", address, refusal));
  return answer;
}

Json steps_of(const Json& plan) {
  Json steps = Json::array();
  for (const Json& action : plan.value("actions", Json::array()))
    if (action.value("kind", "") == "steps")
      for (const Json& step : action.value("params", Json::object()).value("steps", Json::array()))
        steps.push_back(step);
  return steps;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

// The public keys that let this operator in, as base64: that of the key file, or those of the SSH agent.
Result<std::vector<std::string>> own_keys(const SshTarget& target) {
  std::vector<std::string> keys;
  if (!target.private_key.empty()) {
    TRY(keys.emplace_back(), public_key_of(target.private_key));
    return keys;
  }
  const auto process = make_process();
  auto listed = run_ok(*process, {{"ssh-add", "-L"}});
  if (!listed.ok())
    return fail(Code::denied,
                "the keys of the SSH agent cannot be listed, so that it is not known whether you could still "
                "log in afterwards: " +
                    listed.error().message + "; say which key it is with --key");
  std::istringstream lines(*listed);
  for (std::string line; std::getline(lines, line);)
    if (const auto words = words_of(line); words.size() > 1) keys.push_back(words[1]);
  return keys;
}

// An adopted host has no second way in: when its agent is gone, this key brings it back.
Status check_access(const SshTarget& target, const Json& steps) {
  const bool touched = !keeps_access(target.user, {}, steps).ok();
  if (!touched) return Ok{};
  TRY(const auto keys, own_keys(target));
  return keeps_access(target.user, keys, steps);
}

std::string indented(const std::string& text, const char* by) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out += by + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

void print_preview(const SshTarget& target, const Json& planned, const Json& answer) {
  if (!planned.value("diff", "").empty())
    fmt::print("The spec would become revision {}:\n{}\n", planned.value("revision", 0),
               clean_lines(planned.value("diff", "")));
  print_plan(planned);
  fmt::print("\nWhat would change on {} (checked there, nothing is written yet):\n", target.address);
  if (!planned.value("online", false))
    fmt::print("  muster-agent\n      the program in /usr/sbin, its unit, its identity\n");
  fmt::print("{}\n", render_preview(answer.value("steps", Json::array())));
}

// The outcome of starting the agent was lost: what counts is whether it answers now.
Status look_for_agent(Context& context, const std::string& node, TimeMs before, const Error& lost) {
  for (int tries = 0; tries < 30; ++tries) {
    const auto row = Api(context).get("/v1/nodes/" + url_encode(node));
    if (row.ok() && row->value("mode", "") == "adopted" && row->value("last_seen", int64_t{0}) > before)
      return Ok{};
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  return fail(Code::failed,
              lost.message + "; no agent answered as " + node +
                  " within a minute: say the same command again, it goes on from where the host is");
}

Status start_agent(Context& context, const Adopting& what, Host& host, const Json& ticket) {
  const auto row = Api(context).get("/v1/nodes/" + url_encode(what.node));
  const TimeMs before = row.ok() ? row->value("last_seen", int64_t{0}) : 0;
  auto started = host.ask({{"ask", "join"},
                           {"url", ticket.value("url", "")},
                           {"pin", ticket.value("pin", "")},
                           {"token", ticket.value("token", "")},
                           {"node", what.node}},
                          kStart);
  if (started.ok()) return Ok{};
  if (started.error().code == Code::timeout)
    return look_for_agent(context, what.node, before, started.error());
  return std::move(started).error().with("the agent did not join");
}

struct Found {
  Json request;  // what the controller is asked
  Json planned;  // its plan
  Json answer;   // what the host said about the plan's steps
};

Result<Found> look_and_plan(Api& api, const Adopting& what, Host& host, const std::string& pin) {
  Found found;
  const SshTarget& target = host.target();
  TRY(const Json seen, look(host, what.node, pin, Json::array()));
  found.request = {{"name", what.node},       {"like", what.like},
                   {"host", target.address},  {"port", target.port},
                   {"user", target.user},     {"host_key", target.host_key},
                   {"address", what.address}, {"joined", seen.value("joined", false)},
                   {"facts", seen["facts"]}};
  TRY(found.planned, api.post("/v1/nodes/adopt", found.request));
  found.answer = seen;
  if (found.planned.value("empty", false)) return found;
  TRY(found.answer, look(host, what.node, pin, steps_of(found.planned.value("plan", Json::object()))));
  return found;
}

void carry_out(Context& context, const Adopting& what, Host& host, Found& found) {
  Api api(context);
  const std::string digest = found.planned.value("digest", "");
  found.request["digest"] = digest;
  const auto ticket = api.post("/v1/nodes/adopt", found.request);
  if (!ticket.ok()) return complain(context, ticket.error(), api.details());
  if (!found.planned.value("online", false)) {
    if (!context.json) fmt::print("starting the agent on {}\n", host.target().address);
    if (const auto started = start_agent(context, what, host, *ticket); !started.ok())
      return complain(context, started.error());
  }
  Goal goal;
  goal.kind = "adopt";
  goal.nodes = {what.node};
  goal.approval.digest = digest;
  goal.report_dir = what.report_dir;
  reach(context, goal);
  if (found.planned.value("declared", false) || context.json || context.exit != kAccepted) return;
  fmt::print(
      "Your own file does not have {0} yet: muster spec show > cluster.yaml\n"
      "The other nodes were not touched; `muster up` writes {0} into their hosts files.\n",
      what.node);
}

}  // namespace

std::string render_preview(const Json& steps) {
  std::map<std::string, std::vector<const Json*>> by;
  for (const Json& step : steps) by[step.value("outcome", "unknown")].push_back(&step);
  std::string out;
  for (const Json* step : by["would_change"])
    out += fmt::format("  {} ({})\n{}", clean(step->value("step", "")), clean(step->value("module", "")),
                       indented(clean_lines(step->value("diff", "")), "      "));
  const auto list = [&](const char* outcome, const char* title) {
    if (by[outcome].empty()) return;
    out += fmt::format("{}:\n", title);
    for (const Json* step : by[outcome]) {
      const std::string why = clean(step->value("message", ""));
      out += fmt::format("  {} ({}){}\n", clean(step->value("step", "")), clean(step->value("module", "")),
                         why.empty() ? "" : ": " + why);
    }
  };
  list("unknown", "Cannot be told before the steps above were done");
  list("secret", "Holds a secret, which is sent in the run only; counts as a change");
  out +=
      fmt::format("{} steps would change something, {} are so already, {} do not apply, {} cannot be told\n",
                  by["would_change"].size(), by["already"].size(), by["not_applicable"].size(),
                  by["unknown"].size() + by["secret"].size());
  return out;
}

Status keeps_access(const std::string& user, const std::vector<std::string>& keys, const Json& steps) {
  for (const Json& step : steps) {
    const Json params = step.value("params", Json::object());
    if (step.value("module", "") != "user" || params.value("name", "") != user || !params.contains("keys"))
      continue;
    bool kept = false;
    for (const Json& line : params["keys"])
      if (const auto words = words_of(line.is_string() ? line.get<std::string>() : ""); words.size() > 1)
        kept = kept || std::find(keys.begin(), keys.end(), words[1]) != keys.end();
    if (!kept)
      return fail(
          Code::denied,
          fmt::format("the key you log in with as {0} is not among those that the spec gives to {0}: `{1}` "
                      "would remove it, and you with it; nothing was done. Add it to 'users.{0}.keys' in the "
                      "spec, or adopt with a user that the spec does not declare (--user)",
                      user, step.value("id", "")));
  }
  return Ok{};
}

void adopt(Context& context, const Adopting& what) {
  Api api(context);
  const auto info = api.get("/v1/nodes/" + url_encode(what.node) + "/adopt");
  if (!info.ok()) return complain(context, info.error());
  const Json declared = info->value("adopt", Json());
  auto target = target_of(what, declared);
  if (!target.ok()) return complain(context, target.error());
  if (const auto pinned = pin_host_key(context, what, declared, *target); !pinned.ok())
    return complain(context, pinned.error());
  const auto agent = api.text("/v1/agent");
  if (!agent.ok()) return complain(context, agent.error());
  Host host(*target, *agent);
  auto found = look_and_plan(api, what, host, info->value("pin", ""));
  if (!found.ok()) {
    if (!context.json) fmt::print(stderr, "{}", render_refusals(api.details()));
    return complain(context, found.error(), api.details());
  }
  if (found->planned.value("empty", false)) return nothing_to_do(context, found->planned, false);
  if (const auto stays = check_access(*target, steps_of(found->planned.value("plan", Json::object())));
      !stays.ok())
    return complain(context, stays.error(), found->planned);
  if (!context.json) print_preview(*target, found->planned, found->answer);
  Json shown = found->planned;
  shown["preview"] = found->answer.value("steps", Json::array());
  if (const auto approved = approve(context, what.approval, found->planned); !approved.ok())
    return complain(context, approved.error(), shown);
  carry_out(context, what, host, *found);
}

}  // namespace muster::cli
