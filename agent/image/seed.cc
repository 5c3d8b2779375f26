// Turns a freshly written slot into this node's system: file systems, host name, network, agent, identity,
// loader.
#include <fmt/format.h>
#include <sys/stat.h>

#include <sstream>
#include <string>

#include "agent/core/identity.h"
#include "agent/disk/block_device.h"
#include "agent/disk/disk.h"
#include "agent/disk/marker.h"
#include "agent/image/efi_variables.h"
#include "agent/image/esp_room.h"
#include "agent/image/esp_files.h"
#include "agent/image/image_job.h"
#include "agent/image/layout.h"
#include "agent/image/mounted.h"
#include "agent/image/boot_network.h"
#include "base/digest.h"
#include "base/resolver.h"
#include "base/result.h"
#include "sys/log.h"
#include "sys/os.h"

namespace muster {
namespace {

// Unique to the machine and the purpose, without revealing the machine id, which is confidential
// (machine-id(5)).
std::string digits_for(const std::string& purpose, const std::string& machine_id) {
  const std::string digest = sha256("muster " + purpose + " " + machine_id);
  return digest.substr(digest.find(':') + 1);
}

// As in RFC 9562, version 8 (custom format).
std::string uuid_of(const std::string& hex) {
  return fmt::format("{}-{}-8{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(13, 3),
                     hex.substr(17, 3), hex.substr(20, 12));
}

// Names that identify a machine to storage (NVMe over Fabrics, iSCSI, ZFS). Packages create such names when
// they are installed, which for a node is when its image is built, so all its nodes would share them: images
// contain none. These are derived from its machine id, which survives a re-image, so targets that admit the
// node by name continue to do so. Only for programs that are installed in this mounted root.
Status write_own_names(const Files& root, const std::string& machine_id) {
  if (root.is_directory("/etc/nvme")) {
    // Both files must have the same UUID, otherwise targets see two hosts (linux-nvme/nvme-cli 2037).
    const std::string uuid = uuid_of(digits_for("nvme", machine_id));
    TRY_(root.write("/etc/nvme/hostnqn", "nqn.2014-08.org.nvmexpress:uuid:" + uuid + "\n"));
    TRY_(root.write("/etc/nvme/hostid", uuid + "\n"));
  }
  if (root.is_directory("/etc/iscsi"))
    TRY_(root.write("/etc/iscsi/initiatorname.iscsi",
                    fmt::format("# Written by muster: unique, do not copy it to another machine.\n"
                                "InitiatorName=iqn.1993-08.org.debian:01:{}\n",
                                digits_for("iscsi", machine_id).substr(0, 12)),
                    0600));
  if (root.exists("/usr/sbin/zgenhostid") || root.exists("/sbin/zgenhostid")) {
    std::string id = "\1";  // 0 would mean unset
    const std::string hex = digits_for("hostid", machine_id);
    for (size_t i = 0; i < 3; ++i) id += static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    TRY_(root.write("/etc/hostid", id));
  }
  return Ok{};
}

Status copy_tree(const Files& from, const std::string& folder, const Files& to, const std::string& target) {
  for (const auto& name : from.list(folder)) {
    const std::string path = folder + "/" + name, out = target + "/" + name;
    if (from.is_directory(path)) {
      TRY_(copy_tree(from, path, to, out));
      continue;
    }
    struct stat st = {};
    ::stat(from.real(path).c_str(), &st);
    TRY(const std::string content, from.read(path));
    TRY_(to.write(out, content, st.st_mode & 07777));
  }
  return Ok{};
}

class LinuxSeeder : public Seeder {
 public:
  LinuxSeeder(const Files& files, Process& process, std::string identity)
      : files_(files), process_(process), identity_(std::move(identity)) {}

  std::string standing(const std::string& disk) override {
    const auto esp = mount_esp(disk, Mounted::Way::read);
    return esp.ok() ? standing_slot(esp->files()) : "";
  }

  std::optional<EspRoom> room(const std::string& disk, const std::string& slot) override {
    auto room = measure(disk, slot);
    if (!room || room->lost == 0) return room;
    const Status repaired = repair_vfat(process_, partition_path(disk, 1));
    log::warning("the EFI system partition has lost space",
                 {{"KiB", std::to_string(room->lost >> 10)},
                  {"repair", repaired.ok() ? "done" : repaired.error().message}});
    if (repaired.ok())
      if (auto esp = mount_esp(disk, Mounted::Way::write); esp.ok()) (void)remove_salvaged(esp->files());
    return measure(disk, slot);
  }

