// prometheus_targets: tests that Prometheus scrapes every declared target and that each is up, through its
// API: a configuration file that lists them proves nothing.
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <thread>

#include "agent/steps/stack_modules.h"

namespace muster::steps {
namespace {

// Returns the health of each active target, by "job instance".
Result<std::map<std::string, std::string>> targets(StepContext& context, const std::string& url) {
  TRY(const std::string text,
      run_tool(context, {"curl", "-sSf", "--max-time", "10", url + "/api/v1/targets?state=active"}));
  TRY(const Json json, parse_json(text));
  const Json list = json.value(Json::json_pointer("/data/activeTargets"), Json());
  if (!list.is_array())
    return fail(Code::failed,
                "the response from Prometheus contains no list of targets: " + text.substr(0, 200));
  std::map<std::string, std::string> out;
  for (const auto& target : list) {
    const Json labels = target.value("labels", Json::object());
    const std::string error = target.value("lastError", "");
    out[labels.value("job", "") + " " + labels.value("instance", "")] =
        target.value("health", "") + (error.empty() ? "" : " (" + error + ")");
  }
  return out;
}

Result<std::string> lacking(StepContext& context, const Json& params) {
  TRY(const auto have, targets(context, text_of(params, "url", "http://127.0.0.1:9090")));
  const std::string job = text_of(params, "job"), port = std::to_string(int_of(params, "port", 9100));
  std::string out;
  for (const auto& node : params.at("nodes")) {
    const std::string instance = text_of(node, "address") + ":" + port;
    const auto it = have.find(job + " " + instance);
    if (it != have.end() && it->second == "up") continue;
    out += fmt::format("{}{} ({}) is {}", out.empty() ? "" : "; ", text_of(node, "name"), instance,
                       it == have.end() ? "not a target" : it->second);
  }
  return out;
}

// Retries until the deadline, because a target is first scraped up to one interval after the start.
Result<CheckResult> check_prometheus(StepContext& context, const Json& params) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(int_of(params, "deadline_seconds", 60));
  for (;;) {
    const auto now = lacking(context, params);
    if (now.ok() && now->empty()) return holds();
    const std::string text = now.ok() ? *now : now.error().message;
    if (is_cancelled(context)) return fail(Code::cancelled, text);
    if (std::chrono::steady_clock::now() >= until) return differs(text);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

StepModule prometheus_targets_module() {
  StepModule m;
  m.name = "prometheus_targets";
  m.help = "Tests that Prometheus reports this job's target on every listed node as up. Changes nothing.";
  m.parameters = Json::array(
      {parameter("url", "string", false, "URL of Prometheus", "http://127.0.0.1:9090"),
       parameter("job", "string", true, "`job_name` in the Prometheus configuration"),
       parameter("nodes", "list", true, "[{name, address}]"),
       parameter("port", "int", false, "port of the exporter", 9100),
       parameter("deadline_seconds", "int", false, "how long to wait for the first scrapes", 60)});
  m.check = check_prometheus;
  return m;
}

}  // namespace muster::steps
