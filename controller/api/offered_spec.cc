#include "controller/api/offered_spec.h"

#include <fmt/format.h>

#include <vector>

#include "base/digest.h"
#include "base/plural.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/whole_spec.h"
#include "controller/executor/executor.h"
#include "controller/spec/lab_only.h"
#include "controller/spec/reader/parse_spec.h"

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
  return {
      {"code", "invalid"}, {"message", counted(errors.size(), "error") + " in the spec"}, {"errors", list}};
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

}  // namespace

std::optional<OfferedSpec> offered_spec(const CallPtr& call, const std::string& text,
                                        const std::string& file) {
  const auto wrong = [&](const std::vector<SpecError>& errors) {
    call->json(422, errors_json(errors, file));
    return std::nullopt;
  };
  const auto refused = [&](const Error& error) {
    call->error(error);
    return std::nullopt;
  };
  if (text.size() > kSpecLimit) return refused(fail(Code::invalid, "the spec is larger than 4 MiB"));
  WholeSpec whole = read_whole_spec(text, call->services.bringup.names(), Files(), ZonesOf::controller);
  if (!whole.errors.empty()) return wrong(whole.errors);
  if (const auto virtual_only = lab_only(whole.spec); !virtual_only.empty() && !call->services.options.lab)
    return wrong(virtual_only);
  const auto playbooks = refused_playbooks(*call, whole.spec);
  if (!playbooks.ok()) return refused(playbooks.error());
  if (!playbooks->empty()) return wrong(*playbooks);
  OfferedSpec out;
  out.digest = sha256(text);
  if (auto newest = call->services.store.spec(0); newest.ok()) out.newest = std::move(newest).value();
  out.unchanged = out.newest && out.newest->text == text;
  if (out.newest && !out.unchanged)
    if (const ParsedSpec before = parse_spec(out.newest->text); before.errors.empty())
      if (const Status kept = keeps_addresses(before.spec, whole.spec, call->services.executor); !kept.ok())
        return refused(kept.error());
  out.spec = std::move(whole.spec);
  out.warnings = std::move(whole.warnings.shown);
  return out;
}

}  // namespace muster::api
