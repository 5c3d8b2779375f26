// write_slot() beside a running system: what it refuses, what it writes, and that whatever write fails or is
// the last before the power goes, the running system is what boots next, whole.
#include "agent/image/write_slot.h"

#include <atomic>

#include "tests/unit/agent/slot_bench.h"

using namespace muster;
using testing::SlotBench;

namespace {

// Refused before anything was written or a frame fetched.
void refused(SlotBench& b, const wire::SlotJob& job, Code code) {
  const std::string before = b.untouched();
  const uint64_t serial = b.marker().serial;
  bool requested = false;
  b.before_write = [&requested](std::string_view) -> Status {
    requested = true;
    return Ok{};
  };
  const auto r = b.write(job);
  REQUIRE_FALSE(r.ok());
  CAPTURE(r.error().message);
  CHECK(r.error().code == code);
  CHECK_FALSE(requested);
  CHECK(b.untouched() == before);
  CHECK(b.marker().serial == serial);
  CHECK(b.served.frame_bytes == 0);
  CHECK(b.new_bytes() == std::string(b.fresh.raw.size(), '\0'));
}

void is_whole(SlotBench& b) {
  CHECK(b.new_bytes() == b.fresh.raw);
  const ImageMarker m = b.marker();
  CHECK(m.slots.at("b").stage == kSlotWritten);
  CHECK(m.slots.at("b").digest == b.fresh.manifest.digest);
  CHECK(m.slots.at("b").address == "10.20.0.11/24");
  CHECK(b.esp().read(kernel_path("b")).value_or("") == "KERNEL");
  CHECK(b.esp().read(initrd_path("b")).value_or("") == "INITRD2");
  CHECK(b.startable("b"));
  const Files root = b.new_root();
  CHECK(read_image_record(root).digest == b.fresh.manifest.digest);
  CHECK(read_image_record(root).slot == "b");
  CHECK(root.read_line("/etc/hostname") == "node01");
  CHECK(root.read_line("/etc/machine-id") == std::string(32, 'a'));
  CHECK(root.read("/usr/sbin/muster-agent").value_or("") == "AGENT");
}

}  // namespace

TEST_CASE("the slot that is not in use gets the new system, and the running one stays what boots",
          "[in-place]") {
  SlotBench b;
  const std::string before = b.untouched();
  const auto r = b.write(b.job());
  REQUIRE(r);
  CHECK(r->slot == "b");
  CHECK(r->fetched == 14);
  CHECK_FALSE(r->finished_before);
  is_whole(b);
  CHECK(b.untouched() == before);
  CHECK(b.next_boot() == b.old.manifest.digest);
}

TEST_CASE("whatever write fails, or is the last one, the running system is what boots next", "[in-place]") {
  for (const bool loses_power : {false, true}) {
    for (int last = 0;; ++last) {
      CAPTURE(loses_power, last);
      SlotBench b;
      const std::string before = b.untouched();
      int writes = 0;
      bool cut = false;
      b.before_write = [&](std::string_view) -> Status {
        // A disk that fails once may work again; without power nothing is written any more.
        cut = loses_power ? cut || writes == last : writes == last;
        ++writes;
        return cut ? Status(fail(Code::failed, "I/O error")) : Status(Ok{});
      };
      const auto r = b.write(b.job());
      CHECK(b.untouched() == before);
      CHECK(b.next_boot() == b.old.manifest.digest);
      if (r.ok()) {
        CHECK(last > 8);
        break;
      }
      // A slot that is startable has the whole system in it.
      if (b.startable("b")) CHECK(b.new_bytes() == b.fresh.raw);
      // The order is given again.
      b.before_write = {};
      b.served.frame_bytes = 0;
      const auto again = b.write(b.job());
      REQUIRE(again);
      is_whole(b);
      if (last > 4) CHECK(b.served.frame_bytes == 0);
    }
  }
}

