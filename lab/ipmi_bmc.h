// IpmiBmc: the IPMI service of a lab machine: ipmi_sim (Debian package openipmi), an independent
// implementation, which controls the machine through `muster lab chassis` and the lab's control socket.
//
// One process per machine, on the machine's BMC address, UDP port 623. The destructor ends it; a process left
// behind by a killed `lab serve` is ended by the next one, or by `muster lab down`. Limits of ipmi_sim: it
// offers cipher suite 3 but not 17, drops the valid and UEFI bits of the boot flags, has no sensors of the
// machine. Its serial-over-LAN shows the machine's console from its log (SolRelay); typed input is
// dropped. Used by one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "base/result.h"
#include "lab/child.h"
#include "lab/lab_dir.h"
#include "lab/lab_spec.h"

namespace muster::lab {

// Provides a machine's serial console to its ipmi_sim over TCP (on 127.0.0.1 or the BMC's address): sends
// what the machine writes to its console after the connection. It reads the console's log, since QEMU's
// serial port allows one reader at a time. A background thread serves the connection.
class SolRelay {
 public:
  explicit SolRelay(std::string log) : log_(std::move(log)) {}
  ~SolRelay();
  SolRelay(const SolRelay&) = delete;
  SolRelay& operator=(const SolRelay&) = delete;

  Status start(const std::string& address);
  uint16_t port() const { return port_; }

 private:
  void loop();
  void pass_on(int client);

  const std::string log_;
  uint16_t port_ = 0;
  int listener_ = -1;
  long at_ = 0;  // the log has been sent up to this offset
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

inline constexpr const char* kIpmiSim = "/usr/bin/ipmi_sim";

struct IpmiOptions {
  std::string program;         // path of `muster`, which ipmi_sim runs for each command
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

  // Starts ipmi_sim, after ending a previous process. `other_guid`: report a different GUID, as if the BMC
  // had been replaced; else the machine's product UUID.
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

// Formats the control socket's response for `muster lab chassis NODE WORDS`: "power:1", one per line.
std::string chassis_lines(const Json& answer);

}  // namespace muster::lab
