// A manager and a metadata server of Ceph.
#include "agent/storage/ceph_node.h"

#include <fmt/format.h>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct WantedDaemons {
  std::string name;
};
MUSTER_PARAMETERS(WantedDaemons, required(name, "name of the node"))

struct Daemon {
  const char* kind;
  std::vector<std::string> caps;
};
const std::vector<Daemon>& daemons() {
  static const std::vector<Daemon> all = {
      {"mgr", {"mon", "allow profile mgr", "osd", "allow *", "mds", "allow *"}},
      {"mds", {"mon", "allow profile mds", "mgr", "allow profile mds", "mds", "allow *", "osd", "allow *"}}};
  return all;
}

std::string daemon_folder(const Daemon& daemon, const std::string& name) {
  return fmt::format("/var/lib/ceph/{}/ceph-{}", daemon.kind, name);
}

std::vector<Part> daemon_parts(const Daemon& daemon, const std::string& name, const std::string& key) {
  const std::string folder = daemon_folder(daemon, name), keyring = folder + "/keyring";
  return {ceph_folder(folder), ceph_keyring(keyring, fmt::format("{}.{}", daemon.kind, name), key),
          service_part(fmt::format("ceph-{}@{}", daemon.kind, name), {keyring})};
}

Result<CheckResult> check_daemons(StepContext& context, const WantedDaemons& want) {
  Diff diff;
  for (const auto& daemon : daemons())
    if (!context.files.exists(daemon_folder(daemon, want.name) + "/keyring"))
      diff.add(fmt::format("{}.{} has no keyring", daemon.kind, want.name));
  // No call of `ceph` for what is known without it: each takes seconds on a busy machine.
  if (!diff.empty()) return diff.result();
  for (const auto& daemon : daemons()) {
    const auto key = ceph_key_of(context, fmt::format("{}.{}", daemon.kind, want.name));
    if (!key.ok()) {
      diff.add(fmt::format("{}.{} has no key", daemon.kind, want.name));
      continue;
    }
    TRY(const CheckResult parts, check_parts(context, daemon_parts(daemon, want.name, *key)));
    if (parts.holds == Holds::no) diff.add(parts.diff);
  }
  return diff.result();
}

Status apply_daemons(StepContext& context, const WantedDaemons& want) {
  for (const auto& daemon : daemons()) {
    TRY(const std::string key,
        ceph_key_of(context, fmt::format("{}.{}", daemon.kind, want.name), daemon.caps));
    TRY_(apply_parts(context, daemon_parts(daemon, want.name, key)));
  }
  return Ok{};
}

}  // namespace

StepModule ceph_daemons_module() {
  return step_module<WantedDaemons>({
      .name = "ceph_daemons",
      .help =
          "Runs a manager and a metadata server, with their keys from the monitors. One of each is active in "
          "the cluster; the others are on standby.",
      .check = check_daemons,
      .apply = apply_daemons,
  });
}

}  // namespace muster::steps
