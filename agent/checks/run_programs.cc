#include "agent/checks/run_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "agent/steps/step_modules.h"
#include "base/json_dump.h"
#include "base/record.h"
#include "base/utf8.h"

namespace muster::checks {

MUSTER_RECORD(Peer, lenient, name, address)

using steps::text_of;

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
                          last_bytes(output.err, 900)));
}

Result<std::vector<Peer>> peers_of(const Json& params, const char* key) {
  std::vector<Peer> out;
  if (!params.contains(key)) return out;
  for (const auto& item : params[key]) {
    TRY(out.emplace_back(), read_record<Peer>(item, key));
  }
  return out;
}

std::string argument_text(const StepContext& context, const Json& value, const std::string& peer) {
  std::string text = value.is_string() ? value.get<std::string>() : dump_json(value);
  const std::pair<std::string, const std::string&> words[] = {{"{peer}", peer}, {"{folder}", context.folder}};
  for (const auto& [word, meaning] : words)
    if (const size_t at = text.find(word); at != std::string::npos) text.replace(at, word.size(), meaning);
  return text;
}

Result<Json> in_pairs(StepContext& context, const Json& params, const std::vector<Peer>& hosts,
                      const Load& load) {
  std::vector<std::vector<Peer>> pairs;
  for (const auto& names : params["pairs"]) {
    std::vector<Peer> pair;
    for (const auto& name : names)
      for (const auto& host : hosts)
        if (name == host.name) pair.push_back(host);
    if (pair.size() == 2) pairs.push_back(std::move(pair));  // otherwise a node of the pair is gone
  }
  std::vector<Result<Json>> results(pairs.size(), Result<Json>(fail(Code::cancelled, "cancelled")));
  for (size_t i = 0; i < pairs.size() && !steps::is_cancelled(context); i += kPairsAtOnce) {
    steps::say(context, fmt::format("{} in pairs of nodes: {} of {} pairs finished",
                                    text_of(params, "load", "allreduce"), i, pairs.size()));
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
  return Json{{"check", text_of(params, "load", "allreduce") + "-pairs"}, {"parts", parts}};
}

}  // namespace muster::checks
