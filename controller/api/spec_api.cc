// The desired cluster: revisions of cluster.yaml.
#include <fmt/format.h>

#include "base/digest.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/signed_gpu_results.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/ports/store.h"
#include "controller/spec/lab_only.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "sys/reactor.h"

namespace muster::api {
namespace {

constexpr size_t kSpecLimit = 4 << 20;

Json errors_json(const std::vector<SpecError>& errors, const std::string& file) {
  Json list = Json::array();
  for (const auto& e : errors)
    list.push_back({{"file", e.file.empty() ? file : e.file},
                    {"line", e.line},
                    {"column", e.column},
                    {"path", e.path},
                    {"message", e.message},
                    {"text", to_string(e, file)}});
  return {{"code", "invalid"},
          {"message", fmt::format("{} error{} in the spec", errors.size(), errors.size() == 1 ? "" : "s")},
          {"errors", list}};
}

Json row_json(const SpecRow& row, bool with_text) {
  Json j = {{"revision", row.revision},
            {"time", row.time},
            {"digest", row.digest},
            {"note", row.note},
            {"caller", row.caller}};
  if (with_text) j["text"] = row.text;
  return j;
}

// Addresses that are not declared are assigned in the order of names, so adding or removing a node would
// change them. An installed machine keeps its address until it is re-imaged, so such a spec is rejected.
Status keeps_addresses(const Spec& before, const Spec& after, const Executor& executor) {
  std::string moved;
  int count = 0;
  for (const auto& node : after.nodes) {
    const NodeSpec* old = node.address_chosen ? before.node(node.name) : nullptr;
    if (!old || old->address == node.address || executor.node_row(node.name).image_digest.empty()) continue;
    if (++count <= 8)
      moved += fmt::format("\n  {}: address: {}   (would become {})", node.name, old->address, node.address);
  }
  if (count == 0) return Ok{};
  if (count > 8) moved += fmt::format("\n  and {} more", count - 8);
  return fail(
      Code::denied,
      fmt::format("the addresses of installed nodes would change, because they are not declared and "
                  "are assigned in the order of node names. Declare the present addresses, or restore "
                  "the order of names:{}",
                  moved));
}

// The controller cannot read the operator's files: the spec must contain the playbooks' texts.
Result<std::vector<SpecError>> refused_playbooks(const Call& call, const Spec& spec) {
  if (!spec.playbook_paths.empty())
    return fail(Code::invalid,
                fmt::format("playbooks: '{}' is a path, and the controller does not read the operator's "
                            "files: use `muster up FILE`, which puts their texts into the spec",
                            spec.playbook_paths.front()));
  return call.services.bringup.check_playbooks(spec);
}

int64_t revision_of(const Call& call, const char* name) {
  return std::strtoll(call.query(name, "0").c_str(), nullptr, 10);
}

}  // namespace

void put_spec(const CallPtr& call) {
  if (call->request.body.size() > kSpecLimit)
    return call->error(fail(Code::invalid, "the spec is larger than 4 MiB"));
  const ParsedSpec parsed = parse_spec(call->request.body, call->services.bringup.names());
  const std::string file = call->query("file", "cluster.yaml");
  if (!parsed.errors.empty()) return call->json(422, errors_json(parsed.errors, file));
  if (const auto virtual_only = lab_only(parsed.spec); !virtual_only.empty() && !call->services.options.lab)
    return call->json(422, errors_json(virtual_only, file));
  const auto refused = refused_playbooks(*call, parsed.spec);
  if (!refused.ok()) return call->error(refused.error());
  if (!refused->empty()) return call->json(422, errors_json(*refused, file));
  if (const auto results = gpu_results_of(parsed.spec); !results.ok()) return call->error(results.error());
  Json reply = {{"cluster", parsed.spec.cluster},
                {"nodes", parsed.spec.nodes.size()},
                {"lab", parsed.spec.lab},
                {"digest", sha256(call->request.body)}};
  const auto newest = call->services.store.spec(0);
  const bool unchanged = newest.ok() && newest->text == call->request.body;
  reply["unchanged"] = unchanged;
  if (newest.ok() && !unchanged)
    if (const ParsedSpec before = parse_spec(newest->text); before.errors.empty()) {
      const Status kept = keeps_addresses(before.spec, parsed.spec, call->services.executor);
      if (!kept.ok()) return call->error(kept.error());
    }
  reply["revision"] = newest.ok() ? newest->revision : 0;
  if (unchanged || call->query("dry") == "1") return call->ok(reply);
  // During a run, addresses of BMCs, MACs and images are taken from the newest revision: with a changed spec,
  // the run could switch a machine that is not in its plan.
  if (const Executor& executor = call->services.executor; executor.active())
    return call->error(
        fail(Code::conflict,
             fmt::format("run {} is under way: change the spec after the run has ended (see `muster watch`)",
                         executor.run_id())));
  SpecRow row;
  row.revision = call->services.store.next_spec_revision();
  row.time = call->services.reactor.now();
  row.text = call->request.body;
  row.digest = sha256(row.text);
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
