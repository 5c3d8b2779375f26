#include "cli/adopt_verb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "base/json_dump.h"
#include "base/split.h"
#include "cli/adopt_host.h"
#include "cli/terminal.h"
#include "controller/ssh/ssh.h"
#include "controller/ssh/ssh_agent.h"
#include "sys/os.h"

namespace muster::cli {
namespace {

constexpr DurationMs kAdoptConnect = 20 * kSecond, kStart = 5 * kMinute;
constexpr size_t kAdoptAtOnce = 64;  // simultaneous connections, one mostly waiting thread each

struct One {
  std::string node, address;
  SshTarget target = {};
  std::vector<std::string> allowed = {};  // host keys
  bool declared = false;                  // the spec declares it, with its host key
  std::unique_ptr<Host> host = nullptr;
  Json seen = nullptr;                     // its answer to the first inspection
  Json steps = nullptr, answer = nullptr;  // its steps in the plan, and their results
  Status outcome = Ok{};                   // result of the last request that was sent to all hosts
};

void for_all(std::vector<One>& hosts, const std::function<Status(One&)>& work) {
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next++; i < hosts.size(); i = next++) hosts[i].outcome = work(hosts[i]);
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(hosts.size(), kAdoptAtOnce); ++i) threads.emplace_back(take);
  for (auto& thread : threads) thread.join();
}

// Returns the error of a single host, or the errors of several hosts, one per line.
Status together(const std::vector<One>& hosts, const char* what) {
  if (hosts.size() == 1) return hosts.front().outcome;
  const Error* first = nullptr;
  std::string lines;
  size_t bad = 0;
  for (const auto& one : hosts) {
    if (one.outcome.ok()) continue;
    if (!first) first = &one.outcome.error();
    lines += fmt::format("\n  {}: {}", one.node, clean(one.outcome.error().message));
    ++bad;
  }
  if (!first) return Ok{};
  return fail(first->code, fmt::format("{} of {} hosts {}:{}", bad, hosts.size(), what, lines));
}

// A host key that two hosts share identifies neither of them. It is accepted only if the spec declares it for
// both, because an operator has then decided so.
Status show_different_keys(const std::vector<One>& hosts) {
  std::map<std::string, std::string> whose;
  for (const auto& one : hosts)
    if (one.declared) whose.emplace(one.target.host_key, one.node);
  for (const auto& one : hosts) {
    if (one.declared) continue;
    if (const auto [other, is_new] = whose.emplace(one.target.host_key, one.node); !is_new)
      return fail(Code::denied,
                  fmt::format("{} and {} present the same host key ({}): they are the same machine, or "
                              "copies of one image; give each its own key (`ssh-keygen -A`)",
                              other->second, one.node, one.target.host_key));
  }
  return Ok{};
}

// Sets each host's pinned key: from the spec or the command line, or confirmed by the operator.
Status pin_host_keys(const Context& context, std::vector<One>& hosts) {
  for_all(hosts, [](One& one) -> Status {
    TRY(one.target.host_key, learn_host_key(one.target.address, one.target.port, kAdoptConnect, one.allowed));
    return one.allowed.empty() ? Status(Ok{}) : is_allowed(one.target, one.allowed, one.declared);
  });
  TRY_(together(hosts, "were rejected because of their host key; nothing was sent to any host"));
  TRY_(show_different_keys(hosts));
  std::vector<std::string> shown;
  for (const auto& one : hosts)
    if (one.allowed.empty())
      shown.push_back(
          fmt::format("{}:{} presents {}", one.target.address, one.target.port, one.target.host_key));
  if (shown.empty()) return Ok{};
  if (!context.json) {
    fmt::print(
        "{}\nCompare with the output of this command on the host: ssh-keygen -lf "
        "/etc/ssh/ssh_host_ed25519_key.pub\n",
        fmt::join(shown, "\n"));
    if (confirm_prompt(shown.size() == 1 ? "Does it match?" : "Do they all match?")) return Ok{};
  }
  const std::string how =
      shown.size() == 1
          ? "if it is the right key, pass --host-key " + shown.front().substr(shown.front().find("SHA256:"))
          : "if they are the right keys, put them into a file and pass --host-key FILE";
  return fail(Code::denied, fmt::format("host key not confirmed: {}; {}", fmt::join(shown, "; "), how));
}