  Status drop_overrides() override { return efi::drop_overrides(files_); }

  Status seed(const SeedRequest& r) override {
    if (r.fresh) TRY_(make_file_systems(r));
    TRY(const std::string machine_id, seed_state(r));
    const GptPartition* slot = slot_partition(r.layout, r.slot);
    TRY(Mounted root, Mounted::mount(partition_path(r.disk, slot->number), "ext4", "/run/muster-image/root",
                                     "errors=remount-ro"));
    TRY_(grow_ext4(root.at(), slot->size));
    // Without network arguments there is no network configuration to take over.
    const auto way = ram_network(files_.read_line("/proc/cmdline"));
    TRY_(seed_root(root.files(), r, machine_id, way.ok() ? *way : RamNetwork()));
    TRY(const std::string agent, Files("/").read("/proc/self/exe"));
    TRY_(root.files().write("/usr/sbin/muster-agent", agent, 0755));
    // Copies everything that the RAM system contains for the node (acceptance programs).
    TRY_(copy_tree(files_, "/payload", root.files(), ""));
    return root.close();
  }

  Status install_loader(const SeedRequest& r) override {
    TRY(Mounted esp, mount_esp(r.disk, Mounted::Way::write));
    TRY_(seed_esp(esp.files(), r));
    return esp.close();
  }

 private:
  static Result<Mounted> mount_esp(const std::string& disk, Mounted::Way way) {
    return Mounted::mount(partition_path(disk, 1), "vfat", "/run/muster-image/esp", "umask=0077", way);
  }

  static std::optional<EspRoom> measure(const std::string& disk, const std::string& slot) {
    const auto esp = mount_esp(disk, Mounted::Way::read);
    if (!esp.ok()) return {};
    return esp_room(esp->files(), slot, space_of(esp->at()));
  }

  Status make_file_systems(const SeedRequest& r) {
    Command esp{.argv = {"mkfs.vfat", "-F", "32", "-n", "MUSTER-ESP", partition_path(r.disk, 1)}};
    Command state{.argv = {"mkfs.ext4", "-q", "-F", "-L", "muster-state", "-m", "1", "-E",
                           "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
                           partition_path(r.disk, r.layout.named("muster-state")->number)}};
    for (Command* c : {&esp, &state}) {
      c->deadline = 5 * kMinute;
      TRY_(run_ok(process_, *c));
    }
    return Ok{};
  }

  // Identity of the agent and of the machine; both survive a re-image.
  Result<std::string> seed_state(const SeedRequest& r) {
    TRY(Mounted state, Mounted::mount(partition_path(r.disk, r.layout.named("muster-state")->number), "ext4",
                                      "/run/muster-image/state", ""));
    const Files out = state.files();
    TRY_(out.make_directories("/muster", 0700));
    TRY_(out.make_directories("/ssh", 0700));
    TRY(AgentConfig config, read_config(files_, identity_));
    TRY(const Credentials credentials, read_credentials(files_, identity_));
    config.mode = wire::Mode::installed;
    TRY_(write_credentials(out, "/muster", credentials));
    TRY_(write_config(out, "/muster", config));
    std::string id = out.read_line("/muster/machine-id");
    if (id.size() != 32) {
      id = random_hex(16);
      TRY_(out.write("/muster/machine-id", id + "\n"));
    }
    TRY_(state.close());
    return id;
  }

