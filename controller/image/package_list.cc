#include "controller/image/package_list.h"

#include "base/split.h"
#include "controller/image/folder.h"
#include "sys/os.h"

namespace muster {
namespace {

// Returns the value of the field if this line begins with it; else "".
std::string field_of(const std::string& line, const std::string& name) {
  return line.starts_with(name + ": ") ? line.substr(name.size() + 2) : "";
}

}  // namespace

PackageList installed_packages(const std::string& status) {
  PackageList out;
  std::string name, version;
  bool installed = false;
  const auto take = [&] {
    if (installed && !name.empty()) out[name] = version;
    name.clear(), version.clear(), installed = false;
  };
  for (const std::string& line : split_lines(status)) {
    if (line.empty()) take();
    if (const auto value = field_of(line, "Package"); !value.empty()) name = value;
    if (const auto value = field_of(line, "Version"); !value.empty()) version = value;
    if (const auto value = field_of(line, "Status"); !value.empty())
      installed = value.size() > 10 && value.compare(value.size() - 10, 10, " installed") == 0;
  }
  take();
  return out;
}

std::string nvidia_driver_in(const PackageList& packages) {
  for (const auto& [name, version] : packages) {
    if (name.starts_with("linux-modules-nvidia-")) return name;
    // nvidia-fs-dkms and nvidia-peermem-dkms are modules beside the driver.
    const bool beside = name.starts_with("nvidia-fs") || name.starts_with("nvidia-peer");
    if (name.starts_with("nvidia-") && has(name, "dkms") && !beside) return name;
  }
  return "";
}

Json package_changes(const PackageList& before, const PackageList& after) {
  Json added = Json::object(), removed = Json::object(), changed = Json::object();
  for (const auto& [name, version] : after) {
    const auto old = before.find(name);
    if (old == before.end())
      added[name] = version;
    else if (old->second != version)
      changed[name] = {{"from", old->second}, {"to", version}};
  }
  for (const auto& [name, version] : before)
    if (!after.count(name)) removed[name] = version;
  return {{"added", added}, {"removed", removed}, {"changed", changed}};
}

Result<PackageList> packages_of_image(const std::string& state_dir, const std::string& digest) {
  const size_t colon = digest.find(':');
  const std::string hex = digest.substr(colon == std::string::npos ? 0 : colon + 1);
  if (!is_build_name(hex)) return fail(Code::not_found, "not an image digest: " + digest);
  const Files files("/");
  const std::string folder = state_dir + "/images/";
  for (const auto& name : files.list(folder)) {
    if (!valid_image_name(name)) continue;
    const auto text = files.read(folder + name + "/" + hex + "/build.json");
    if (!text.ok()) continue;
    TRY(const Json record, parse_json(*text));
    const Json packages = record.is_object() ? record.value("packages", Json()) : Json();
    if (!packages.is_object() || packages.empty()) break;
    PackageList out;
    for (const auto& [package, version] : packages.items())
      if (version.is_string()) out[package] = version.get<std::string>();
    return out;
  }
  return fail(Code::not_found, "the packages of image " + digest + " are not recorded on this controller");
}

}  // namespace muster
