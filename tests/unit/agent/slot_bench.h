// A node that runs from slot a of muster's layout, as files: its disk and the partitions of it, its ESP
// (mounted at /boot/efi), sysfs, and the firmware's variables. What a new system is served from is in memory.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "agent/core/identity.h"
#include "agent/disk/block_device.h"
#include "agent/disk/marker.h"
#include "agent/image/efi_variables.h"
#include "agent/image/esp_files.h"
#include "agent/image/image_job.h"
#include "agent/image/layout.h"
#include "agent/image/slot_seed.h"
#include "agent/image/write_slot.h"
#include "agent/image/writer.h"
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/agent/tiny_image.h"

namespace muster::testing {

inline constexpr uint64_t kSlotDisk = 1024u << 20;

// An image that takes itself back, with an initrd.
inline Image trial_image(unsigned seed) {
  Image i = make_image(seed);
  const std::string initrd = "INITRD" + std::to_string(seed);
  i.manifest.files.push_back({"initrd", "initrd", sha256(initrd), initrd.size()});
  i.manifest.trial = true;
  i.manifest.digest = manifest_digest(i.manifest);
  return i;
}

// What the controller serves. `bad`: paths whose content is damaged.
class MemorySource : public BlobSource {
 public:
  struct Served {
    std::map<std::string, std::string> files = {};
    std::set<std::string> bad = {};
    uint64_t frame_bytes = 0;
    std::mutex mutex = {};
  };
  explicit MemorySource(Served& served) : served_(served) {}
  Result<std::string> whole(const std::string& path) override {
    const std::lock_guard lock(served_.mutex);
    const auto it = served_.files.find(path);
    if (it == served_.files.end()) return fail(Code::not_found, path);
    return served_.bad.count(path) ? it->second + "?" : it->second;
  }
  Result<std::string> range(const std::string& path, uint64_t offset, uint64_t size) override {
    const std::lock_guard lock(served_.mutex);
    const auto it = served_.files.find(path);
    if (it == served_.files.end()) return fail(Code::not_found, path);
    std::string out = it->second.substr(offset, size);
    if (served_.bad.count(path)) out[out.size() / 2] ^= 1;
    served_.frame_bytes += size;
    return out;
  }

 private:
  Served& served_;
};

// A file system that was mounted somewhere all along.
class PlainFolder : public OpenFolder {
 public:
  explicit PlainFolder(std::string at) : at_(std::move(at)) {}
  Files files() const override { return Files(at_); }
  Status close() override { return Ok{}; }

 private:
  std::string at_;
};

class SlotBench {
 public:
  SlotBench() : layout(make_layout(kSlotDisk, 1 << 20, 0).value()) {
    sparse("/dev/nvme0n1", kSlotDisk);
    {
      const BlockDevice disk = whole(BlockDevice::Access::exclusive_write);
      REQUIRE(write_gpt(disk, layout).ok());
    }
    put("/proc/sys/kernel/hostname", "node01\n");
    put("/proc/cmdline", "root=PARTUUID=x quiet muster.slot=a\n");
    put("/state/muster/machine-id", std::string(32, 'a') + "\n");
    REQUIRE(write_image_record(files, {"tiny", old.manifest.digest, "a"}).ok());
    for (const auto& p : layout.partitions) show_partition(p);
    run_from("a");
    set_marker([](ImageMarker&) {});
    seed_old("a", old);
    set_variable("LoaderInfo", wide("systemd-boot 252.30-1~deb12u2"));
    set_variable("LoaderFeatures", std::string("\x3f\0\0\0\0\0\0\0", 8));
    std::string esp_guid = layout.named("muster-esp")->guid;
    for (char& c : esp_guid) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    set_variable("LoaderDevicePartUUID", wide(esp_guid));  // in the firmware's letters
    facts.name = "nvme0n1";
    facts.serial = "OS0001";
    facts.model = "MUSTER LAB OS";
    facts.size_bytes = kSlotDisk;
    facts.transport = "nvme";
    facts.mounted = true;
    serve(fresh);
  }

