// What a spec would change, before it is stored.
#include <memory>

#include "base/unified_diff.h"
#include "controller/api/handlers.h"
#include "controller/api/offered_spec.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "sys/reactor.h"

namespace muster::api {
namespace {

struct Previewed {
  std::string spec, file;
  Bringup::Request request = {};
};

Result<Previewed> previewed_from(const std::string& body) {
  TRY(const auto json, parse_json(body));
  Previewed out;
  JsonReader r(json, "preview");
  r.get_or("spec", out.spec, {});
  r.get_or("file", out.file, std::string("cluster.yaml"));
  r.get_or("nodes", out.request.nodes, {});
  r.get_or("force", out.request.force, {});
  r.get_or("reimage", out.request.reimage, false);
  r.get_or("through_ram", out.request.through_ram, false);
  TRY_(r.finish());
  return out;
}

// {revision, coming, unchanged, diff, ...}: of the text itself.
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
      {"run", executor.active() ? executor.run_id() : int64_t{0}},
      {"time", call.services.reactor.now()}};
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
  const int64_t coming = offered->unchanged ? offered->newest->revision : services.bringup.coming_revision();
  Bringup::Proposal proposal;
  proposal.spec = std::make_shared<const SpecRevision>(SpecRevision{coming, offered->digest, offered->spec});
  proposal.request = previewed->request;
  services.bringup.preview(proposal, about_spec(*call, *offered, *previewed, coming),
                           [call](Result<MadePlanPtr> made) {
                             if (!made.ok()) return call->error(made.error());
                             call->body(200, std::move((*made)->shown));
                           });
}

}  // namespace muster::api
