#include "controller/plan/rendered_steps.h"

#include <set>

#include "base/json_dump.h"
#include "base/standin.h"
#include "controller/plan/network_services.h"
#include "controller/plan/shared_text.h"

namespace muster {
namespace {

// Number of recent values kept per name: this many groups of nodes may alternate without a cache miss.
constexpr size_t kKnown = 16;

// True if the step's programs load NCCL or cuBLASLt, which some sites install in a folder of their own.
bool takes_libs(const PlaybookStep& step) {
  return (step.module == "accept" || step.module == kGroupModule) && loads_gpus(step.params);
}

}  // namespace

RenderedStep::RenderedStep(wire::Step what, std::string from)
    : step(std::move(what)), peers(std::move(from)) {
  Json all = wire::to_json(step);
  if (peers.empty()) {
    text = std::make_shared<const std::string>(dump_json(all));
    return;
  }
  all.erase("params");
  const TextAround outer = text_around(all, "params"), inner = text_around(step.params, "peers");
  text = std::make_shared<const std::string>(outer.before + inner.before);
  rest = std::make_shared<const std::string>(inner.after + outer.after);
}

uintptr_t KnownValues::number_of(const std::string& name, const Json* value) {
  if (!value) return 0;
  auto& known = values_[name];
  for (const auto& [other, number] : known)
    if (other == *value) return number;
  if (known.size() == kKnown) known.pop_back();
  known.emplace_front(*value, ++last_);
  return last_;
}

const RenderedSteps::Source& RenderedSteps::source_of(const PlaybookStep& step) {
  if (const auto known = sources_.find(&step); known != sources_.end()) return known->second;
  Source source{step.params, "", {}};
  if (const auto peers = source.params.find("peers"); peers != source.params.end() && peers->is_string()) {
    const std::string name = whole_name(peers->get<std::string>());
    if (name == "peers" || name == "rdma_peers") source.peers = name;
  }
  if (!source.peers.empty()) source.params.erase("peers");
  const auto names = names_in({step.when, source.params, step.verify, step.expect});
  source.names.assign(names.begin(), names.end());
  if (step.module == "sysctl") source.names.push_back("sysctls");
  if (takes_libs(step)) source.names.push_back("libs");
  return sources_[&step] = std::move(source);
}

Result<RenderedStepPtr> RenderedSteps::of(const PlaybookStep& step, const std::string& id,
                                          NamedValues& context) {
  std::vector<uintptr_t> values;
  for (const auto& name : source_of(step).names) context.identify(name, values);
  Key key{&step, std::move(values), id};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  TRY(RenderedStepPtr made, render(step, id, context));
  return known_[std::move(key)] = std::move(made);
}

Result<std::string> RenderedSteps::text(const std::string& source, NamedValues& context) {
  TRY(const Json out,
      templates_.render(Json(source), [&](const std::string& name) { return context.find(name); }));
  return out.is_string() ? out.get<std::string>() : source;
}

Result<RenderedStepPtr> RenderedSteps::render(const PlaybookStep& step, const std::string& id,
                                              NamedValues& context) {
  const auto put_in = [&](const Json& value) {
    return templates_.render(value, [&](const std::string& name) { return context.find(name); });
  };
  if (!step.when.empty()) {
    TRY(const Json when, put_in(Json(step.when)));
    if (!is_true(when)) return RenderedStepPtr();
  }
  const Source& source = source_of(step);
  wire::Step out;
  out.id = id;
  out.module = step.module;
  out.phase = step.phase;
  out.mandatory = step.mandatory;
  TRY(out.params, put_in(source.params));
  TRY(out.verify, put_in(step.verify));
  TRY_(check_secrets(out.module, out.params));
  if (out.verify.is_object())
    TRY_(check_secrets(out.verify.value("module", ""), out.verify.value("params", Json())));
  TRY(out.expect, put_in(step.expect));
  // `blocks` is sent within `expect`, because agents of older versions reject a step with an unknown key.
  if (!step.blocks.empty()) out.expect["blocks"] = step.blocks;
  out.needs = step.needs;
  if (out.params.is_null()) out.params = Json::object();
  if (step.module == "sysctl")
    if (const Json* declared = context.find("sysctls")) prefer_declared(*declared, out.params);
  if (const Json* libs = takes_libs(step) ? context.find("libs") : nullptr; libs && is_true(*libs))
    out.params["libs"] = *libs;
  return std::make_shared<const RenderedStep>(std::move(out), source.peers);
}

}  // namespace muster
