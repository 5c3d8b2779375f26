#include "agent/joining/adopting.h"

#include <fmt/format.h>

#include "agent/facts/collect_facts.h"
#include "base/digest.h"
#include "base/json_dump.h"
#include "base/record.h"
#include "base/secrets.h"

namespace muster {

MUSTER_RECORD(PreviewRequest, node, pin, opt(steps))

MUSTER_RECORD(BootParameters, url, pin, token, node)

namespace {

constexpr const char* kUnit = "/etc/systemd/system/muster-agent.service";

// Like systemd/muster-agent.service, with the identity in the folder that an adopted host uses.
std::string unit(const std::string& folder) {
  return fmt::format(
      "# Written by muster-agent when this host was adopted.\n"
      "[Unit]\n"
      "Description=muster agent\n"
      "After=network-online.target local-fs.target\n"
      "Wants=network-online.target\n"
      "ConditionPathExists={0}/agent.json\n"
      "\n"
      "[Service]\n"
      "Type=exec\n"
      "ExecStart=/usr/sbin/muster-agent run --config {0}/agent.json\n"
      "Restart=always\n"
      "RestartSec=2\n"
      "OOMScoreAdjust=-900\n"
      "KillMode=process\n"
      "\n"
      "[Install]\n"
      "WantedBy=multi-user.target\n",
      folder);
}

Json preview_step(StepContext& context, const StepModule& module, const wire::Step& step) {
  Json out = {
      {"step", step.id}, {"module", step.module}, {"outcome", "unknown"}, {"diff", ""}, {"message", ""}};
  if (refers_to_secret(step.params)) {
    out["outcome"] = "secret";
    return out;
  }
  if (const auto right = check_parameters(module, step.params); !right.ok()) {
    out["message"] = right.error().message;
    return out;
  }
  const auto found = module.check(context, step.params);
  if (!found.ok()) {
    out["message"] = found.error().message;
    return out;
  }
  out["diff"] = found->diff;
  out["message"] = found->note;
  out["outcome"] = found->holds == Holds::yes  ? "already"
                   : found->holds == Holds::no ? "would_change"
                                               : "not_applicable";
  return out;
}

std::string refusal_of(const Files& files, const std::string& folder, const PreviewRequest& request) {
  if (const auto served = may_serve(files); !served.ok()) return served.error().message;
  BootParameters boot;
  boot.node = request.node;
  boot.pin = request.pin;
  const auto joins = may_join(files, folder, boot);
  return joins.ok() ? "" : joins.error().message;
}

// Maximum length of a request: it may contain a plan's steps, with the content of the files they write.
constexpr size_t kLongestLine = 64u << 20;

Result<Json> answer_to(const Adopting& host, const std::string& line) {
  TRY(Json requested, parse_json(line));
  if (!requested.is_object()) return fail(Code::invalid, "standard input: expected an object");
  const Json what = requested.value("ask", Json());
  if (what == "nothing") return Json::object();
  requested.erase("ask");
  if (what == "look") {
    TRY(const PreviewRequest request, preview_request(dump_json(requested)));
    return preview(host.files, host.process, request);
  }
  if (what == "join") {
    TRY(const BootParameters boot, join_parameters(dump_json(requested)));
    TRY(const std::string node, host.join(boot));
    return Json{{"node", node}};
  }
  return fail(Code::invalid, "standard input: ask: expected \"look\", \"join\" or \"nothing\"");
}

}  // namespace

Result<BootParameters> join_parameters(const std::string& json) {
  TRY(const Json j, parse_json(json));
  TRY(auto boot, read_record<BootParameters>(j, "standard input"));
  for (const auto* field : {&boot.url, &boot.pin, &boot.token, &boot.node})
    if (field->empty())
      return fail(Code::invalid, "standard input: url, pin, token and node must not be empty");
  return boot;
}

std::string identity_folder(const Files& files) {
  return files.is_directory(kInstalledIdentity) ? kInstalledIdentity : kAdoptedIdentity;
}

Status may_join(const Files& files, const std::string& folder, const BootParameters& boot) {
  if (!files.exists(folder + "/agent.json")) return Ok{};
  const auto known = read_config(files, folder);
  // An unreadable file (truncated, say) names no controller, so there is no other owner to protect.
  if (!known.ok()) return Ok{};
  const auto strip = [](const std::string& pin) { return pin.starts_with("sha256:") ? pin.substr(7) : pin; };
  if (strip(known->ca_pin) != strip(boot.pin))
    return fail(Code::conflict, fmt::format("this host belongs to a different controller ({}, as {}); to "
                                            "take it over, first remove {}/agent.json on the host",
                                            known->url, known->node, folder));
  if (known->node != boot.node)
    return fail(Code::conflict,
                fmt::format("this host is already node {}; it cannot become {}", known->node, boot.node));
  return Ok{};
}

Status may_serve(const Files& files) {
  if (files.is_directory("/run/systemd/system")) return Ok{};
  return fail(Code::invalid, "systemd is not running on this host, but the agent requires systemd");
}

Status start_service(const Files& files, Process& process, const std::string& folder) {
  const std::string wanted = unit(folder);
  if (folder != kInstalledIdentity && files.read(kUnit).value_or("") != wanted) {
    TRY_(files.write(kUnit, wanted));
    TRY_(run_ok(process, {{"systemctl", "daemon-reload"}}));
  }
  TRY_(run_ok(process, {{"systemctl", "enable", "muster-agent.service"}}));
  TRY_(run_ok(process, {{"systemctl", "restart", "muster-agent.service"}}));
  return Ok{};
}

Result<PreviewRequest> preview_request(const std::string& json) {
  TRY(const Json j, parse_json(json));
  TRY(auto request, read_record<PreviewRequest>(j, "standard input"));
  for (wire::Step& step : request.steps)
    if (step.params.is_null()) step.params = Json::object();
  return request;
}

Json preview_steps(StepContext& context, const std::vector<wire::Step>& steps) {
  Json out = Json::array();
  for (const auto& step : steps) {
    const StepModule* module = context.module ? context.module(step.module) : nullptr;
    if (!module) {
      out.push_back({{"step", step.id},
                     {"module", step.module},
                     {"outcome", "unknown"},
                     {"diff", ""},
                     {"message", "this agent does not support the module"}});
      continue;
    }
    if (!module->apply || !module->check) continue;
    out.push_back(preview_step(context, *module, step));
  }
  return out;
}

Result<Json> preview(Files& files, Process& process, const PreviewRequest& request) {
  const std::string folder = identity_folder(files);
  const auto known = read_config(files, folder);
  const std::string refusal = refusal_of(files, folder, request);
  const bool known_here =
      refusal.empty() && known.ok() && known->node == request.node && read_credentials(files, folder).ok();
  const bool joined =
      known_here && run_ok(process, {{"systemctl", "is-active", "--quiet", "muster-agent.service"}}).ok();
  TRY(const HardwareFacts facts, collect_facts(files));
  StepContext context{files, process, request.node};
  context.module = [](const std::string& name) { return find_step_module(name); };
  return Json{{"facts", to_json(facts)},
              {"joined", joined},
              {"refusal", refusal},
              {"steps", preview_steps(context, request.steps)}};
}

void answer_adopter(const Adopting& host, std::istream& in, std::ostream& out) {
  const auto say = [&out](const Json& words) { out << dump_ascii(words) << '\n' << std::flush; };
  say({{"ready", true}});
  for (std::string line; std::getline(in, line);) {
    const auto answer = line.size() > kLongestLine
                            ? Result<Json>(fail(Code::invalid, "standard input: the line is too long"))
                            : answer_to(host, line);
    if (answer.ok())
      say(*answer);
    else
      say({{"error",
            {{"code", std::string(to_string(answer.error().code))}, {"message", answer.error().message}}}});
  }
}

Status settle_program(const Files& files) {
  TRY(const std::string program, files.read("/proc/self/exe"));
  const auto there = files.read(kAgentProgram);
  if (there.ok() && sha256(*there) == sha256(program)) return Ok{};
  return files.write(kAgentProgram, program, 0755);
}

}  // namespace muster