TEST_CASE("frames that are right in the slot already are not fetched", "[in-place]") {
  SlotBench b;
  std::string raw = b.fresh.raw;
  raw.replace(5 * testing::kFrame, 10, "0123456789");
  std::fstream(b.files.real("/dev/nvme0n1p3"), std::ios::in | std::ios::out | std::ios::binary) << raw;
  const auto r = b.write(b.job());
  REQUIRE(r);
  CHECK(r->kept == 13);
  CHECK(r->fetched == 1);
  is_whole(b);
}

TEST_CASE("what a copy onto the ESP left that was cut off goes with the next one, whichever way it takes",
          "[in-place]") {
  SlotBench b;
  constexpr uint64_t kLeft = 3u << 20;
  const std::string other = "/muster/a/initrd.AbCdEf";
  REQUIRE(b.esp().write("/muster/b/initrd.AbCdEf", std::string(kLeft, 'x')));
  REQUIRE(b.esp().write("/muster/b/vmlinuz", "cut"));
  REQUIRE(b.esp().write(other, "x"));
  SECTION("in place: it takes no room away") {
    b.esp_free = 0;
    REQUIRE(b.write(b.job()));
    is_whole(b);
  }
  SECTION("through the RAM system") { b.seed_old("b", b.fresh); }
  CHECK(b.esp().list("/muster/b") == std::vector<std::string>{"initrd", "vmlinuz"});
  CHECK(b.esp().exists(other));
}

TEST_CASE("an order that had come to its end is looked over and succeeds; another one writes", "[in-place]") {
  SlotBench b;
  REQUIRE(b.write(b.job()));
  b.served.frame_bytes = 0;
  const uint64_t serial = b.marker().serial;
  auto again = b.write(b.job());
  REQUIRE(again);
  CHECK(again->finished_before);
  CHECK(b.marker().serial == serial);
  SECTION("its entry is gone") { REQUIRE(b.esp().remove(entry_path(entry_name("b")))); }
  SECTION("its kernel is another") { REQUIRE(b.esp().write(kernel_path("b"), "kernel")); }
  SECTION("its program is another") { REQUIRE(b.new_root().write("/usr/sbin/muster-agent", "agent")); }
  SECTION("another order, the same image: the slot may have been booted meanwhile") { b.order = "3/n/write"; }
  again = b.write(b.job());
  REQUIRE(again);
  CHECK_FALSE(again->finished_before);
  CHECK(again->kept == 14);
  CHECK(b.served.frame_bytes == 0);
  is_whole(b);
}

TEST_CASE("the order of another node, disk, cluster or controller is refused before the first write",
          "[in-place]") {
  SlotBench b;
  auto job = b.job();
  SECTION("another node") { job.image.hostname = "node02", refused(b, job, Code::denied); }
  SECTION("another cluster") { job.image.cluster = "flock", refused(b, job, Code::denied); }
  SECTION("another controller") { job.image.authority = "sha256:x", refused(b, job, Code::denied); }
  SECTION("the marker names another node") {
    b.set_marker([](ImageMarker& m) { m.node = "node02"; });
    refused(b, job, Code::denied);
  }
  SECTION("the disk was swapped") { b.facts.serial = "OS0002", refused(b, job, Code::not_found); }
  SECTION("of another size") { b.facts.size_bytes -= 512, refused(b, job, Code::conflict); }
  SECTION("of another model") { b.facts.model = "OTHER", refused(b, job, Code::conflict); }
  SECTION("over a network") { b.facts.transport = "nvme-tcp", refused(b, job, Code::denied); }
  SECTION("held by dm-multipath") { b.facts.multipath = "mpatha", refused(b, job, Code::denied); }
  SECTION("read-only") { b.facts.read_only = true, refused(b, job, Code::denied); }
  SECTION("another disk with muster's layout, which this system does not run from") {
    b.facts.name = "nvme1n1";
    refused(b, job, Code::conflict);
  }
  SECTION("a marker that names no cluster, where the controller does not know of it") {
    b.set_marker([](ImageMarker& m) { m.cluster.clear(); });
    refused(b, job, Code::denied);
    job.image.allow_ours = true;
    b.before_write = {};
    CHECK(b.write(job).ok());
  }
}

