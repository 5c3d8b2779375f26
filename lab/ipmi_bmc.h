// IpmiBmc: the IPMI side of a lab machine: Debian's ipmi_sim (package openipmi), an independent
// implementation, which switches the machine through `muster lab chassis` and the lab's control socket.
//
// One process per machine on the machine's BMC address, UDP port 623. It ends with its IpmiBmc; one left by a
// killed `lab serve` is ended by the next, or by `muster lab down` with the namespace. Limits of ipmi_sim: it
// offers cipher suite 3 and not 17, drops the valid and the UEFI bit of the boot flags, and has no sensors of
// the machine. Its serial-over-LAN shows the machine's console from the log (lab/sol_relay.h): typed input is
// dropped. Thread: one at a time.
#pragma once

#include <string>

#include "lab/child.h"
#include "lab/lab_dir.h"
#include "lab/sol_relay.h"
#include "lab/lab_spec.h"

namespace muster::lab {

inline constexpr const char* kIpmiSim = "/usr/bin/ipmi_sim";

struct IpmiOptions {
  std::string program;         // `muster`, which ipmi_sim runs for each order
  std::string user, password;  // at most 16 and 20 characters
  std::string address;         // "10.20.1.11"
  uint16_t port = 623;
};

class IpmiBmc {
 public:
  IpmiBmc(LabDir dir, LabNode node, IpmiOptions options)
      : dir_(std::move(dir)),
        node_(std::move(node)),
        options_(std::move(options)),
        serial_(dir_.node(node_.name, "console.log")) {}
  ~IpmiBmc() { end(); }
  IpmiBmc(const IpmiBmc&) = delete;
  IpmiBmc& operator=(const IpmiBmc&) = delete;

  // Ends the one before, if any. `other_guid`: as if the BMC had been replaced; else it shows the machine's
  // product UUID.
  Status start(bool other_guid = false);

 private:
  void end();
  std::string config(bool other_guid) const;

  const LabDir dir_;
  const LabNode node_;
  const IpmiOptions options_;
  SolRelay serial_;
  ChildId child_;
};

// How `muster lab chassis NODE WORDS` prints the control socket's answer: "power:1", one per line.
std::string chassis_lines(const Json& answer);

}  // namespace muster::lab
