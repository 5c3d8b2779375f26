// The desired cluster: revisions of cluster.yaml.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "base/unified_diff.h"
#include "controller/api/handlers.h"
#include "controller/api/offered_spec.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster::api {
namespace {

Json row_json(const SpecRow& row, bool with_text) {
  Json j = {{"revision", row.revision},
            {"time", row.time},
            {"digest", row.digest},
            {"note", row.note},
            {"caller", row.caller}};
  if (with_text) j["text"] = row.text;
  return j;
}

// `after`: the newest revision that the caller has seen. Ok if it still is, or if none was given.
Status is_newest(const std::string& after, const std::optional<SpecRow>& newest) {
  const int64_t revision = newest ? newest->revision : 0;
  if (after.empty() || after == std::to_string(revision)) return Ok{};
  const std::string by = newest && !newest->caller.empty() ? " by " + newest->caller : "";
  const std::string now = revision == 0 ? "no revision is stored any more"
                                        : fmt::format("revision {} was stored{} meanwhile", revision, by);
  return fail(Code::conflict,
              now + ": nothing was stored; look at what this spec changes now, then store it again");
}

int64_t revision_of(const Call& call, const char* name) {
  return std::strtoll(call.query(name, "0").c_str(), nullptr, 10);
}

}  // namespace

void put_spec(const CallPtr& call) {
  const auto offered = offered_spec(call, call->request.body, call->query("file", "cluster.yaml"));
  if (!offered) return;
  Json reply = {
      {"cluster", offered->spec.cluster}, {"nodes", offered->spec.nodes.size()},
      {"lab", offered->spec.lab},         {"digest", offered->digest},
      {"unchanged", offered->unchanged},  {"revision", offered->newest ? offered->newest->revision : 0}};
  if (offered->unchanged || call->query("dry") == "1") return call->ok(reply);
  if (const Status newest = is_newest(call->query("after"), offered->newest); !newest.ok())
    return call->error(newest.error());
  // During a run, addresses of BMCs, MACs and images are taken from the newest revision: with a changed spec,
  // the run could switch a machine that is not in its plan.
  if (const Executor& executor = call->services.executor; executor.active())
    return call->error(
        fail(Code::conflict,
             fmt::format("run {} is under way: change the spec after the run has ended (see `muster watch`)",
                         executor.run_id())));
  SpecRow row;
  // That of a preview: the plan that it showed is the same one afterwards.
  row.revision = call->services.bringup.coming_revision(true);
  row.time = call->services.reactor.now();
  row.text = call->request.body;
  row.digest = offered->digest;
  row.note = call->query("note");
  row.caller = text_of(call->caller);
  reply["revision"] = row.revision;
  call->services.store.write({row}, [call, reply](Status written) {
    if (!written.ok()) return call->error(written.error());
    call->record("", "spec", {{"revision", reply["revision"]}, {"digest", reply["digest"]}});
    call->services.spec.changed();
    call->ok(reply);
  });
}

void get_spec(const CallPtr& call) {
  const int64_t revision = revision_of(*call, "rev");
  const auto row = call->services.store.spec(revision);
  if (!row.ok()) {
    const auto newest = call->services.spec.get();
    return call->error(revision == 0 && !newest.ok() ? newest.error() : row.error());
  }
  if (call->query("format") == "yaml") return call->text(200, row->text, "application/yaml");
  call->ok(row_json(*row, true));
}

void list_specs(const CallPtr& call) {
  const auto rows = call->services.store.specs();
  if (!rows.ok()) return call->error(rows.error());
  Json list = Json::array();
  for (const auto& row : *rows) list.push_back(row_json(row, false));
  call->ok({{"specs", list}});
}

void diff_spec(const CallPtr& call) {
  const auto from = call->services.store.spec(revision_of(*call, "from"));
  if (!from.ok()) return call->error(from.error());
  const auto to = call->services.store.spec(revision_of(*call, "to"));
  if (!to.ok()) return call->error(to.error());
  const auto name = [](const SpecRow& row) { return fmt::format("revision {}", row.revision); };
  call->ok({{"from", from->revision},
            {"to", to->revision},
            {"diff", unified_diff(from->text, to->text, name(*from), name(*to))}});
}

}  // namespace muster::api