TEST_CASE("a slot that is in use, running, standing or not committed is never written", "[in-place]") {
  SlotBench b;
  auto job = b.job();
  SECTION("the running slot") { job.slot = "a"; }
  SECTION("a trial runs: the other slot stands") {
    b.run_from("b");
    job.slot = "a";
  }
  SECTION("a trial runs, and its own slot is ordered") { b.run_from("b"); }
  SECTION("loader.conf names the other slot") { REQUIRE(b.esp().write(kLoaderConf, loader_conf("b"))); }
  SECTION("the marker names the other slot") {
    b.set_marker([](ImageMarker& m) { m.current = "b"; });
  }
  SECTION("a foreign loader.conf") {
    REQUIRE(b.esp().write(kLoaderConf, "timeout 3\ndefault muster-a.conf\n"));
  }
  SECTION("the slot is mounted") { b.run_from("a", "31 26 259:3 / /mnt rw - ext4 /dev/nvme0n1p3 rw\n"); }
  SECTION("the ESP is mounted read-only") {
    std::string mounts = b.get("/proc/self/mountinfo");
    mounts.replace(mounts.find("/boot/efi rw"), 12, "/boot/efi ro");
    b.put("/proc/self/mountinfo", mounts);
  }
  SECTION("the slot is part of something") {
    REQUIRE(b.files.make_directories("/sys/devices/pci/nvme0n1/nvme0n1p3/holders/dm-0"));
  }
  SECTION("the kernel has the partition elsewhere") {
    b.put("/sys/devices/pci/nvme0n1/nvme0n1p3/start", "8\n");
  }
  SECTION("the kernel has the root elsewhere") { b.put("/sys/devices/pci/nvme0n1/nvme0n1p2/size", "8\n"); }
  SECTION("the device file is another device") { b.sparse("/dev/nvme0n1p3", 8u << 20); }
  refused(b, job, Code::conflict);
}

TEST_CASE("a system on no slot of muster's is never written in place", "[in-place]") {
  SlotBench b;
  SECTION("from the network") { b.put("/proc/self/mountinfo", "26 1 0:5 / / rw - nfs srv:/ rw\n"); }
  SECTION("from muster's state partition") {
    b.put("/proc/self/mountinfo", "26 1 259:4 / / rw - ext4 /dev/nvme0n1p4 rw\n");
  }
  SECTION("the table is another") {
    auto other = b.layout;
    other.partitions[1].name = "root";
    REQUIRE(write_gpt(b.whole(BlockDevice::Access::exclusive_write), other).ok());
  }
  refused(b, b.job(), Code::not_found);
}

TEST_CASE("what the controller serves is checked before the first write", "[in-place]") {
  SlotBench b;
  auto job = b.job();
  SECTION("an image that does not take itself back") {
    testing::Image plain = b.fresh;
    plain.manifest.trial = false;
    plain.manifest.digest = manifest_digest(plain.manifest);
    b.serve(plain);
    job.image.digest = plain.manifest.digest;
    refused(b, job, Code::denied);
  }
  SECTION("another image than the plan's") { b.serve(b.old), refused(b, job, Code::corrupt); }
  SECTION("a kernel") { b.served.bad = {"/images/tiny/vmlinuz"}, refused(b, job, Code::corrupt); }
  SECTION("an initrd") { b.served.bad = {"/images/tiny/initrd"}, refused(b, job, Code::corrupt); }
  SECTION("a program") { b.served.bad = {"/programs/" + sha256("AGENT")}, refused(b, job, Code::corrupt); }
  SECTION("a program that is not there") {
    job.programs[0].sha256 = sha256("OTHER");
    refused(b, job, Code::not_found);
  }
  SECTION("kernel options that are none") {
    job.image.kernel_options = "root=/dev/sda1";
    refused(b, job, Code::invalid);
  }
  SECTION("no room on the ESP") { b.esp_free = 1 << 10, refused(b, job, Code::conflict); }
  SECTION("a system without a machine id") {
    REQUIRE(b.files.remove("/state/muster/machine-id"));
    refused(b, job, Code::conflict);
  }
  SECTION("another address than the bond's") {
    b.put("/etc/systemd/network/10-muster-bond.netdev", "[NetDev]\n");
    b.put("/etc/systemd/network/10-muster.network", "[Network]\nAddress=10.20.0.12/24\n");
    refused(b, job, Code::conflict);
  }
}

