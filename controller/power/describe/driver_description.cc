#include "controller/power/describe/driver_description.h"

namespace muster {
namespace {

constexpr NeededKey kAddress = {"address"};
constexpr NeededKey kLogin = {"secret",
                              "the name under which `muster secret` stores the BMC's user:password"};

constexpr std::array<DriverDescription, 6> kAll = {{
    {.name = "redfish",
     .address = PowerAddress::bmc,
     .needs = {{kAddress, kLogin}},
     .allows = {"pin"},
     .identity = "certificate",
     .pin_prefix = "sha256:"},
    {.name = "ipmi",
     .address = PowerAddress::bmc,
     .needs = {{kAddress, kLogin}},
     .allows = {"pin", "cipher_suite", "privilege", "sol"},
     .identity = "GUID",
     .pin_prefix = "guid:"},
    {.name = "command",
     .address = PowerAddress::words,
     .needs = {{kAddress, {"program", "the name of a program in /etc/muster/power.d"}}},
     .allows = {"secret"}},
    {.name = "sakura-phy",
     .by = Switch::provider,
     .address = PowerAddress::server,
     .needs = {{kAddress,
                {"secret", "the name under which `muster secret` stores the account's TOKEN:SECRET"}}},
     .allows = {"api", "install"}},
    {.name = "ssh",
     .by = Switch::agent,
     .address = PowerAddress::none,
     .refusal = "driver ssh has no BMC: the node is controlled through the agent in its running system"},
    {.name = "manual",
     .by = Switch::person,
     .address = PowerAddress::location,
     .allows = {"address", "within"},
     .refusal =
         "has no effect with driver `manual`: a person controls the node's power, and there is no BMC"},
}};
constexpr DriverDescription kUnknown = {.needs = {{kAddress}}};

}  // namespace

const std::array<DriverDescription, 6>& driver_descriptions() { return kAll; }

const DriverDescription& description_of(std::string_view driver) {
  const auto found = std::find_if(kAll.begin(), kAll.end(),
                                  [&](const DriverDescription& one) { return one.name == driver; });
  return found == kAll.end() ? kUnknown : *found;
}

}  // namespace muster
