#include "agent/image/slot_seed.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "agent/core/identity.h"
#include "agent/image/esp_files.h"
#include "agent/image/image_job.h"
#include "agent/image/mounted.h"
#include "base/digest.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNetworkFolder = "/etc/systemd/network";
constexpr const char* kOwnNetwork = "10-muster.network";

// Checks that the folder of a file to be written is inside the new root, with all links followed.
Status stays_inside(const Files& root, const std::string& path) {
  std::error_code error;
  const fs::path base = fs::canonical(root.root(), error);
  const fs::path folder =
      error ? fs::path() : fs::weakly_canonical(fs::path(root.real(path)).parent_path(), error);
  const auto out = folder.lexically_relative(base);
  if (!error && !out.empty() && *out.begin() != "..") return Ok{};
  return fail(Code::denied, fmt::format("{} in the image points outside the image", path));
}

Status check_program_path(const std::string& path) {
  const fs::path p(path);
  bool plain = path.size() > 1 && path[0] == '/' && path.back() != '/';
  for (const auto& part : p) plain = plain && part != ".." && part != ".";
  return plain ? Status(Ok{}) : fail(Code::invalid, "'" + path + "' is not a valid path for a program");
}

Status go_on(const BeforeWrite& before, std::string_view what) {
  return before ? before(what) : Status(Ok{});
}

// From the disk: the page cache would return what was written even if the disk had lost it.
Result<std::string> read_anew(const Files& files, const std::string& path) {
  drop_cached(files, path);
  return files.read(path);
}

Status differs(const std::string& what) {
  return fail(Code::corrupt, what + " does not read back as written");
}

}  // namespace

Result<std::map<std::string, std::string>> carried_network(const Files& running, const wire::ImageJob& job) {
  std::map<std::string, std::string> out;
  bool layered = false;
  for (const auto& name : running.list(kNetworkFolder)) {
    if (!name.starts_with("10-muster") && !name.starts_with("09-muster-")) continue;
    layered = layered || name != kOwnNetwork;
    TRY(out[std::string(kNetworkFolder) + "/" + name],
        running.read(std::string(kNetworkFolder) + "/" + name));
  }
  if (!layered) return std::map<std::string, std::string>();
  const std::string own = out[std::string(kNetworkFolder) + "/" + kOwnNetwork];
  if (own.find("Address=" + job.address_cidr + "\n") == std::string::npos)
    return fail(Code::conflict,
                fmt::format("this node's network is on a bond or a VLAN, and its address is "
                            "not {}: only a re-image through the RAM system can set up that address",
                            job.address_cidr));
  return out;
}

Status check_program_paths(const std::vector<wire::SlotProgram>& programs) {
  for (const auto& p : programs) TRY_(check_program_path(p.path));
  return Ok{};
}

Status seed_slot_root(const Files& root, const SlotSeed& seed) {
  std::set<std::string> paths = {"/etc/hostname", "/etc/systemd/network/x", "/etc/muster/x", "/etc/nvme/x",
                                 "/etc/iscsi/x",  "/var/.updated",          "/state/x"};
  for (const auto& p : seed.programs) paths.insert(p.program.path);
  for (const auto& path : paths) TRY_(stays_inside(root, path));
  TRY_(seed_root(root, seed.request, seed.machine_id));
  if (!seed.network.empty()) TRY_(root.remove(std::string(kNetworkFolder) + "/" + kOwnNetwork));
  for (const auto& [path, text] : seed.network) TRY_(root.write(path, text));
  for (const auto& p : seed.programs)
    TRY_(root.write(p.program.path, p.content, static_cast<unsigned>(p.program.mode) & 0777));
  return Ok{};
}

Status check_slot_root(const Files& root, const SlotSeed& seed) {
  const wire::ImageJob& job = seed.request.job;
  const ImageRecord record = read_image_record(root);
  if (record.digest != job.digest || record.slot != seed.request.slot) return differs("the image's record");
  if (root.read_line("/etc/hostname") != job.hostname) return differs("the host name");
  if (root.read_line("/etc/machine-id") != seed.machine_id) return differs("the machine id");
  const std::string own = std::string(kNetworkFolder) + "/" + kOwnNetwork;
  if (root.read(own).value_or("").find("Address=" + job.address_cidr + "\n") == std::string::npos)
    return differs("the node's address");
  for (const auto& [path, text] : seed.network)
    if (root.read(path).value_or("") != text) return differs(path);
  for (const auto& p : seed.programs) {
    TRY_(stays_inside(root, p.program.path));
    TRY(const std::string content, read_anew(root, p.program.path));
    if (content != p.content) return differs(p.program.path);
  }
  return Ok{};
}

Status remove_entries(const Files& esp, const std::string& slot, const BeforeWrite& before) {
  for (const std::string& name : {trial_name(slot), entry_name(slot)}) {
    TRY_(go_on(before, "removing " + name));
    TRY_(esp.remove(entry_path(name)));
  }
  return sync_file_system(esp.root());
}

Status write_slot_files(const Files& esp, const SeedRequest& r, const BeforeWrite& before) {
  TRY(const std::string entry, loader_entry(r));
  TRY_(go_on(before, "removing kernel and initrd"));
  TRY_(clear_slot_folder(esp, r.slot));
  TRY_(go_on(before, "kernel"));
  TRY_(esp.write(kernel_path(r.slot), r.files.at("kernel")));
  if (const auto initrd = r.files.find("initrd"); initrd != r.files.end()) {
    TRY_(go_on(before, "initrd"));
    TRY_(esp.write(initrd_path(r.slot), initrd->second));
  }
  TRY_(sync_file_system(esp.root()));
  TRY_(go_on(before, "entry"));
  TRY_(esp.write(entry_path(entry_name(r.slot)), entry));
  return sync_file_system(esp.root());
}

Status check_slot_files(const Files& esp, const SeedRequest& r) {
  for (const auto& f : r.manifest.files) {
    if (f.role != "kernel" && f.role != "initrd") continue;
    const std::string path = f.role == "kernel" ? kernel_path(r.slot) : initrd_path(r.slot);
    TRY(const std::string content, read_anew(esp, path));
    if (content.size() != f.size || sha256(content) != f.sha256) return differs(path);
  }
  TRY(const std::string entry, loader_entry(r));
  const auto found = read_anew(esp, entry_path(entry_name(r.slot)));
  return found.ok() && *found == entry ? Status(Ok{}) : differs("the entry of slot " + r.slot);
}

}  // namespace muster
