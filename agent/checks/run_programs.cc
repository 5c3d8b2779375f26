#include "agent/checks/run_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "agent/steps/step_modules.h"
#include "agent/steps/system/smbios.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/utf8.h"

namespace muster::checks {
namespace {

// Number of pairs that run at the same time; these have no node in common.
constexpr size_t kPairsAtOnce = 16;

}  // namespace

std::string program(const StepContext& context, const std::string& name) {
  if (const auto brought = context.programs.find(name); brought != context.programs.end())
    return brought->second;
  const std::string carried = "/usr/lib/muster/" + name;
  return context.files.exists(carried) ? carried : "/usr/sbin/" + name;
}

Result<Json> measurement(const Output& output, const std::string& what) {
  const size_t brace = output.out.find("{\"");
  const size_t end = brace == std::string::npos ? brace : output.out.find('\n', brace);
  auto json = brace == std::string::npos
                  ? Result<Json>(fail(Code::failed, "no output"))
                  : parse_json(std::string_view(output.out).substr(brace, end - brace));
  if (json.ok() && json->is_object() && json->contains("outcome")) return json;
  return fail(output.exit_code == 2 ? Code::invalid : Code::failed,
              fmt::format("{} printed no measurement (exit {}): {}", what, output.exit_code,
                          end_of_output(output.err, 900)));
}

std::string argument_text(const StepContext& context, const Json& value, const std::string& peer) {
  std::string text = value.is_string() ? value.get<std::string>() : dump_json(value);
  const std::pair<std::string, const std::string&> words[] = {{"{peer}", peer}, {"{folder}", context.folder}};
  for (const auto& [word, meaning] : words)
    if (const size_t at = text.find(word); at != std::string::npos) text.replace(at, word.size(), meaning);
  return text;
}

bool runs_on_gpus(const std::string& load) { return load == "nccl" || load == "gpu-training"; }

std::vector<std::string> load_words(const StepContext& context, const SharedLoad& want) {
  std::vector<std::string> words;
  // NCCL's own choice may route around a bad link; between two nodes the link itself is tested.
  if (runs_on_gpus(want.load) && want.pairs) words = {"--algorithm", "Ring"};
  for (const auto& [name, value] : want.options)
    words.insert(words.end(), {"--" + name, argument_text(context, value, "")});
  return words;
}

Result<Json> on_all_or_pairs(StepContext& context, const SharedLoad& want, const Load& load) {
  if (!want.pairs) return load(want.hosts);
  std::vector<std::vector<Peer>> pairs;
  for (const auto& names : *want.pairs) {
    std::vector<Peer> pair;
    for (const auto& name : names)
      for (const auto& host : want.hosts)
        if (name == host.name) pair.push_back(host);
    if (pair.size() == 2) pairs.push_back(std::move(pair));  // otherwise a node of the pair is gone
  }
  std::vector<Result<Json>> results(pairs.size(), Result<Json>(fail(Code::cancelled, "cancelled")));
  for (size_t i = 0; i < pairs.size() && !steps::is_cancelled(context); i += kPairsAtOnce) {
    steps::say(context,
               fmt::format("{} in pairs of nodes: {} of {} pairs finished", want.load, i, pairs.size()));
    std::vector<std::thread> threads;
    for (size_t k = i; k < std::min(i + kPairsAtOnce, pairs.size()); ++k)
      threads.emplace_back([&, k] { results[k] = load(pairs[k]); });
    for (auto& thread : threads) thread.join();
  }
  Json parts = Json::array();
  for (size_t i = 0; i < pairs.size(); ++i) {
    TRY(Json result, results[i]);
    parts.push_back({{"pair", {pairs[i][0].name, pairs[i][1].name}}, {"result", std::move(result)}});
  }
  return Json{{"check", want.load + "-pairs"}, {"parts", parts}};
}

Result<Json> load_result(const Result<Output>& output, Starter by, const std::string& load,
                         const std::vector<Peer>& hosts) {
  Json members = Json::array();
  for (const auto& host : hosts) members.push_back(host.name);
  const auto failed = [&](const std::string& error) {
    return Json{
        {"check", load}, {"version", 1}, {"outcome", "failed"}, {"error", error}, {"members", members}};
  };
  if (!output.ok() && output.error().code == Code::timeout) return failed(output.error().message);
  if (!output.ok()) return output.error();
  const bool mpi = by == Starter::mpirun;
  auto result = measurement(*output, mpi ? "mpirun" : "muster-accept group");
  // Unsupported options are an error in the profile, not a fault of a node. mpirun itself may exit with the
  // same status.
  if (!result.ok() && result.error().code == Code::invalid &&
      (!mpi || result.error().message.find("muster-mpi-check: ") != std::string::npos))
    return result.error();
  if (!result.ok()) return failed(result.error().message);
  (*result)["members"] = members;
  const std::string outcome = text_at(*result, "outcome");
  if (!mpi && outcome != "measured" && outcome != "corrupt") return result;
  // With fewer ranks than hosts, the result might be good, but it would be that of a smaller cluster.
  const Json ranks = result->value(Json::json_pointer("/metrics/ranks/value"), Json());
  if (!ranks.is_number() || ranks.get<double>() != static_cast<double>(hosts.size()))
    return failed(fmt::format("{} of {} ranks took part", dump_json(ranks), hosts.size()));
  return result;
}

StepModule without_standins(StepModule module) {
  module.check = [](StepContext& context, const Json& params) -> Result<CheckResult> {
    if (!loads_gpus(params)) return steps::holds();
    const auto standins = standin_gpus(context.files);
    if (!standins) return steps::holds();
    return CheckResult{Holds::not_applicable,
                       fmt::format("{}: {} GPUs are the lab's stand-ins, so there is nothing to measure",
                                   kSimulatedGpu, standins->count)};
  };
  return module;
}

}  // namespace muster::checks
