// LabSpec as DIR/lab.json.
#include "lab/lab_spec.h"

namespace muster::lab {
namespace {

Json drive_json(const LabDrive& d) {
  return {{"name", d.name}, {"size_bytes", d.size_bytes}, {"serial", d.serial}, {"boot", d.boot}};
}

}  // namespace

Json ports_json(const std::vector<LabPort>& ports) {
  Json out = Json::array();
  for (const auto& p : ports)
    out.push_back({{"network", p.network}, {"mac", p.mac}, {"cabled", p.cabled}, {"counting", p.counting}});
  return out;
}

Json to_json(const LabSpec& spec) {
  Json nodes = Json::array(), templates = Json::array();
  for (const auto& n : spec.nodes) {
    Json drives = Json::array();
    for (const auto& d : n.drives) drives.push_back(drive_json(d));
    nodes.push_back({{"name", n.name},
                     {"number", n.number},
                     {"mac", n.mac},
                     {"address", n.address},
                     {"bmc_address", n.bmc_address},
                     {"profile", n.profile},
                     {"ipmi", n.ipmi},
                     {"server", n.server},
                     {"memory_mib", n.memory_mib},
                     {"smp", n.smp},
                     {"in_spec", n.in_spec},
                     {"uuid", n.uuid},
                     {"serial", n.serial},
                     {"drives", drives},
                     {"ports", ports_json(n.ports)},
                     {"gpus", n.gpus},
                     {"gpu_model", n.gpu_model}});
  }
  for (const auto& t : spec.drives)
    templates.push_back({{"name", t.name},
                         {"size_bytes", t.size_bytes},
                         {"serial_prefix", t.serial_prefix},
                         {"count", t.count}});
  return {{"cluster", spec.cluster},
          {"provisioning_cidr", spec.provisioning_cidr},
          {"controller", spec.controller},
          {"user", spec.user},
          {"secrets", spec.secrets},
          {"nodes", nodes},
          {"drives", templates},
          {"profile", spec.profile},
          {"ipmi", spec.ipmi},
          {"provider_api", spec.provider_api},
          {"memory_mib", spec.memory_mib},
          {"smp", spec.smp},
          {"storage_nic", spec.storage_nic},
          {"rails", spec.rails},
          {"gpus", spec.gpus},
          {"gpu_model", spec.gpu_model},
          {"time_scale", spec.time_scale}};
}

Result<LabSpec> lab_spec_from_json(const Json& json) {
  try {  // our own file: anything odd in it is corruption; one message is enough
    LabSpec spec;
    json.at("cluster").get_to(spec.cluster);
    json.at("provisioning_cidr").get_to(spec.provisioning_cidr);
    json.at("controller").get_to(spec.controller);
    json.at("user").get_to(spec.user);
    json.at("secrets").get_to(spec.secrets);
    json.at("profile").get_to(spec.profile);
    json.at("memory_mib").get_to(spec.memory_mib);
    json.at("smp").get_to(spec.smp);
    // Missing in the file of a lab that was started by an older version.
    spec.ipmi = json.value("ipmi", false);
    spec.provider_api = json.value("provider_api", "");
    spec.storage_nic = json.value("storage_nic", false);
    spec.rails = json.value("rails", 0);
    spec.time_scale = json.value("time_scale", 1.0);
    spec.gpus = json.value("gpus", 0);
    spec.gpu_model = json.value("gpu_model", kStandinModel);
    for (const auto& t : json.at("drives"))
      spec.drives.push_back({t.at("name").get<std::string>(), t.at("size_bytes").get<int64_t>(),
                             t.at("serial_prefix").get<std::string>(), t.at("count").get<int>()});
    for (const auto& n : json.at("nodes")) {
      LabNode node;
      n.at("name").get_to(node.name);
      n.at("number").get_to(node.number);
      n.at("mac").get_to(node.mac);
      n.at("address").get_to(node.address);
      n.at("bmc_address").get_to(node.bmc_address);
      n.at("profile").get_to(node.profile);
      n.at("memory_mib").get_to(node.memory_mib);
      n.at("smp").get_to(node.smp);
      node.ipmi = n.value("ipmi", false);
      node.server = n.value("server", "");
      n.at("in_spec").get_to(node.in_spec);
      n.at("uuid").get_to(node.uuid);
      n.at("serial").get_to(node.serial);
      for (const auto& d : n.at("drives"))
        node.drives.push_back({d.at("name").get<std::string>(), d.at("size_bytes").get<int64_t>(),
                               d.at("serial").get<std::string>(), d.at("boot").get<bool>()});
      for (const auto& p : n.value("ports", Json::array()))
        node.ports.push_back({p.at("network").get<std::string>(), p.at("mac").get<std::string>(),
                              p.at("cabled").get<bool>(), p.value("counting", false)});
      node.gpus = n.value("gpus", 0);
      node.gpu_model = n.value("gpu_model", kStandinModel);
      spec.nodes.push_back(std::move(node));
    }
    return spec;
  } catch (const Json::exception& e) {
    return fail(Code::corrupt, std::string("lab.json: ") + e.what());
  }
}

}  // namespace muster::lab