  // ---- the machine ----
  void put(const std::string& path, const std::string& text) const { REQUIRE(files.write(path, text).ok()); }
  std::string get(const std::string& path) const { return files.read(path).value_or(""); }
  void sparse(const std::string& path, uint64_t size) const {
    put(path, "");
    std::filesystem::resize_file(files.real(path), size);
  }
  BlockDevice whole(BlockDevice::Access access = BlockDevice::Access::read) const {
    return BlockDevice::open(files.real("/dev/nvme0n1"), access).value();
  }
  ImageMarker marker() const { return read_marker(whole()).value(); }
  // As it was written through the RAM system, then changed.
  template <typename Change>
  void set_marker(Change change) const {
    const BlockDevice disk = whole(BlockDevice::Access::shared_write);
    ImageMarker m{"node01", "done",      old.manifest.digest, "a", "a", "sha256:h", false,
                  "gaggle", "sha256:ca", "1/node01/image",    {}};
    m.slots["a"] = slot_note(job().image, old.manifest, kSlotWritten, "1/node01/image");
    m.slots["a"].digest = old.manifest.digest;
    if (const auto now = read_marker(disk); now.ok()) m = *now;
    change(m);
    REQUIRE(write_marker(disk, m).ok());
  }
  void run_from(const std::string& slot, const std::string& more = "") const {
    put("/proc/self/mountinfo", fmt::format("26 1 259:{0} / / rw - ext4 /dev/nvme0n1p{0} rw\n"
                                            "30 26 259:1 / /boot/efi rw - vfat /dev/nvme0n1p1 rw\n"
                                            "31 26 259:4 / /state rw - ext4 /dev/nvme0n1p4 rw\n{1}",
                                            slot == "a" ? 2 : 3, more));
  }
  Files esp() const { return Files(files.real("/boot/efi")); }
  static std::string wide(const std::string& ascii) {
    std::string out;
    for (const char c : ascii) out += std::string{c, '\0'};
    return out + std::string(2, '\0');
  }
  static std::string variable(const std::string& name) {
    return "/sys/firmware/efi/efivars/" + name + "-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
  }
  void set_variable(const std::string& name, const std::string& value) const {
    put(variable(name), std::string("\7\0\0\0", 4) + value);
  }
  // Its own system in that slot, started by default.
  void seed_old(const std::string& slot, const Image& image) const {
    const wire::ImageJob j = job().image;
    const SeedRequest r{j,
                        image.manifest,
                        "/dev/nvme0n1",
                        layout,
                        slot,
                        false,
                        {{"kernel", "KERNEL"}, {"initrd", "INITRD1"}, {"bootloader", "LOADER"}}};
    REQUIRE(seed_esp(esp(), r).ok());
  }

  // ---- the order ----
  void serve(const Image& image) {
    const std::string folder = "/images/tiny/";
    served.files = {{folder + "manifest.json", to_text(image.manifest)},
                    {folder + "frames.zst", image.frames},
                    {folder + "vmlinuz", "KERNEL"},
                    {folder + "initrd", "INITRD2"},
                    {folder + "BOOTX64.EFI", "LOADER"},
                    {"/programs/" + sha256("AGENT"), "AGENT"}};
  }
  wire::SlotJob job() const {
    wire::SlotJob out;
    wire::ImageJob& j = out.image;
    j.image = "tiny";
    j.digest = fresh.manifest.digest;
    j.manifest_path = "/images/tiny/manifest.json";
    j.base_url = "http://10.20.0.1:7480";
    j.disk.serial = "OS0001";
    j.disk.model = "MUSTER LAB OS";
    j.disk.size_bytes = kSlotDisk;
    j.cluster = "gaggle";
    j.authority = "sha256:ca";
    j.hostname = "node01";
    j.address_cidr = "10.20.0.11/24";
    j.mac = "52:54:00:00:01:01";
    out.slot = "b";
    out.programs = {{"/usr/sbin/muster-agent", sha256("AGENT"), 5, 0755}};
    return out;
  }
  Result<WriteSlotResult> write(const wire::SlotJob& j) {
    WriteSlotDeps deps{files, [this] { return std::vector<DiskFacts>{facts}; },
                       [this]() -> Result<std::unique_ptr<BlobSource>> {
                         return std::unique_ptr<BlobSource>(std::make_unique<MemorySource>(served));
                       }};
    deps.order = order;
    // The frames bring the image's own root with them.
    deps.mount_slot = [this](const std::string& device, uint64_t,
                             Mounted::Way way) -> Result<std::unique_ptr<OpenFolder>> {
      CHECK(device == files.real("/dev/nvme0n1p3"));
      if (way == Mounted::Way::write) std::filesystem::remove_all(new_root().root());
      REQUIRE(new_root().make_directories("/etc").ok());
      return std::unique_ptr<OpenFolder>(std::make_unique<PlainFolder>(new_root().root()));
    };
    deps.space = [this](const std::string& folder) {
      return space ? space(folder) : Space{esp_free + esp_lost + used_on(esp(), 1), esp_free, 1};
    };
    deps.repair_esp = repair_esp;
    deps.before_write = before_write;
    deps.cancelled = cancelled;
    return write_slot(j, deps, {.threads = 2, .request_bytes = kFrame, .attempts = 2, .backoff = 0});
  }
  Files new_root() const { return Files(dir.path("slot-b")); }
  std::string new_bytes() const {
    const auto p = BlockDevice::open(files.real("/dev/nvme0n1p3"), BlockDevice::Access::read);
    return p->read_at(0, fresh.raw.size()).value();
  }
  // All that the running system boots from, and the state: never changed by a write.
  std::string untouched() const {
    Sha256 h;
    for (const char* path : {"/loader/loader.conf", "/loader/entries/muster-a.conf", "/muster/a/vmlinuz",
                             "/muster/a/initrd", "/EFI/BOOT/BOOTX64.EFI", "/EFI/systemd/systemd-bootx64.efi"})
      h.update(esp().read(path).value_or("none") + "|");
    const ImageMarker m = marker();
    h.update(m.current + m.slot + m.digest + m.stage + m.slots.at("a").digest + m.slots.at("a").stage);
    for (const char* path : {"/dev/nvme0n1p2", "/dev/nvme0n1p4"}) h.update(std::to_string(has_data(path)));
    return h.finish();
  }

