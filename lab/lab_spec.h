// LabSpec: the parts of a cluster.yaml that the virtual cluster needs: names, addresses and the `lab:`
// section. Read with the controller's parse_spec(); only errors in these parts count: a lab starts from any
// spec whose nodes have a power address (nodes with `adopt` are existing hosts, and are left out), whatever
// else is unfinished. The value is also the content of DIR/lab.json, including machines added later (`muster
// lab add`). Thread safety: value types, stateless functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/standin.h"

namespace muster::lab {

inline constexpr int kMaxRails = 8;
inline constexpr size_t kMaxMachines = 64;
inline constexpr int kFastMtu = 9000;
inline constexpr const char* kProvisioning = "provisioning";
inline constexpr const char* kStorage = "storage";

struct LabPort {
  std::string network;  // "storage", "rail0"
  std::string mac;
  bool cabled = true;     // false: the port exists without a link
  bool counting = false;  // an adapter that counts errors, as `lab break port-errors` needs
};

// Ports, storage first, then the rails: the order in which the guest finds them on its PCI bus. Each network
// other than provisioning has its own switch with jumbo frames, which connects machines only. A MAC is
// derived from the machine's number and the network: the same in every lab with that spec, whatever ports are
// missing.
std::vector<LabPort> make_ports(int machine, bool storage_nic, int rails);

// Returns 0 for provisioning, 1 storage, 2 rail0, ... 9 rail7; -1: not a network of a lab.
int port_number(const std::string& network);
// "52:54:00:2P:NN:NN": P the port's number, NN:NN the machine's.
std::string derived_mac(int machine, int port);

// Returns a network's bridge (its switch) in the lab's namespace: "br0", "br-storage", "br-rail0".
std::string bridge_name(const std::string& network);

struct LabDrive {
  std::string name;  // "os", "fast1": the drive's file is <name>.img
  int64_t size_bytes = 0;
  std::string serial;  // at most 20 characters, as the guest sees it
  bool boot = false;   // on the root bus, with a boot index; other drives are behind root ports with ACS
};

struct LabNode {
  std::string name;
  int number = 0;           // 1-based within the lab; for tap names and derived addresses
  std::string mac;          // of the provisioning port, in lower case
  std::string address;      // expected address on the provisioning network, for `lab ssh`
  std::string bmc_address;  // without prefix
  std::string profile = "generic";
  bool ipmi = false;  // from the spec's driver: the BMC supports IPMI instead of Redfish
  std::string
      server;  // driver sakura-phy (no BMC): id or nickname at the provider; bmc_address: the API's address
  int memory_mib = 1024;
  int smp = 1;
  bool in_spec = true;       // false: added later, unknown to the spec
  std::string uuid, serial;  // SMBIOS; derived from cluster and name: the same in every lab
  std::vector<LabDrive> drives;
  std::vector<LabPort> ports;  // other than the provisioning one
  // SIMULATED GPU: number of simulated GPUs; 0: none in the machine's SMBIOS.
  int gpus = 0;
  std::string gpu_model = kStandinModel;
};

struct DriveTemplate {
  std::string name;
  int64_t size_bytes = 0;
  std::string serial_prefix;
  int count = 1;
};

struct LabSpec {
  std::string cluster;
  std::string provisioning_cidr;     // "10.20.0.0/24"
  std::string controller;            // "10.20.0.1"
  std::string user;                  // first user of the spec: `lab ssh` logs in as this
  std::vector<std::string> secrets;  // names of the BMC secrets in the spec: "bmc"
  std::vector<LabNode> nodes;
  // nodes that are existing hosts (`adopt:`): not part of the lab; not in lab.json
  std::vector<std::string> adopted;
  // Defaults for machines added later.
  std::vector<DriveTemplate> drives;
  std::string profile = "generic";
  bool ipmi = false;         // true if the last node in the spec uses IPMI
  std::string provider_api;  // address of the provider's API, "10.20.1.250:443"; empty: none
  int memory_mib = 1024;
  int smp = 1;
  bool storage_nic = false;
  int rails = 0;
  int gpus = 0;
  std::string gpu_model = kStandinModel;
  // Scales the time of `lab break post`: with 0.1, firmware tests of 12 minutes take 72 seconds.
  double time_scale = 1;
};

// Parses a spec. Code::invalid with every problem found, one per line.
Result<LabSpec> lab_spec_from_yaml(const std::string& text);

// Returns a further machine that is not in the spec; Code::conflict if the name is in use.
Result<LabNode> make_extra_node(const LabSpec& spec, const std::string& name);

Json to_json(const LabSpec& spec);
Json ports_json(const std::vector<LabPort>& ports);  // for lab.json and all output about a machine
Result<LabSpec> lab_spec_from_json(const Json& json);

const LabNode* find_node(const LabSpec& spec, const std::string& name);
// Returns the networks, other than provisioning, of this lab's machines and of machines added later.
std::vector<std::string> fast_networks(const LabSpec& spec);

}  // namespace muster::lab
