// Replacing what may have leaked: operator token, master key, munge key, CA (docs/replace-secrets.md). GET
// says what the next step would do and what still has the old one, POST does the step. Each step is durable
// before the answer: after a lost answer or a killed controller, GET shows where it stands. Secrets are named
// by an id, the beginning of their digest: a POST for an id that is replaced already does nothing.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "base/name_ranges.h"
#include "base/record.h"
#include "base/split.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/nodes_view.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/executor/node_changes.h"
#include "controller/link/event_log.h"
#include "controller/link/link_hub.h"
#include "controller/ports/store.h"
#include "controller/trust/authority.h"
#include "controller/trust/vault.h"
#include "sys/reactor.h"

namespace muster::api {
namespace {

constexpr char kMungeKey[] = "munge-key";
constexpr char kMungePlaybook[] = "scheduler";

struct Left {
  std::string node, why;
  bool moves = false;  // it gets the new one by itself, soon
};

struct Replacement {
  std::string id;
  TimeMs since = 0;  // 0: unknown
  std::string step = "replace";
  std::vector<std::string> effects = {};  // of the step
  std::vector<std::string> after = {};    // what is to be done by hand once all is replaced
  std::vector<Left> left = {};            // nodes that still have the old one
  std::vector<std::string> apply = {};    // of them, those that a plan can bring the new one now
};

// The body of a POST.
struct StepShown {
  std::string id, step;
};
MUSTER_RECORD(StepShown, id, step)

struct Replaced {
  const char* name;
  Result<Replacement> (*look)(const Call&);
  void (*act)(const CallPtr&, const Replacement&);
};

TimeMs written_at(const Services& services, const std::string& file) {
  struct stat info {};
  if (::stat((services.options.state + file).c_str(), &info) != 0) return 0;
  return static_cast<TimeMs>(info.st_mtim.tv_sec) * kSecond;
}

std::string id_of(const std::string& secret) { return short_digest(sha256("muster " + secret)); }

bool reports(const Services& services, const NodeRow& row) {
  const auto silent = services.executor.silent_for(row.name);
  return silent && *silent < Bringup::kOnline;
}

std::string why_silent(const Services& services, const NodeRow& row) {
  const auto silent = services.executor.silent_for(row.name);
  return silent ? "no contact for " + to_human(*silent) : "no contact since musterd started";
}

// Rows of the spec's nodes, without those that no agent belongs to or reports from (a RAM system).
std::vector<NodeRow> nodes_with_agent(const Services& services) {
  std::vector<NodeRow> out;
  const auto current = services.spec.get();
  if (!current.ok()) return out;
  const auto& rows = services.executor.node_rows();
  for (const NodeSpec& node : (*current)->spec.nodes)
    if (const auto row = rows.find(node.name);
        row != rows.end() && (has_agent(row->second) || reports(services, row->second)))
      out.push_back(row->second);
  return out;
}

std::vector<std::string> names_of(const std::vector<Left>& nodes) {
  std::vector<std::string> out;
  for (const Left& one : nodes) out.push_back(one.node);
  return out;
}

void note_replaced(const CallPtr& call, const std::string& name, const char* action) {
  call->record("", "secret", {{"name", name}, {"action", action}});
}

// ---- operator token

Result<Replacement> look_at_token(const Call& call) {
  return Replacement{
      .id = id_of(call.services.authority.operator_token()),
      .since = written_at(call.services, "/operator-token"),
      .effects =
          {"STATE/operator-token gets a new token; the present one is refused at once",
           "connections over TLS end, and agents reconnect by themselves; no node is affected, and jobs "
           "run on",
           "copies on other machines stop working: --token-file, Prometheus' credentials_file, scripts"},
      .after = {"copies of the old token on other machines are refused: replace them"}};
}

void replace_token(const CallPtr& call, const Replacement&) {
  if (const Status done = call->services.authority.replace_token(); !done.ok())
    return call->error(done.error());
  call->services.reopen();
  note_replaced(call, "operator-token", "replaced");
  get_replacement(call);
}

// ---- master key

Result<Replacement> look_at_master_key(const Call& call) {
  TRY(const auto names, call.services.vault.list());
  return Replacement{
      .id = call.services.vault.master_key_id(),
      .since = written_at(call.services, "/master.key"),
      .effects =
          {fmt::format("{} secrets are sealed with a new key in one transaction, then STATE/master.key is "
                       "replaced; no node is affected",
                       names.size()),
           "copies of the database from before open with the present key only: keep a copy of "
           "STATE/master.key with those that you keep",
           "who has the present key and a copy of the database can read every secret in it: replace those, "
           "too"},
      .after = {
          "make a backup, and copy STATE/master.key to where its keys are",
          "copies of the database from before need the old master key: keep it with them, or delete both"}};
}

void replace_master_key(const CallPtr& call, const Replacement&) {
  call->services.vault.replace_master_key([call](Status done) {
    if (!done.ok()) return call->error(done.error());
    note_replaced(call, "master-key", "replaced");
    get_replacement(call);
  });
}

// ---- munge key

std::vector<NodeRow> nodes_with_munge(const Services& services) {
  auto rows = nodes_with_agent(services);
  const auto current = services.spec.get();
  std::erase_if(rows, [&](const NodeRow& row) {
    const NodeSpec* node = current.ok() ? (*current)->spec.node(row.name) : nullptr;
    return !node || !(*current)->spec.plays(*node, kMungePlaybook);
  });
  return rows;
}

Result<Replacement> look_at_munge_key(const Call& call) {
  const Services& services = call.services;
  TRY(const auto key, services.vault.get(kMungeKey));
  TRY(const auto row, services.store.secret(kMungeKey));
  Replacement out{.id = id_of(key), .since = row.time};
  std::vector<std::string> all, silent;
  for (const NodeRow& node : nodes_with_munge(services)) {
    all.push_back(node.name);
    const bool is_there = reports(services, node);
    if (!is_there) silent.push_back(node.name);
    if (!is_configuration_outdated(node)) continue;
    out.left.push_back({node.name, is_there ? "not configured since" : why_silent(services, node)});
    if (is_there && node.state != NodeState::quarantined) out.apply.push_back(node.name);
  }
  const std::string nodes = all.empty() ? "no node" : names_in_ranges(all);
  if (!out.apply.empty()) {
    out.step = "apply";
    out.effects = {"the key was replaced, and these nodes do not have it yet: " + names_in_ranges(out.apply)};
  } else {
    out.effects = {"the controller makes a new key; with a plan that you approve next, it is brought to " +
                   nodes};
  }
  out.effects.push_back(
      "until all have it, Slurm's daemons reject each other: its commands fail, and no job starts. Running "
      "jobs "
      "go on, but Slurm ends those of a node whose slurmd it cannot reach for 5 minutes (SlurmdTimeout)");
  out.effects.push_back(
      "the plan restarts munge, slurmctld and slurmd, and measures the nodes as `muster up` does, beside "
      "jobs "
      "where there are any: drain the nodes first");
  if (!silent.empty())
    out.effects.push_back(
        fmt::format("not reached now: {}: Slurm rejects them until the first `muster up` in "
                    "which they report",
                    names_in_ranges(silent)));
  return out;
}

void replace_munge_key(const CallPtr& call, const Replacement& now) {
  const Services& services = call->services;
  if (now.step == "apply") return get_replacement(call);
  // It may have brought the old key to a node already, and ends with that node up to date.
  if (services.executor.active())
    return call->error(fail(Code::conflict, "a run is active: replace the key when it has ended"));
  if (!services.executor.machines())
    return call->error(fail(Code::unavailable, "the nodes cannot be read from the store: retry"));
  std::set<NodeName> nodes;
  for (const NodeRow& row : nodes_with_munge(services)) nodes.insert(row.name);
  // In one batch: a new key without the mark would be taken for one that every node has.
  services.vault.replace_own(
      kMungeKey,
      [call, nodes](Write row, Store::Done done) {
        call->services.executor.set_nodes(nodes, configuration_outdated(), std::move(row),
                                          [done = std::move(done)] { done(Ok{}); });
      },
      [call](Status done) {
        if (!done.ok()) return call->error(done.error());
        note_replaced(call, kMungeKey, "replaced");
        get_replacement(call);
      });
}

// ---- CA

std::vector<Left> not_moved(const Services& services) {
  std::vector<Left> out;
  for (const NodeRow& row : nodes_with_agent(services)) {
    const std::string trusts = services.link.trusted_by(row.name);
    if (trusts == services.authority.trust()) continue;
    if (!reports(services, row))
      out.push_back({row.name, why_silent(services, row)});
    else if (trusts.empty())
      out.push_back(
          {row.name,
           "its agent is of a version that cannot do it: replace the agent (package muster-agent), or "
           "re-image the node"});
    else
      out.push_back({row.name, "its certificate is not renewed yet", true});
  }
  return out;
}

std::vector<std::string> exceptions_of(const Call& call) { return split(call.query("without"), ','); }

bool are_excepted(const std::vector<Left>& left, const std::vector<std::string>& exceptions) {
  return std::all_of(left.begin(), left.end(), [&](const Left& one) {
    return std::find(exceptions.begin(), exceptions.end(), one.node) != exceptions.end();
  });
}

std::vector<std::string> effects_of_begin(const std::vector<NodeRow>& nodes, const Services& services) {
  std::vector<std::string> all, silent;
  for (const NodeRow& row : nodes) {
    all.push_back(row.name);
    if (!reports(services, row)) silent.push_back(row.name);
  }
  std::vector<std::string> out = {
      fmt::format(
          "a second CA is made; within minutes the agents of {} trust both and have certificates of the "
          "new one. Nothing restarts, and jobs run on",
          all.empty() ? "no node" : names_in_ranges(all)),
      "connections over TLS end once; agents reconnect by themselves",
      "`muster replace ca` then shows which nodes have moved, and withdraws the old CA when all have"};
  if (!silent.empty())
    out.push_back(
        fmt::format("not reached now: {}: they move when they report. Those that have not when the old "
                    "CA is withdrawn must be re-imaged",
                    names_in_ranges(silent)));
  return out;
}

std::vector<std::string> effects_of_withdrawal(const std::vector<Left>& left) {
  std::vector<std::string> out = {
      "the old CA's key is overwritten, and its certificates are refused; there is no way back",
      "connections over TLS end once; agents reconnect by themselves",
      "copies of STATE/pki/ca.crt on other machines must be replaced: --ca-file, Prometheus' ca_file"};
  if (!left.empty())
    out.push_back(
        fmt::format("{} cannot reach the controller afterwards: `muster reimage {}`; adopted hosts are "
                    "adopted again",
                    names_in_ranges(names_of(left)), names_in_ranges(names_of(left))));
  return out;
}

Result<Replacement> look_at_ca(const Call& call) {
  const Services& services = call.services;
  const Authority& authority = services.authority;
  for (const std::string& name : exceptions_of(call))
    if (!services.nodes.contains(NodeName(name)))
      return fail(Code::not_found, fmt::format("--without: no node '{}'", name));
  Replacement out{.id = short_digest(authority.ca_fingerprint()),
                  .since = written_at(services, "/pki/ca.key")};
  const auto nodes = nodes_with_agent(services);
  if (authority.replacing_ca() || authority.identity() != authority.ca_fingerprint())
    out.left = not_moved(services);
  out.after = {"copies of STATE/pki/ca.crt on other machines are of the old CA: replace them"};
  const bool excepted = are_excepted(out.left, exceptions_of(call));
  const bool lags = std::any_of(out.left.begin(), out.left.end(), [](const Left& one) { return one.moves; });
  if (authority.replacing_ca() && excepted) {
    out.step = "withdraw";
    out.effects = effects_of_withdrawal(out.left);
  } else if (authority.replacing_ca()) {
    out.step = "wait";
    out.effects = {fmt::format("{} of {} nodes have moved to the new CA; the old one is still trusted",
                               nodes.size() - out.left.size(), nodes.size())};
  } else if (lags && !excepted) {
    out.step = "wait";
    out.effects = {"the old CA is withdrawn; agents trust it until they have renewed their certificates"};
  } else {
    out.step = "begin";
    out.effects = effects_of_begin(nodes, services);
  }
  return out;
}

void replace_ca(const CallPtr& call, const Replacement& now) {
  Services& services = call->services;
  if (now.step == "wait")
    return call->error(fail(Code::conflict, fmt::format("{} have not moved to the new CA: wait for them, or "
                                                        "name them with --without",
                                                        names_in_ranges(names_of(now.left)))));
  const bool begins = now.step == "begin";
  // A machine that boots now has the present CA's digest on its command line.
  if (!begins && services.executor.active())
    return call->error(fail(Code::conflict, "a run is active: withdraw the old CA when it has ended"));
  const TimeMs time = services.reactor.now();
  const Status done = begins ? services.authority.begin_ca(time) : services.authority.withdraw_ca(time);
  if (!done.ok()) return call->error(done.error());
  services.reopen();
  note_replaced(call, "ca", begins ? "replacement begun" : "replaced");
  get_replacement(call);
}

constexpr Replaced kReplaced[] = {{"token", look_at_token, replace_token},
                                  {"munge-key", look_at_munge_key, replace_munge_key},
                                  {"master-key", look_at_master_key, replace_master_key},
                                  {"ca", look_at_ca, replace_ca}};

// Null, and the call is answered, if there is none of that name.
const Replaced* named(const CallPtr& call) {
  for (const Replaced& one : kReplaced)
    if (call->arg("secret") == one.name) return &one;
  call->error(fail(Code::not_found, "nothing to replace is called '" + call->arg("secret") +
                                        "': token, munge-key, master-key, ca"));
  return nullptr;
}

Json replacement_json(const std::string& name, const Replacement& now) {
  Json left = Json::array();
  for (const Left& one : now.left)
    left.push_back({{"node", one.node}, {"why", one.why}, {"moves", one.moves}});
  return {{"secret", name},         {"id", now.id},       {"since", now.since}, {"step", now.step},
          {"effects", now.effects}, {"after", now.after}, {"left", left},       {"apply", now.apply}};
}

}  // namespace

void get_replacement(const CallPtr& call) {
  const Replaced* what = named(call);
  if (!what) return;
  const auto now = what->look(*call);
  if (!now.ok()) return call->error(now.error());
  call->ok(replacement_json(what->name, *now));
}

// Not with the operator's token, which may be the one that leaked.
void replace_secret(const CallPtr& call) {
  const Replaced* what = named(call);
  if (!what) return;
  if (call->listener != Listener::local)
    return call->error(fail(Code::denied,
                            "secrets are replaced on the controller host, through the controller's "
                            "socket only"));
  const auto body = parse_json(call->request.body);
  if (!body.ok()) return call->error(body.error());
  const auto shown = read_record<StepShown>(*body, "request");
  if (!shown.ok()) return call->error(shown.error());
  const auto now = what->look(*call);
  if (!now.ok()) return call->error(now.error());
  if (now->id != shown->id || now->step != shown->step)
    return call->error(
        fail(Code::conflict, fmt::format("the {} is at another step than was shown ({}, {}): nothing "
                                         "was done. `muster replace {}` shows it",
                                         what->name, now->id, now->step, what->name)));
  what->act(call, *now);
}

}  // namespace muster::api