  // ---- what the next boot starts ----
  // The digest of the image; "" where nothing whole is started.
  std::string next_boot() const {
    const std::string once = efi::loader_text(files, efi::kOneShot);
    std::string slot = standing_slot(esp());
    for (const char* variable : {efi::kDefault, "LoaderEntryPreferred"}) {
      const std::string by_firmware = efi::loader_text(files, variable);
      for (const char* name : {"a", "b"})
        if (by_firmware == entry_name(name) && esp().exists(entry_path(by_firmware))) slot = name;
    }
    // The menu waits for a key.
    for (const char* variable : {"LoaderConfigTimeout", "LoaderConfigTimeoutOneShot"})
      if (efi::is_set(files, variable)) return "";
    for (const char* name : {"a", "b"})
      if (once == trial_name(name) && esp().exists(entry_path(once))) slot = name;
    if (slot.empty() || !startable(slot)) return "";
    const std::string initrd = esp().read(initrd_path(slot)).value_or("");
    const ImageMarker m = marker();
    const auto note = m.slots.find(slot);
    if (note == m.slots.end() || note->second.stage != kSlotWritten) return "";
    if (esp().read(kernel_path(slot)).value_or("") != "KERNEL") return "";
    const bool is_new = note->second.digest == fresh.manifest.digest;
    if (initrd != (is_new ? "INITRD2" : "INITRD1")) return "";
    return note->second.digest;
  }

  bool startable(const std::string& slot) const {
    const ImageMarker m = marker();
    const auto note = m.slots.find(slot);
    return slot_is_startable(esp(), slot, slot_partition(layout, slot)->guid,
                             note == m.slots.end() ? nullptr : &note->second, Proof::digests)
        .ok();
  }

  TempDir dir;
  Files files{dir.path("root")};
  const Image old = trial_image(1), fresh = trial_image(2);
  GptTable layout;
  DiskFacts facts;
  MemorySource::Served served;
  uint64_t esp_free = 64u << 20, esp_lost = 0;
  std::function<Space(const std::string&)> space = {};
  std::function<Status(const OwnSlots&)> repair_esp = {};
  std::string order = "2/node01/write";
  BeforeWrite before_write = {};
  std::function<bool()> cancelled = {};

 private:
  void show_partition(const GptPartition& p) const {
    const std::string name = "nvme0n1p" + std::to_string(p.number);
    sparse("/dev/" + name, p.size);
    const std::string folder = "/sys/devices/pci/nvme0n1/" + name;
    put(folder + "/partition", std::to_string(p.number) + "\n");
    put(folder + "/start", std::to_string(p.start / 512) + "\n");
    put(folder + "/size", std::to_string(p.size / 512) + "\n");
    put(folder + "/dev", fmt::format("259:{}\n", p.number));
    REQUIRE(files.make_directories("/sys/class/block").ok());
    REQUIRE(files.symlink("../../devices/pci/nvme0n1/" + name, "/sys/class/block/" + name).ok());
  }
  bool has_data(const std::string& path) const {
    const int fd = ::open(files.real(path).c_str(), O_RDONLY | O_CLOEXEC);
    const bool found = ::lseek(fd, 0, SEEK_DATA) >= 0;
    ::close(fd);
    return found;
  }
};

}  // namespace muster::testing
