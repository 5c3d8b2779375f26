// The part of Bmc that serves GET requests: its resources as JSON.

#include <charconv>

#include "base/json_dump.h"
#include "base/version.h"
#include "lab/bmc.h"

namespace muster::lab {
namespace {

constexpr const char* kRoot = "/redfish/v1";

Json link(const std::string& path) { return {{"@odata.id", path}}; }

Json head(const std::string& path, const std::string& type, const std::string& id, const std::string& name) {
  return {{"@odata.id", path}, {"@odata.type", type}, {"Id", id}, {"Name", name}};
}

Json collection(const std::string& path, const std::string& type, const std::string& name,
                const std::vector<std::string>& members) {
  Json list = Json::array();
  for (const auto& member : members) list.push_back(link(member));
  return {{"@odata.id", path},
          {"@odata.type", "#" + type + "." + type},
          {"Name", name},
          {"Members", list},
          {"Members@odata.count", members.size()}};
}

Json healthy() { return {{"State", "Enabled"}, {"Health", "OK"}}; }

}  // namespace

std::optional<Json> Bmc::resource(const std::string& path) {
  const std::string systems = std::string(kRoot) + "/Systems", chassis_root = std::string(kRoot) + "/Chassis";
  const std::string managers = std::string(kRoot) + "/Managers",
                    sessions = std::string(kRoot) + "/SessionService/Sessions";
  const auto nics = system_path() + "/EthernetInterfaces";
  if (path == systems) {
    std::vector<std::string> members = {system_path()};
    if (!profile_.second_system.empty()) members.push_back(systems + "/" + profile_.second_system);
    return collection(path, "ComputerSystemCollection", "Systems", members);
  }
  if (path == system_path()) return system();
  if (!profile_.settings_id.empty() && path == settings_path()) return settings();
  if (!profile_.second_system.empty() && path == systems + "/" + profile_.second_system)
    return second_system();
  if (profile_.action_info_only && path == system_path() + "/ResetActionInfo") return reset_action_info();
  if (path == nics) return collection(path, "EthernetInterfaceCollection", "Ethernet", {nics + "/1"});
  if (path == nics + "/1") return ethernet_interface();
  if (path == chassis_root)
    return collection(path, "ChassisCollection", "Chassis", {chassis_root + "/" + profile_.chassis_id});
  if (path == chassis_root + "/" + profile_.chassis_id) return chassis();
  if (path == managers)
    return collection(path, "ManagerCollection", "Managers", {managers + "/" + profile_.manager_id});
  if (path == managers + "/" + profile_.manager_id) return manager();
  if (path == std::string(kRoot) + "/SessionService") return session_service();
  if (path == sessions) {
    std::vector<std::string> members;
    for (const auto& [id, session] : sessions_) members.push_back(sessions + "/" + id);
    return collection(path, "SessionCollection", "Sessions", members);
  }
  for (const auto& [id, session] : sessions_) {
    if (path != sessions + "/" + id) continue;
    auto out = head(path, "#Session.v1_3_0.Session", id, "Session");
    out["UserName"] = user_;
    return out;
  }
  return std::nullopt;
}

Json Bmc::service_root() const {
  auto out = head("/redfish/v1", "#ServiceRoot.v1_13_0.ServiceRoot", "RootService", "Root Service");
  out["RedfishVersion"] = "1.13.0";
  out["UUID"] = identity_.uuid;
  out["Product"] = profile_.product;
  if (!profile_.vendor.empty()) out["Vendor"] = profile_.vendor;
  out["Oem"] = {{"MusterLab", {{"Simulated", true}, {"Profile", profile_.name}}}};
  for (const auto* name : {"Systems", "Chassis", "Managers", "SessionService"})
    out[name] = link(std::string(kRoot) + "/" + name);
  out["Links"] = {{"Sessions", link("/redfish/v1/SessionService/Sessions")}};
  return out;
}

Json Bmc::session_service() const {
  auto out = head("/redfish/v1/SessionService", "#SessionService.v1_1_6.SessionService", "SessionService",
                  "Session Service");
  out["ServiceEnabled"] = true;
  out["SessionTimeout"] = profile_.session_idle / kSecond;
  out["Sessions"] = link("/redfish/v1/SessionService/Sessions");
  out["Status"] = healthy();
  return out;
}

std::string Bmc::power_text() {
  if (now_() < shown_until_) return shown_power_;
  return machine_.running() ? "On" : "Off";
}

Json Bmc::system() {
  auto out = head(system_path(), "#ComputerSystem.v1_17_0.ComputerSystem", profile_.system_id, "System");
  out["SystemType"] = "Physical";
  out["Manufacturer"] = profile_.manufacturer;
  out["Model"] = "muster lab machine (SIMULATED)";
  out["SerialNumber"] = identity_.serial;
  out["UUID"] = identity_.uuid;
  out["HostName"] = nullptr;
  out["BiosVersion"] = "OVMF";
  out["Status"] = healthy();
  out["PowerState"] = power_text();
  out["ProcessorSummary"] = {{"Count", 1}, {"CoreCount", identity_.cpus}, {"Model", "QEMU"}};
  out["MemorySummary"] = {{"TotalSystemMemoryGiB", static_cast<double>(identity_.memory_mib) / 1024.0}};
  out["EthernetInterfaces"] = link(system_path() + "/EthernetInterfaces");
  out["Links"] = {{"Chassis", Json::array({link("/redfish/v1/Chassis/" + profile_.chassis_id)})},
                  {"ManagedBy", Json::array({link("/redfish/v1/Managers/" + profile_.manager_id)})}};
  const bool with_settings = !profile_.settings_id.empty();
  out["Boot"] = boot_object(current_, !with_settings);
  if (with_settings)
    out["@Redfish.Settings"] = {{"@odata.type", "#Settings.v1_2_2.Settings"},
                                {"SettingsObject", link(settings_path())}};
  Json reset = {{"target", system_path() + "/Actions/ComputerSystem.Reset"}};
  if (profile_.action_info_only)
    reset["@Redfish.ActionInfo"] = system_path() + "/ResetActionInfo";
  else
    reset["ResetType@Redfish.AllowableValues"] = profile_.reset_types;
  out["Actions"] = {{"#ComputerSystem.Reset", reset}};
  return out;
}

Json Bmc::boot_object(const Override& shown, bool with_lists) const {
  const bool uefi_next = profile_.reads_back_uefi_boot_next && shown.target == "Pxe";
  Json boot = {{"BootSourceOverrideTarget", uefi_next ? "UefiBootNext" : shown.target},
               {"BootSourceOverrideEnabled", shown.enabled},
               {"BootSourceOverrideMode", shown.mode},
               {"HttpBootUri", shown.http_uri.empty() ? Json() : Json(shown.http_uri)}};
  if (profile_.boot_modes.empty()) boot.erase("BootSourceOverrideMode");
  if (!with_lists) return boot;
  boot["BootSourceOverrideTarget@Redfish.AllowableValues"] = profile_.boot_targets;
  boot["BootSourceOverrideEnabled@Redfish.AllowableValues"] = profile_.boot_enabled;
  if (!profile_.boot_modes.empty())
    boot["BootSourceOverrideMode@Redfish.AllowableValues"] = profile_.boot_modes;
  return boot;
}

Json Bmc::settings() const {
  auto out = head(settings_path(), "#ComputerSystem.v1_17_0.ComputerSystem", profile_.settings_id, "System");
  out["SystemType"] = "Physical";
  out["Boot"] = boot_object(next_, true);
  return out;
}

Json Bmc::second_system() const {
  auto out = head("/redfish/v1/Systems/" + profile_.second_system, "#ComputerSystem.v1_17_0.ComputerSystem",
                  profile_.second_system, profile_.second_system);
  out["SystemType"] = "Physical";
  out["Manufacturer"] = profile_.manufacturer;
  out["PowerState"] = "On";
  out["Status"] = healthy();
  out["Boot"] = {{"BootSourceOverrideEnabled", "Disabled"}};
  return out;
}

Json Bmc::reset_action_info() const {
  auto out =
      head(system_path() + "/ResetActionInfo", "#ActionInfo.v1_1_2.ActionInfo", "ResetAction", "ResetAction");
  out["Parameters"] = Json::array({{{"Name", "ResetType"},
                                    {"DataType", "String"},
                                    {"Required", true},
                                    {"AllowableValues", profile_.reset_types}}});
  return out;
}

Json Bmc::ethernet_interface() const {
  auto out = head(system_path() + "/EthernetInterfaces/1", "#EthernetInterface.v1_8_0.EthernetInterface", "1",
                  "NIC 1");
  out["MACAddress"] = identity_.mac;
  out["PermanentMACAddress"] = identity_.mac;
  out["InterfaceEnabled"] = true;
  out["Status"] = healthy();
  return out;
}

Json Bmc::chassis() const {
  const auto path = "/redfish/v1/Chassis/" + profile_.chassis_id;
  auto out = head(path, "#Chassis.v1_19_0.Chassis", profile_.chassis_id, "Chassis");
  out["ChassisType"] = "RackMount";
  out["Manufacturer"] = profile_.manufacturer;
  out["Model"] = "muster lab machine (SIMULATED)";
  out["SerialNumber"] = identity_.serial;
  out["Status"] = healthy();
  out["Links"] = {{"ComputerSystems", Json::array({link(system_path())})},
                  {"ManagedBy", Json::array({link("/redfish/v1/Managers/" + profile_.manager_id)})}};
  return out;
}

Json Bmc::manager() const {
  const auto path = "/redfish/v1/Managers/" + profile_.manager_id;
  auto out = head(path, "#Manager.v1_15_0.Manager", profile_.manager_id, "Manager");
  out["ManagerType"] = "BMC";
  out["FirmwareVersion"] = kProgramVersion;
  out["Model"] = profile_.product;
  out["UUID"] = identity_.uuid;
  out["PowerState"] = "On";
  out["Status"] = healthy();
  out["Links"] = {{"ManagerForServers", Json::array({link(system_path())})},
                  {"ManagerForChassis", Json::array({link("/redfish/v1/Chassis/" + profile_.chassis_id)})}};
  return out;
}

// Tasks are removed after a while: a client that reads one later gets 404 and must check the machine.
std::optional<HttpResponse> Bmc::task(const std::string& path) {
  const auto slash = path.rfind('/');
  int id = 0;
  std::from_chars(path.data() + slash + 1, path.data() + path.size(), id);
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return std::nullopt;
  const auto age = now_() - found->second;
  if (age > profile_.task_lifetime) {
    tasks_.erase(found);
    return std::nullopt;
  }
  const bool running = age < profile_.power_lag / 2;
  if (path.find("/TaskMonitors/") != std::string::npos && !running) return HttpResponse{.status = 204};
  auto body = head("/redfish/v1/TaskService/Tasks/" + std::to_string(id), "#Task.v1_4_3.Task",
                   std::to_string(id), "Reset");
  body["TaskState"] = running ? "Running" : "Completed";
  auto response = HttpResponse::json(running && path.find("/TaskMonitors/") != std::string::npos ? 202 : 200,
                                     dump_json(body));
  if (running) response.headers["Retry-After"] = "1";
  return response;
}

}  // namespace muster::lab
