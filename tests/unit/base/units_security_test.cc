// The switches that `systemd-analyze security` rates (systemd 252), in the two units that run all the time.
#include <set>
#include <string>

#include "base/split.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

const std::set<std::string>& rated_switches() {
  static const std::set<std::string> all = {"AmbientCapabilities",
                                            "CapabilityBoundingSet",
                                            "Delegate",
                                            "DeviceAllow",
                                            "DynamicUser",
                                            "IPAddressDeny",
                                            "KeyringMode",
                                            "LockPersonality",
                                            "MemoryDenyWriteExecute",
                                            "NoNewPrivileges",
                                            "NotifyAccess",
                                            "PrivateDevices",
                                            "PrivateMounts",
                                            "PrivateNetwork",
                                            "PrivateTmp",
                                            "PrivateUsers",
                                            "ProcSubset",
                                            "ProtectClock",
                                            "ProtectControlGroups",
                                            "ProtectHome",
                                            "ProtectHostname",
                                            "ProtectKernelLogs",
                                            "ProtectKernelModules",
                                            "ProtectKernelTunables",
                                            "ProtectProc",
                                            "ProtectSystem",
                                            "RemoveIPC",
                                            "RestrictAddressFamilies",
                                            "RestrictNamespaces",
                                            "RestrictRealtime",
                                            "RestrictSUIDSGID",
                                            "RootDirectory",
                                            "RootImage",
                                            "SupplementaryGroups",
                                            "SystemCallArchitectures",
                                            "SystemCallFilter",
                                            "UMask",
                                            "User"};
  return all;
}

}  // namespace

TEST_CASE("each switch of systemd-analyze security is set in a unit, or has its reason there") {
  for (const std::string unit : {"musterd", "muster-agent"}) {
    const std::string text = text_of(source_dir() + "/systemd/" + unit + ".service");
    for (const auto& name : rated_switches()) {
      INFO(unit << " " << name);
      const bool set = text.find("\n" + name + "=") != std::string::npos;
      const bool reasoned = text.find(" " + name + "=") != std::string::npos;
      CHECK((set || reasoned));
    }
  }
}

TEST_CASE("what musterd writes is root's alone from its first byte on") {
  const auto lines = split_lines(text_of(source_dir() + "/systemd/musterd.service"));
  const std::set<std::string> all(lines.begin(), lines.end());
  CHECK(all.count("UMask=0077") == 1);
  CHECK(all.count("LimitCORE=0") == 1);
}
