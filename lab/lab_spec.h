// LabSpec: the parts of a cluster.yaml that the virtual cluster needs: names, addresses and the `lab:`
// section.
//
// Read leniently and on purpose apart from parse_spec(): a lab starts from any spec whose nodes have a power
// address (those with `adopt` are hosts that exist already, and are left out), and the controller's parser is
// the one that rejects unknown keys outside `lab:`. Inside `lab:` an unknown key is an error. The value is
// also the content of DIR/lab.json, including machines added later (`muster lab add`). Thread: values; pure
// functions.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/standin.h"
#include "lab/lab_ports.h"

namespace muster::lab {

struct LabDrive {
  std::string name;  // "os", "fast1": the drive's file is <name>.img
  int64_t size_bytes = 0;
  std::string serial;  // at most 20 characters, what the guest sees
  bool boot = false;   // on the root bus with a boot index; the others sit behind root ports with ACS
};

struct LabNode {
  std::string name;
  int number = 0;           // 1-based over the whole lab: tap name, derived addresses
  std::string mac;          // lower case; of the port it is provisioned over
  std::string address;      // expected address on the provisioning network, for `lab ssh`
  std::string bmc_address;  // without prefix
  std::string profile = "generic";
  bool ipmi = false;  // the spec's driver: the BMC speaks IPMI, and no Redfish
  std::string
      server;  // driver sakura-phy: its id or nickname at the provider, and no BMC; bmc_address: the API's
  int memory_mib = 1024;
  int smp = 1;
  bool in_spec = true;       // false: added later, unknown to the spec
  std::string uuid, serial;  // SMBIOS; derived from cluster and name, so equal in every lab of that spec
  std::vector<LabDrive> drives;
  std::vector<LabPort> ports;  // other than the provisioning one
  // SIMULATED GPU: number of stand-ins; none: no GPUs in the machine's SMBIOS.
  int gpus = 0;
  std::string gpu_model = kStandinModel;
};

// A drive as declared, before it is multiplied per node.
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
  std::vector<std::string> secrets;  // names of the BMCs' secret in the spec: "bmc"
  std::vector<LabNode> nodes;
  // nodes that are hosts of their own (`adopt:`): no machine here; not in lab.json
  std::vector<std::string> adopted;
  // Defaults for machines added later.
  std::vector<DriveTemplate> drives;
  std::string profile = "generic";
  bool ipmi = false;         // as the last of the spec's
  std::string provider_api;  // "10.20.1.250:443": where the provider's API is; empty: there is none
  int memory_mib = 1024;
  int smp = 1;
  bool storage_nic = false;
  int rails = 0;
  int gpus = 0;
  std::string gpu_model = kStandinModel;
  // Fraction of the time set by `lab break post` that firmware tests take: 0.1 rehearses 12 minutes in 72
  // seconds.
  double time_scale = 1;
};

// Code::invalid with every problem found, one per line.
Result<LabSpec> lab_spec_from_yaml(const std::string& text);

// A further machine that is not in the spec; Code::conflict when the name is taken.
Result<LabNode> make_extra_node(const LabSpec& spec, const std::string& name);

Json to_json(const LabSpec& spec);
Json ports_json(const std::vector<LabPort>& ports);  // for lab.json and everything that shows a machine
Result<LabSpec> lab_spec_from_json(const Json& json);

const LabNode* find_node(const LabSpec& spec, const std::string& name);
// The networks other than the provisioning one: those of this lab's machines, and of one that is added later.
std::vector<std::string> fast_networks(const LabSpec& spec);

// "10.20.0.0/24" + 11 -> "10.20.0.11".
Result<std::string> address_in(const std::string& cidr, uint32_t offset);
// "10.20.1.13" -> "10.20.1.14".
Result<std::string> address_after(const std::string& address);
// As the controller chooses them: .11 and upwards in the order of names, for machines without an address.
void assign_addresses(LabSpec& spec, std::set<std::string> taken);
int prefix_length(const std::string& cidr);  // 24; 0 when there is none

}  // namespace muster::lab
