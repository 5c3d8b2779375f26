// muster power: queries or switches nodes through their BMCs, at the operator's request.
#include <fmt/format.h>

#include "base/json_dump.h"
#include "cli/cli_context.h"
#include "cli/power_test.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

void act(Context& context, const std::string& action, const std::string& nodes) {
  const auto names = node_list(nodes);
  if (!names.ok()) return complain(context, names.error());
  Json all = Json::array();
  // If a BMC does not respond, the other nodes are still handled; every result is printed.
  for (const auto& node : *names) {
    Api api(context);
    const std::string path = "/v1/power/" + url_encode(node) + "/" + action;
    const auto result = action == "state" ? api.get(path) : api.post(path, Json::object());
    if (result.ok()) {
      all.push_back(*result);
      if (!context.json)
        fmt::print("{}: {}\n", node, clean(result->value(action == "done" ? "done" : "power", "unknown")));
      continue;
    }
    if (context.exit == kAccepted) context.exit = exit_for(result.error());
    all.push_back(
        {{"node", node}, {"code", to_string(result.error().code)}, {"message", result.error().message}});
    if (!context.json) fmt::print(stderr, "muster: {}: {}\n", node, result.error().message);
  }
  if (context.json) fmt::print("{}\n", dump_json(all, 2));
}

}  // namespace

void add_power(Verb& app, Context& context) {
  Verb& verb = app.add_verb("power", "query or change a node's power state through its BMC");
  verb.needs_verb();
  const std::pair<const char*, const char*> actions[] = {
      {"state", "show the power state (on or off) that the BMC reports"},
      {"on", "power on"},
      {"off", "hard power off"},
      {"cycle", "power off, then on; the node boots from its disk"},
      {"done",
       "confirm that you did the manual task that `muster status` lists "
       "(only for nodes with power driver `manual`)"}};
  for (const auto& [name, help] : actions) {
    auto nodes = std::make_shared<std::string>();
    Verb& action = verb.add_verb(name, help);
    action.add_option("NODES", nodes.get(), "e.g. gpu[01-04]").required();
    action.runs([action = std::string(name), nodes, &context] { act(context, action, *nodes); });
  }
  add_power_test(verb, context);
  verb.footer("Example:\n  muster power cycle gpu03");
}

}  // namespace muster::cli
