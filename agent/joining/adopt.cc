#include "agent/joining/adopt.h"

#include <fmt/format.h>

#include "base/record.h"

namespace muster {

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

}  // namespace muster