  const Files& files_;
  Process& process_;
  std::string identity_;
};

}  // namespace

std::unique_ptr<Seeder> make_linux_seeder(const Files& files, Process& process, std::string identity) {
  return std::make_unique<LinuxSeeder>(files, process, std::move(identity));
}

Result<OwnDisk> find_own_disk(const WriteDeps& deps, const std::string& node, const std::string& digest) {
  OwnDisk found;
  for (const auto& disk : deps.disks()) {
    const std::string path = deps.device(disk.name);
    const auto device = BlockDevice::open(path, BlockDevice::Access::read);
    const auto marker = device.ok() ? read_marker(*device) : Result<ImageMarker>(device.error());
    if (!marker.ok() || marker->node != node || marker->stage != "done" || marker->digest != digest) continue;
    const auto layout = read_gpt(*device);
    if (!layout.ok() || !is_layout(*layout)) continue;
    if (!found.device.empty())
      return fail(Code::conflict,
                  found.device + " and " + path + " both contain this image for node " + node);
    const GptPartition& esp = *layout->named("muster-esp");
    const uint64_t block = device->logical_block();
    found = {path,
             static_cast<uint32_t>(layout->named("muster-state")->number),
             {esp.number, esp.start / block, esp.size / block, esp.guid}};
  }
  if (found.device.empty()) return fail(Code::not_found, "no disk contains this image for node " + node);
  return found;
}

static Result<OwnDisk> own_disk(const Files& files, const std::string& node, const std::string& digest) {
  WriteDeps deps;
  deps.disks = [&files] { return scan_identities(files); };
  deps.device = [&files](const std::string& name) { return files.real("/dev/" + name); };
  return find_own_disk(deps, node, digest);
}

Status start_own_disk_first(const Files& files, const std::string& node, const std::string& digest) {
  TRY(const OwnDisk disk, own_disk(files, node, digest));
  return start_first(files, disk.esp);
}

Status hand_over_identity(const Files& files, const std::string& identity, const std::string& node,
                          const std::string& digest) {
  TRY(const OwnDisk disk, own_disk(files, node, digest));
  TRY(AgentConfig config, read_config(files, identity));
  TRY(const Credentials credentials, read_credentials(files, identity));
  config.mode = wire::Mode::installed;
  TRY(Mounted state, Mounted::mount(partition_path(disk.device, static_cast<int>(disk.state)), "ext4",
                                    "/run/muster-image/state", ""));
  const auto there = read_credentials(state.files(), "/muster");
  if (!there.ok() || there->certificate_pem != credentials.certificate_pem) {
    TRY_(write_credentials(state.files(), "/muster", credentials));
    TRY_(write_config(state.files(), "/muster", config));
  }
  return state.close();
}

// Adds an fstab line for operators who run `mount /boot/efi`, with the unique id of this partition, because a
// second disk with muster's partitions may be present. A line from the image's recipe stays, unless it
// selects the partition by its label.
static Status write_esp_line(const Files& root, const SeedRequest& r) {
  const GptPartition* esp = r.layout.named("muster-esp");
  if (!esp) return Ok{};
  std::string text;
  bool own = false;
  std::istringstream lines(root.read("/etc/fstab").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string source, target;
    words >> source >> target;
    const bool is_esp = target == "/boot/efi" && source[0] != '#';
    if (is_esp && source.find("LABEL=") != std::string::npos) continue;
    own = own || is_esp;
    text += line + "\n";
  }
  if (!own) text += fmt::format("PARTUUID={} /boot/efi vfat noauto,umask=0077 0 0\n", esp->guid);
  return root.write("/etc/fstab", text);
}

Status seed_root(const Files& root, const SeedRequest& r, const std::string& machine_id,
                 const RamNetwork& way) {
  const wire::ImageJob& job = r.job;
  TRY_(root.write("/etc/hostname", job.hostname + "\n"));
  TRY_(root.write("/etc/hosts",
                  fmt::format("127.0.0.1 localhost\n::1 localhost\n{} {}\n",
                              job.address_cidr.substr(0, job.address_cidr.find('/')), job.hostname)));
  TRY_(root.write("/etc/machine-id", machine_id + "\n", 0444));
  TRY_(write_own_names(root, machine_id));
  for (const auto& [path, text] : network_files(job, way)) TRY_(root.write(path, text));
  // An existing resolv.conf is from the recipe, or links to that of a daemon, which gets the servers from a
  // file above: it is replaced only if the spec declares servers.
  const bool there = root.exists("/etc/resolv.conf") || root.read_link("/etc/resolv.conf").ok();
  if (!job.dns.empty() || !there) TRY_(root.write("/etc/resolv.conf", resolver_text(job.dns, job.search)));
  TRY_(write_esp_line(root, r));
  TRY_(root.make_directories("/state"));
  // systemd must not treat this as the first boot of an updated system.
  TRY_(root.write("/etc/.updated", ""));
  TRY_(root.write("/var/.updated", ""));
  return write_image_record(root, {job.image, job.digest, r.slot});
}

}  // namespace muster