// Assigns the plan's steps to all hosts in one pass, because a plan for many hosts is large.
void share_steps(const Json& planned, std::vector<One>& hosts) {
  std::map<std::string, One*> by_name;
  for (auto& one : hosts) {
    one.steps = Json::array();
    by_name[one.node] = &one;
  }
  for (const Json& action : planned.at("plan").at("actions")) {
    const auto one = by_name.find(action.value("node", ""));
    if (one == by_name.end() || action.value("kind", "") != "steps") continue;
    for (const Json& step : action.at("params").at("steps")) one->second->steps.push_back(step);
  }
}

// Returns the complete set of keys that this step sets for the account, as base64; nullopt: no change.
std::optional<std::vector<std::string>> keys_given(const Json& step, const std::string& user) {
  const Json params = step.value("params", Json::object());
  if (step.value("module", "") != "user" || params.value("name", "") != user || !params.contains("keys"))
    return std::nullopt;
  std::vector<std::string> out;
  for (const Json& line : params["keys"])
    if (const auto words = split_words(line.is_string() ? line.get<std::string>() : ""); words.size() > 1)
      out.push_back(words[1]);
  return out;
}

// Public keys of the operator's login, as base64: that of the key file, or those in the SSH agent.
Result<std::vector<std::string>> own_keys(const SshTarget& target) {
  std::vector<std::string> keys;
  if (!target.private_key.empty()) {
    TRY(keys.emplace_back(), public_key_of(target.private_key));
    return keys;
  }
  if (!target.agent_key.empty()) return std::vector<std::string>{target.agent_key};
  auto listed = ssh_agent_keys();
  if (!listed.ok())
    return fail(Code::denied,
                "the keys in the SSH agent cannot be listed, so muster cannot check that you could still "
                "log in afterwards: " +
                    listed.error().message + "; name the key with --key");
  return listed;
}

// Without its agent, an adopted host can be reached only with this key, so the plan must not remove it. The
// same keys are used to log in to all hosts.
Status check_access(const std::vector<One>& hosts) {
  std::optional<std::vector<std::string>> keys;
  for (const auto& one : hosts) {
    const std::string& user = one.target.user;
    const std::string own = one.host->own_key();
    // The plan changes neither the account nor MaxAuthTries.
    if (keeps_access(user, {}, one.steps).ok() && keeps_tries(user, {}, own, one.steps).ok()) continue;
    if (!keys) {
      TRY(keys, own_keys(one.target));
    }
    TRY_(keeps_access(user, *keys, one.steps));
    TRY_(keeps_tries(user, *keys, own, one.steps));
  }
  return Ok{};
}

std::string indented(const std::string& text, const char* by) {
  std::string out;
  for (const auto& line : split(text, '\n')) out += by + line + "\n";
  return out;
}

bool is_online(const Json& planned, const std::string& node) {
  const Json online = planned.value("online", Json::array());
  return std::find(online.begin(), online.end(), Json(node)) != online.end();
}

// Prints the changes; hosts with the same changes are listed together.
void print_preview(const std::vector<One>& hosts, const Json& planned) {
  if (!planned.value("diff", "").empty())
    fmt::print("The spec would become revision {}:\n{}\n", planned.value("revision", 0),
               clean_lines(planned.value("diff", "")));
  print_plan(planned);
  std::vector<std::pair<std::string, std::string>> groups;  // text, and its hosts
  for (const auto& one : hosts) {
    std::string text;
    if (!is_online(planned, one.node))
      text = "  muster-agent\n      the program in /usr/sbin, its unit, its identity\n";
    text += render_preview(one.answer.value("steps", Json::array()));
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const auto& entry) { return entry.first == text; });
    if (same == groups.end())
      groups.push_back({text, one.target.address});
    else
      same->second += ", " + one.target.address;
  }
  for (const auto& [text, whom] : groups)
    fmt::print("\nChanges on {} (checked on the host; nothing has been written yet):\n{}\n", whom, text);
}

