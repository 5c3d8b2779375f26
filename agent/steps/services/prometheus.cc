// prometheus_targets: tests that Prometheus scrapes every declared target and that each is up, through its
// API: a configuration file that lists them proves nothing.
#include <fmt/format.h>

#include <map>

#include "agent/core/parameters.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct ScrapedNode {
  std::string name, address;
};
MUSTER_RECORD(ScrapedNode, lenient, opt(name), opt(address))

struct WantedTargets {
  std::string url = "http://127.0.0.1:9090", job;
  std::vector<ScrapedNode> nodes;
  int64_t port = 9100, deadline_seconds = 60;
};
MUSTER_PARAMETERS(WantedTargets, optional(url, "URL of Prometheus"),
                  required(job, "`job_name` in the Prometheus configuration"),
                  required(nodes, "[{name, address}]"), optional(port, "port of the exporter"),
                  optional(deadline_seconds, "how long to wait for the first scrapes"))

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

Result<std::string> lacking(StepContext& context, const WantedTargets& want) {
  TRY(const auto have, targets(context, want.url));
  std::string out;
  for (const auto& node : want.nodes) {
    const std::string instance = node.address + ":" + std::to_string(want.port);
    const auto it = have.find(want.job + " " + instance);
    if (it != have.end() && it->second == "up") continue;
    out += fmt::format("{}{} ({}) is {}", out.empty() ? "" : "; ", node.name, instance,
                       it == have.end() ? "not a target" : it->second);
  }
  return out;
}

// A target is first scraped up to one interval after the start.
Result<CheckResult> check_prometheus(StepContext& context, const WantedTargets& want) {
  return wait_until(context, want.deadline_seconds, [&] { return lacking(context, want); });
}

}  // namespace

StepModule prometheus_targets_module() {
  return step_module<WantedTargets>({
      .name = "prometheus_targets",
      .help = "Tests that Prometheus reports this job's target on every listed node as up. Changes nothing.",
      .check = check_prometheus,
  });
}

}  // namespace muster::steps
