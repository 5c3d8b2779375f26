// What a spec would change, before it is stored.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/record.h"
#include "base/unified_diff.h"
#include "controller/api/handlers.h"
#include "controller/api/offered_spec.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/spec_preview.h"
#include "controller/bringup/whole_spec.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/link/link_hub.h"
#include "sys/reactor.h"

namespace muster::api {
namespace {

constexpr DurationMs kLiveChecks = kMinute;

struct Previewed {
  std::string spec = {};  // text; empty: the stored one
  std::string file = "cluster.yaml";
  std::vector<std::string> nodes = {}, force = {};
  bool reimage = false, through_ram = false;
  bool live = false;  // agents check the steps
};
MUSTER_RECORD(Previewed, opt(spec), opt(file), opt(nodes), opt(force), opt(reimage), opt(through_ram),
              opt(live))

Result<Previewed> previewed_from(const std::string& body) {
  TRY(const auto json, parse_json(body));
  return read_record<Previewed>(json, "preview");
}

// {revision, coming, unchanged, diff, warnings, ...}: of the text itself.
Json about_spec(const Call& call, const OfferedSpec& offered, const Previewed& previewed, int64_t coming) {
  const int64_t stored = offered.newest ? offered.newest->revision : 0;
  const std::string before = offered.newest ? offered.newest->text : "";
  const Executor& executor = call.services.executor;
  return {
      {"cluster", offered.spec.cluster},
      {"revision", stored},
      {"coming", coming},
      {"unchanged", offered.unchanged},
      {"diff", unified_diff(before, previewed.spec, "revision " + std::to_string(stored), previewed.file)},
      {"warnings", findings_json(offered.warnings, previewed.file)},
      {"run", executor.active() ? executor.run_id() : int64_t{0}},
      {"time", call.services.reactor.now()}};
}

// Steps that are as declared, or do not apply, are only counted.
Json live_json(const std::string& node, const Json& found) {
  Json out = {{"node", node}, {"error", found["error"]}, {"steps", Json::array()}, {"as_declared", 0}};
  int as_declared = 0;
  for (const Json& step : found["steps"])
    if (step["status"] == "already" || step["status"] == "not_applicable")
      ++as_declared;
    else
      out["steps"].push_back(step);
  out["as_declared"] = as_declared;
  return out;
}

// Adds `live`, a list with an entry for each node: what its agent found, or why it was not checked.
void check_live(const CallPtr& call, const PreviewSources& sources, const std::string& preview) {
  auto shown = parse_json(preview);
  if (!shown.ok()) return call->error(shown.error());
  const auto answer = [call, shown = std::move(shown).value(),
                       not_checked = sources.not_checked](const LiveChecks::Found& found) mutable {
    shown["live"] = Json::array();
    for (const auto& [node, one] : found) shown["live"].push_back(live_json(node, one));
    for (const auto& [node, why] : not_checked)
      shown["live"].push_back(live_json(node, {{"error", why}, {"steps", Json::array()}}));
    call->ok(shown);
  };
  call->services.link.live_checks().start(sources.steps, kLiveChecks, answer);
}

}  // namespace

void preview_spec(const CallPtr& call) {
  Services& services = call->services;
  auto previewed = previewed_from(call->request.body);
  if (!previewed.ok()) return call->error(previewed.error());
  if (previewed->spec.empty()) {
    const auto current = services.spec.get();  // its error names what to do where there is none
    if (!current.ok()) return call->error(current.error());
    const auto row = services.store.spec(0);
    if (!row.ok()) return call->error(row.error());
    previewed->spec = row->text;
  }
  const auto offered = offered_spec(call, previewed->spec, previewed->file);
  if (!offered) return;
  if (const Executor& executor = services.executor; previewed->live && executor.active())
    return call->error(fail(Code::conflict, fmt::format("run {} is under way: agents check nothing else "
                                                        "before it has ended (see `muster watch`)",
                                                        executor.run_id())));
  const int64_t coming = offered->unchanged ? offered->newest->revision : services.bringup.coming_revision();
  Bringup::Proposal proposal;
  proposal.spec = std::make_shared<const SpecRevision>(SpecRevision{coming, offered->digest, offered->spec});
  proposal.request.nodes = previewed->nodes;
  proposal.request.force = previewed->force;
  proposal.request.reimage = previewed->reimage;
  proposal.request.through_ram = previewed->through_ram;
  const auto sources = std::make_shared<PreviewSources>();
  sources->about = about_spec(*call, *offered, *previewed, coming);
  sources->live = previewed->live;
  services.bringup.preview(proposal, sources, [call, sources](Result<MadePlanPtr> made) {
    if (!made.ok()) return call->error(made.error());
    if (sources->live) return check_live(call, *sources, (*made)->shown);
    call->body(200, std::move((*made)->shown));
  });
}

}  // namespace muster::api