// The result of starting the agent was lost: waits until the agent reports to the controller.
Status look_for_agent(Context& context, const std::string& node, TimeMs before, const Error& lost) {
  for (int tries = 0; tries < 30; ++tries) {
    const auto row = Api(context).get("/v1/nodes/" + url_encode(node));
    if (row.ok() && row->value("mode", "") == "adopted" && row->value("last_seen", int64_t{0}) > before)
      return Ok{};
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  return fail(
      Code::failed,
      lost.message + "; the agent on " + node +
          " did not report within a minute: run the same command again; it continues where it stopped");
}

Status start_agent(Context& context, One& one, const Json& ticket) {
  const auto row = Api(context).get("/v1/nodes/" + url_encode(one.node));
  const TimeMs before = row.ok() ? row->value("last_seen", int64_t{0}) : 0;
  auto started = one.host->request({{"ask", "join"},
                                    {"url", ticket.value("url", "")},
                                    {"pin", ticket.value("pin", "")},
                                    {"token", ticket.value("tokens", Json::object()).value(one.node, "")},
                                    {"node", one.node}},
                                   kStart);
  if (started.ok()) return Ok{};
  if (started.error().code == Code::timeout)
    return look_for_agent(context, one.node, before, started.error());
  return std::move(started).error().with("the agent did not join");
}

// Determines how to reach each host, from the command line and the spec.
Result<std::vector<One>> hosts_of(Api& api, const Adopting& what, std::string& pin) {
  std::vector<One> hosts;
  for (size_t i = 0; i < what.nodes.size(); ++i) {
    TRY(const Json info, api.get("/v1/nodes/" + url_encode(what.nodes[i]) + "/adopt"));
    pin = info.value("pin", "");
    const Json declared = info.value("adopt", Json());
    One one{what.nodes[i], what.addresses.empty() ? "" : what.addresses[i]};
    one.declared = declared.is_object();
    TRY(one.target, target_of(what, what.hosts[i], declared));
    TRY(one.allowed, allowed_keys(what, one.target, declared));
    hosts.push_back(std::move(one));
  }
  return hosts;
}

Json request_of(const std::vector<One>& hosts, const Adopting& what) {
  Json list = Json::array();
  for (const auto& one : hosts)
    list.push_back({{"name", one.node},
                    {"like", what.like},
                    {"host", one.target.address},
                    {"port", one.target.port},
                    {"user", one.target.user},
                    {"host_key", one.target.host_key},
                    {"address", one.address},
                    {"joined", one.seen.value("joined", false)},
                    {"facts", one.seen["facts"]}});
  return {{"hosts", list}};
}

// Makes the plan for all hosts and checks its steps on each host. Nothing is changed.
Result<Json> look_and_plan(Api& api, const Adopting& what, std::vector<One>& hosts, const std::string& pin) {
  for_all(hosts, [&](One& one) -> Status {
    TRY(one.seen, one.host->look(one.node, pin, Json::array()));
    return Ok{};
  });
  TRY_(together(hosts, "cannot be adopted, and no host was changed"));
  TRY(const Json planned, api.post("/v1/nodes/adopt", request_of(hosts, what)));
  if (planned.value("empty", false)) return planned;
  share_steps(planned, hosts);
  for_all(hosts, [&](One& one) -> Status {
    TRY(one.answer, one.host->look(one.node, pin, one.steps));
    return Ok{};
  });
  TRY_(together(hosts, "cannot be adopted, and no host was changed"));
  return planned;
}

void carry_out(Context& context, const Adopting& what, std::vector<One>& hosts, const Json& planned) {
  Api api(context);
  Json request = request_of(hosts, what);
  const std::string digest = planned.value("digest", "");
  request["digest"] = digest;
  const auto ticket = api.post("/v1/nodes/adopt", request);
  if (!ticket.ok()) return complain(context, ticket.error(), api.details());
  for (const auto& one : hosts)
    if (!context.json && !is_online(planned, one.node))
      fmt::print("starting the agent on {}\n", one.target.address);
  for_all(hosts, [&](One& one) {
    return is_online(planned, one.node) ? Status(Ok{}) : start_agent(context, one, *ticket);
  });
  const auto started =
      together(hosts, "did not start the agent (the other hosts did); to retry, run the same command again");
  for (auto& one : hosts) one.host.reset();  // a run may take hours: no idle connection is kept
  if (!started.ok()) return complain(context, started.error());
  Goal goal;
  goal.kind = "adopt";
  goal.nodes = what.nodes;
  goal.approval.digest = digest;
  goal.report_dir = what.report_dir;
  reach(context, goal);
  if (planned.value("declared", false) || context.json || context.exit != kAccepted) return;
  fmt::print(
      "Your spec file does not contain {0} yet: update it with `muster spec show > cluster.yaml`\nThe other "
      "nodes were not "
      "changed; `muster up` writes {0} into their hosts files.\n",
      fmt::join(what.nodes, ", "));
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
  list("unknown", "Known only after the steps above have run");
  list("secret", "Contains a secret, which is sent only during the run; the change is not known yet");
  out += fmt::format(
      "{} steps would change something, {} are already correct, {} do not apply, {} are not known yet\n",
      by["would_change"].size(), by["already"].size(), by["not_applicable"].size(),
      by["unknown"].size() + by["secret"].size());
  return out;
}

Status keeps_access(const std::string& user, const std::vector<std::string>& keys, const Json& steps) {
  for (const Json& step : steps) {
    const auto given = keys_given(step, user);
    if (!given) continue;
    if (std::find_first_of(given->begin(), given->end(), keys.begin(), keys.end()) == given->end())
      return fail(
          Code::denied,
          fmt::format("the key you log in with as {0} is not among those that the spec gives {0}: `{1}` "
                      "would remove it and lock you out; nothing was done. Add it to 'users.{0}.keys' in the "
                      "spec, or adopt with a user that the spec does not declare (--user)",
                      user, step.value("id", "")));
  }
  return Ok{};
}

Status keeps_tries(const std::string& user, const std::vector<std::string>& keys, const std::string& own,
                   const Json& steps) {
  std::vector<std::string> taken = {own};
  size_t tries = 0;
  std::string by;
  for (const Json& step : steps) {
    const Json params = step.value("params", Json::object());
    if (const auto given = keys_given(step, user)) taken = *given;
    const Json settings = params.value("settings", Json::object());
    if (step.value("module", "") != "sshd" || !settings.is_object() || !settings.contains("MaxAuthTries"))
      continue;
    const Json& most = settings["MaxAuthTries"];
    const std::string text = most.is_string() ? most.get<std::string>() : dump_json(most);
    const size_t limit = std::strtoul(text.c_str(), nullptr, 10);
    if (limit > 0 && (tries == 0 || limit < tries)) {
      tries = limit;
      by = step.value("id", "");
    }
  }
  const auto first = std::find_if(keys.begin(), keys.end(), [&](const std::string& key) {
    return std::find(taken.begin(), taken.end(), key) != taken.end();
  });
  const size_t place = static_cast<size_t>(first - keys.begin()) + 1;
  if (tries == 0 || (first != keys.end() && place <= tries)) return Ok{};
  return fail(
      Code::denied,
      fmt::format("`{}` allows {} keys per login, but of the {} keys in your SSH agent, the one that {} "
                  "accepts is number {}: `ssh` would not reach it; nothing was done. Name the key with "
                  "--key FILE (the .pub file is enough), and use `ssh -o IdentitiesOnly=yes -i FILE`",
                  by, tries, keys.size(), user, place));
}

void adopt(Context& context, const Adopting& what) {
  Api api(context);
  std::string pin;
  auto hosts = hosts_of(api, what, pin);
  if (!hosts.ok()) return complain(context, hosts.error());
  if (const auto pinned = pin_host_keys(context, *hosts); !pinned.ok())
    return complain(context, pinned.error());
  const auto agent = api.text("/v1/agent");
  if (!agent.ok()) return complain(context, agent.error());
  for (auto& one : *hosts) one.host = std::make_unique<Host>(one.target, *agent);
  const auto planned = look_and_plan(api, what, *hosts, pin);
  if (!planned.ok()) {
    if (!context.json) fmt::print(stderr, "{}", render_refusals(api.details()));
    return complain(context, planned.error(), api.details());
  }
  if (planned->value("empty", false)) return nothing_to_do(context, *planned, false);
  if (const auto stays = check_access(*hosts); !stays.ok()) return complain(context, stays.error(), *planned);
  if (!context.json) print_preview(*hosts, *planned);
  Json shown = *planned;
  for (const auto& one : *hosts) shown["preview"][one.node] = one.answer.value("steps", Json::array());
  if (const auto approved = approve(context, what.approval, *planned); !approved.ok())
    return complain(context, approved.error(), shown);
  carry_out(context, what, *hosts, *planned);
}

}  // namespace muster::cli
