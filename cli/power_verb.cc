// muster power: queries or switches nodes through their BMCs, at the operator's request.
#include <fmt/format.h>

#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/split.h"
#include "cli/carry_out.h"
#include "cli/cli_context.h"
#include "cli/node_calls.h"
#include "cli/power_test.h"
#include "cli/shown_nodes.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

struct PowerFlags {
  std::string nodes;
  bool yes = false;
};

// "gpu03: accepted, role gpu; the scheduler has jobs on it, or may have; run 7 works on it (image)"
std::string use_of(const Json& node, const Json& run) {
  std::string out = clean_at(node, "name");
  for (const std::string& word : words_of_node(node))
    out += (out == clean_at(node, "name") ? ": " : ", ") + clean(word);
  if (const std::string role = clean_at(node, "role"); !role.empty()) out += ", role " + role;
  if (is_true_at(node, "busy")) out += "; the scheduler has jobs on it, or may have";
  if (const std::string phase = clean_at(node, "phase"); !phase.empty() && run.is_object())
    out += fmt::format("; run {} works on it ({})", run.value("id", int64_t{0}), phase);
  return out;
}

// Prompts, because what runs on the nodes is lost.
Status confirm_loss(Context& context, const std::string& action, const std::vector<std::string>& names,
                    const PowerFlags& flags) {
  if (flags.yes || context.json) return confirmed(context, flags.yes, "");
  TRY(const NodeFilter filter, node_filter(flags.nodes, "", ""));
  TRY(Json whole, Api(context).get("/v1/status"));
  TRY_(names_nodes(filter, whole));
  const Json status = only(std::move(whole), filter);
  const ShownNodes shown = shown_nodes(list_at(status, "nodes"), kShownNodes);
  for (const Json* node : shown.nodes)
    fmt::print(stderr, "  {}\n", use_of(*node, status.value("run", Json())));
  if (shown.left_out > 0) fmt::print(stderr, "  and {} more\n", shown.left_out);
  const char* effect = action == "off" ? "Power off" : "Power-cycle";
  return confirmed(context, false,
                   fmt::format("{} {} node{}, without a shutdown of the system?", effect, names.size(),
                               names.size() == 1 ? "" : "s"));
}

void print_waiting(const std::vector<std::string>& under_way, size_t not_begun) {
  const std::string more = not_begun > 0 ? fmt::format("; {} more follow", not_begun) : "";
  fmt::print(stderr, "waiting for the BMCs of {} node{}: {}{}\n", under_way.size(),
             under_way.size() == 1 ? "" : "s", some_of(under_way, kCallsAtOnce), more);
}

// If a BMC does not respond, the other nodes are still handled; every result is printed.
void act(Context& context, const std::string& action, const PowerFlags& flags) {
  const auto names = node_list(flags.nodes);
  if (!names.ok()) return complain(context, names.error());
  if (names->empty()) return complain(context, fail(Code::invalid, "no node is named"));
  if (action == "off" || action == "cycle")
    if (const Status may = confirm_loss(context, action, *names, flags); !may.ok())
      return complain(context, may.error());
  const NodeCall call = [&context, &action](const std::string& node) {
    Api api(context);
    const std::string path = "/v1/power/" + url_encode(node) + "/" + action;
    return action == "state" ? api.get(path) : api.post(path, Json::object());
  };
  const auto finished = [&](const std::string& node, const Result<Json>& result) {
    if (context.json) return;
    if (result.ok())
      fmt::print("{}: {}\n", node, clean(result->value(action == "done" ? "done" : "power", "unknown")));
    else
      fmt::print(stderr, "muster: {}: {}\n", node, clean_lines(result.error().message));
    std::fflush(stdout);
  };
  const auto results = call_each(*names, call, {finished, print_waiting});
  context.exit = exit_for_calls(results);
  if (!context.json) return;
  Json all = Json::array();
  for (size_t at = 0; at < results.size(); ++at)
    if (results[at].ok())
      all.push_back(*results[at]);
    else
      all.push_back({{"node", (*names)[at]},
                     {"code", to_string(results[at].error().code)},
                     {"message", results[at].error().message}});
  fmt::print("{}\n", dump_json(all, 2));
}

struct PowerAction {
  const char *name, *help;
};
constexpr PowerAction kPowerActions[] = {
    {"state", "show the power state (on or off) that the BMCs report"},
    {"on", "power on"},
    {"off", "hard power off"},
    {"cycle", "power off, then on; the node boots from its disk"},
    {"done",
     "confirm that you did the manual task that `muster status` lists (only for nodes with power driver "
     "`manual`)"}};

}  // namespace

void add_power(Verb& app, Context& context) {
  Verb& verb = app.add_verb("power", "query or change the power state of nodes through their BMCs");
  verb.needs_verb();
  for (const auto& [name, help] : kPowerActions) {
    auto flags = std::make_shared<PowerFlags>();
    Verb& action = verb.add_verb(name, help);
    action.add_option("NODES", &flags->nodes, "e.g. gpu[01-04]").required().check(wrong_list);
    const std::string word = name;
    if (word == "off" || word == "cycle")
      action.add_flag("--yes,-y", &flags->yes, "without a prompt that shows what runs on the nodes");
    action.footer("Exit: 0, 3 some nodes failed; all: 1 failed, 2 no such node, 4 refused.");
    action.example(fmt::format("muster power {} gpu[01-04]", word));
    action.runs([word, flags, &context] { act(context, word, *flags); });
  }
  add_power_test(verb, context);
  verb.example("muster power state gpu[01-64]").example("muster power cycle gpu03");
}

}  // namespace muster::cli