TEST_CASE("frames that stay damaged are never written, and the running system stays", "[in-place]") {
  SlotBench b;
  const std::string before = b.untouched();
  b.served.bad = {"/images/tiny/frames.zst"};
  const auto r = b.write(b.job());
  REQUIRE_FALSE(r);
  CHECK(r.error().code == Code::corrupt);
  CHECK(b.new_bytes() == std::string(b.fresh.raw.size(), '\0'));
  CHECK(b.untouched() == before);
  CHECK(b.marker().slots.at("b").stage == kSlotWriting);
  CHECK(b.next_boot() == b.old.manifest.digest);
}

TEST_CASE("a program has a plain path of its own", "[in-place]") {
  SlotBench b;
  auto job = b.job();
  SECTION("one that leads up") { job.programs[0].path = "/usr/../../etc/passwd"; }
  SECTION("relative") { job.programs[0].path = "sbin/agent"; }
  SECTION("a folder") { job.programs[0].path = "/usr/sbin/"; }
  refused(b, job, Code::invalid);
}

TEST_CASE("links in an image never lead a write into the running system", "[in-place]") {
  SlotBench b;
  const auto job = b.job().image;
  const SeedRequest r{job, b.fresh.manifest, "/dev/nvme0n1", b.layout, "b", false, {}};
  const std::vector<ProgramFile> programs = {{{"/usr/sbin/muster-agent", sha256("AGENT"), 5, 0755}, "AGENT"}};
  const Files root = b.new_root(), outside(b.dir.path("outside"));
  REQUIRE(root.make_directories("/usr"));
  REQUIRE(outside.make_directories("/x"));
  bool leads_out = true;
  SECTION("a program's folder") { REQUIRE(root.symlink(outside.root(), "/usr/sbin")); }
  SECTION("a folder of configuration") { REQUIRE(root.symlink(outside.root(), "/etc")); }
  SECTION("within the image they are followed") {
    REQUIRE(root.make_directories("/usr/bin"));
    REQUIRE(root.symlink("bin", "/usr/sbin"));
    leads_out = false;
  }
  const Status seeded = seed_slot_root(root, {r, std::string(32, 'a'), {}, programs});
  CHECK(seeded.ok() == !leads_out);
  if (leads_out) CHECK(seeded.error().code == Code::denied);
  if (!leads_out) CHECK(root.read("/usr/bin/muster-agent").value_or("") == "AGENT");
  CHECK(outside.list("/") == std::vector<std::string>{"x"});
}

TEST_CASE("the way to the controller over a bond or a VLAN is the new system's as well", "[in-place]") {
  SlotBench b;
  const std::string folder = "/etc/systemd/network/";
  b.put(folder + "10-muster-bond.netdev", "[NetDev]\nName=bond0\n");
  b.put(folder + "09-muster-port-0.network", "[Match]\n");
  b.put(folder + "10-muster.network", "[Match]\nName=bond0\n\n[Network]\nAddress=10.20.0.11/24\n");
  b.put(folder + "20-fabric.network", "[Match]\n");
  REQUIRE(b.write(b.job()));
  for (const char* name : {"10-muster-bond.netdev", "09-muster-port-0.network", "10-muster.network"})
    CHECK(b.new_root().read(folder + name).value_or("") == b.get(folder + name));
  CHECK_FALSE(b.new_root().exists(folder + "20-fabric.network"));
}

TEST_CASE("withdrawn, a write stops, and what it has written is gone on with", "[in-place]") {
  SlotBench b;
  std::atomic<int> looks = 0;
  b.cancelled = [&looks] { return ++looks > 12; };
  const auto r = b.write(b.job());
  REQUIRE_FALSE(r);
  CHECK(r.error().code == Code::cancelled);
  CHECK(b.next_boot() == b.old.manifest.digest);
  b.cancelled = {};
  REQUIRE(b.write(b.job()));
  is_whole(b);
}
