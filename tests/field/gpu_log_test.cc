// The kernel's log as machines really wrote it: what counts as a broken GPU, NVSwitch, drive or adapter, and
// for which part it counts. The same count takes nodes out of acceptance and, before each job, out of Slurm.
#include <sstream>
#include <vector>

#include "kernels/common/kernels.h"
#include "kernels/counters/counters.h"
#include "kernels/counters/xids.h"
#include "sys/os.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"

namespace muster::tests {

using kernels::Measurement;

namespace {

// What muster-accept says when the kernel wrote these lines, each a record, since the counters were saved.
Measurement looked(const std::string& lines, const std::map<std::string, std::string>& removable = {},
                   const std::map<std::string, std::string>& more = {}) {
  const TempDir dir;
  const Files machine(dir.path(""));
  for (const auto& [path, text] : more) REQUIRE(machine.write(path, text).ok());
  REQUIRE(machine.write("/proc/sys/kernel/random/boot_id", "one\n").ok());
  for (const auto& [disk, at] : removable) {
    const std::string folder = "/sys/devices/" + at + "/block/" + disk;
    REQUIRE(machine.write(folder + "/removable", "1\n").ok());
    REQUIRE(machine.make_directories("/sys/block", 0755).ok());
    std::filesystem::create_symlink("../devices/" + at + "/block/" + disk,
                                    machine.real("/sys/block/" + disk));
  }
  std::string log = "6,1,1,-;Linux version 6.1\n";
  REQUIRE(machine.write("/dev/kmsg", log).ok());
  REQUIRE(kernels::run_counters(machine, {.save = "/before"}).outcome == kernels::Outcome::measured);
  std::istringstream in(lines);
  int number = 2;
  for (std::string line; std::getline(in, line); ++number)
    log += "3," + std::to_string(number) + ",1,-;" + line + "\n SUBSYSTEM=pci\n";
  REQUIRE(machine.write("/dev/kmsg", log).ok());
  return kernels::run_counters(machine, {.since = "/before"});
}

double count(const Measurement& reported, const std::string& metric) {
  return reported.metrics.at(metric).value;
}
double xids(const std::string& name, const std::string& file = "input.txt") {
  return count(looked(field_input(name, file)), "gpu_xids");
}
std::string part(const Measurement& reported) { return reported.detail["part"].get<std::string>(); }
size_t noted(const Measurement& reported, const std::string& group) {
  const Json all = reported.detail.value("kernel_log_noted", Json::object());
  return all.contains(group) ? all[group].size() : 0;
}

}  // namespace

FIELD_CASE("xid-mig-format") {
  const Measurement reported = looked(field_input("xid-mig-format", "input.txt"));
  CHECK(count(reported, "gpu_xids") == 2);
  CHECK(part(reported) == "GPU 0000:3b:00");
}

FIELD_CASE("xid-newer-numbers") {
  CHECK(xids("xid-newer-numbers") == 8);
  CHECK(count(looked("NVRM: Xid (PCI:0000:3b:00): 144, SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001)\n"),
              "gpu_xids") == 0);
}

FIELD_CASE("xid-application") {
  const Measurement reported = looked(field_input("xid-application", "input.txt"));
  CHECK(count(reported, "gpu_xids") == 0);
  CHECK(part(reported).empty());  // no part is at fault
  CHECK(noted(reported, "application") == 3);
}

FIELD_CASE("sxid-nonfatal-details") {
  const Measurement reported = looked(field_input("sxid-nonfatal-details", "input.txt"));
  CHECK(count(reported, "gpu_xids") == 0);
  CHECK(noted(reported, "nonfatal") == 1);
  // The text and the severity of a fatal one; its data says nothing.
  const Measurement fatal = looked(field_input("sxid-nonfatal-details", "fatal.txt"));
  CHECK(count(fatal, "gpu_xids") == 2);
  CHECK(part(fatal) == "NVSwitch 0000:0b:00.0");
}

FIELD_CASE("sxid-data-line-alone") { CHECK(xids("sxid-data-line-alone") == 0); }

FIELD_CASE("gpu-off-bus-no-xid") {
  for (const char* file : {"input.txt", "record.txt"}) {
    INFO(file);
    const Measurement reported = looked(field_input("gpu-off-bus-no-xid", file));
    CHECK(count(reported, "gpu_xids") == 1);
    CHECK(part(reported) == "GPU 0000:3b:00");
  }
}

FIELD_CASE("off-bus-after-xid") { CHECK(xids("off-bus-after-xid") == 1); }

FIELD_CASE("off-bus-old-drivers") {
  for (const char* file : {"input.txt", "wrapped.txt"}) {
    INFO(file);
    const Measurement reported = looked(field_input("off-bus-old-drivers", file));
    CHECK(count(reported, "gpu_xids") == 1);
    CHECK(part(reported) == "GPU 0000:5e:00");
  }
  CHECK(xids("off-bus-old-drivers", "unnamed.txt") == 1);
  // Said of no GPU beside one that is named: the same fault.
  const std::string both =
      field_input("off-bus-old-drivers", "unnamed.txt") + field_input("off-bus-old-drivers", "input.txt");
  CHECK(part(looked(both)) == "GPU 0000:5e:00");
}

FIELD_CASE("off-bus-old-drivers: two GPUs that are gone are two faults") {
  const Measurement reported = looked(field_input("off-bus-old-drivers", "input.txt") +
                                      field_input("gpu-off-bus-no-xid", "input.txt"));
  CHECK(count(reported, "gpu_xids") == 2);
  CHECK(part(reported) == "GPU 0000:3b:00, GPU 0000:5e:00");
}

FIELD_CASE("unsupported-gpu-no-fault") { CHECK(xids("unsupported-gpu-no-fault") == 0); }

FIELD_CASE("nvlink-nonfatal") {
  const Measurement reported = looked(field_input("nvlink-nonfatal", "input.txt"));
  CHECK(count(reported, "gpu_xids") == 0);
  CHECK(noted(reported, "event") == 4);
  CHECK(xids("nvlink-nonfatal", "fatal.txt") == 2);
}

FIELD_CASE("nvlink-severity-padded") { CHECK(xids("nvlink-severity-padded") == 2); }

FIELD_CASE("xid-caused-by-another") { CHECK(xids("xid-caused-by-another") == 0); }
FIELD_CASE("xid-68-of-a-program") { CHECK(xids("xid-68-of-a-program") == 0); }

FIELD_CASE("xid-64-and-63") {
  const Measurement reported = looked(field_input("xid-64-and-63", "input.txt"));
  CHECK(count(reported, "gpu_xids") == 1);
  CHECK(noted(reported, "event") == 1);
}

FIELD_CASE("recovery-action-none") {
  CHECK(xids("recovery-action-none") == 0);
  CHECK(xids("recovery-action-none", "needed.txt") == 3);
}

FIELD_CASE("xid154-imex") {
  const Measurement reported = looked(field_input("xid154-imex", "input.txt"));
  CHECK(count(reported, "gpu_xids") == 0);
  CHECK(part(reported).empty());
  CHECK(noted(reported, "fabric domain") == 1);
  const Measurement others = looked(field_input("xid154-imex", "others.txt"));
  CHECK(count(others, "gpu_xids") == 0);
  CHECK(noted(others, "unknown") == 2);
  CHECK(noted(others, "event") == 1);
  CHECK(xids("xid154-imex", "of-the-gpu.txt") == 4);
}

FIELD_CASE("xid-without-source") {
  const Measurement reported = looked(field_input("xid-without-source", "input.txt"));
  CHECK(count(reported, "gpu_xids") == 0);
  CHECK(noted(reported, "unknown") == 1);
}

FIELD_CASE("xid-without-source: nor does an entry of the table that has none") {
  const auto table = kernels::read_xid_table(
      "xids:\n  - { code: 7, class: hardware, name: \"a guess\", since: \"\", source: \"\" }\n"
      "  - { code: 8, class: hardware, name: \"known\", since: \"\", source: \"catalog\" }\n");
  CHECK(table.xids.at(7).group == "unknown");
  CHECK(table.xids.at(8).group == "hardware");
}

FIELD_CASE("drive-errors-removable") {
  CHECK(count(looked(field_input("drive-errors-removable", "input.txt")), "drive_errors") == 0);
}

FIELD_CASE("virtual-disk-of-a-bmc") {
  const std::string lines = field_input("virtual-disk-of-a-bmc", "input.txt");
  const std::string usb = "pci0000:00/0000:00:14.0/usb1/1-7/1-7:1.0/host9/target9:0:0/9:0:0:0";
  CHECK(count(looked(lines, {{"sdz", usb}}), "drive_errors") == 0);
  CHECK(count(looked(lines, {{"sdy", usb}}), "drive_errors") == 1);
}

FIELD_CASE("hot-swap-bay-is-removable") {
  const std::string sata = "pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0";
  const std::string lines = field_input("hot-swap-bay-is-removable", "input.txt");
  CHECK(count(looked(lines, {{"sdb", sata}}), "drive_errors") == 1);
}

FIELD_CASE("cdrom-of-a-cloud") {
  CHECK(count(looked(field_input("cdrom-of-a-cloud", "input.txt")), "drive_errors") == 0);
}

FIELD_CASE("floppy-that-is-not-there") {
  CHECK(count(looked(field_input("floppy-that-is-not-there", "input.txt")), "drive_errors") == 0);
}

FIELD_CASE("drive-that-fails") {
  const Measurement reported = looked(field_input("drive-that-fails", "input.txt"));
  CHECK(count(reported, "drive_errors") == 4);
  CHECK(part(reported) == "drive nvme1c1n1, drive sdc, drive vdb");
}

FIELD_CASE("nvme-reset-failure") {
  const Measurement reported = looked(field_input("nvme-reset-failure", "input.txt"));
  CHECK(count(reported, "drive_errors") == 2);
  CHECK(part(reported) == "drive nvme3");
  const Measurement others = looked(field_input("nvme-reset-failure", "others.txt"));
  CHECK(count(others, "drive_errors") == 8);
  CHECK(part(others) ==
        "drive 6:0:0:0, drive ata3.00, drive ata4.00, drive ata5, drive nvme1, drive nvme4, drive nvme5, "
        "drive sdq");
  CHECK(count(looked(field_input("nvme-reset-failure", "healthy.txt")), "drive_errors") == 0);
}

FIELD_CASE("nvme-reset-failure: a drive that is still there is named, and one that is none does not count") {
  const std::string sata = "pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0";
  CHECK(part(looked("ata3.00: disable device\n", {{"sdb", sata}})) == "drive sdb");
  CHECK(count(looked("ata3.00: disable device\n", {{"sr0", sata}}), "drive_errors") == 0);
  CHECK(part(looked("ata30.00: disable device\n", {{"sr0", sata}})) == "drive ata30.00");
  CHECK(part(looked("sd 2:0:0:0: rejecting I/O to offline device\n", {{"sdb", sata}})) == "drive sdb");
}

FIELD_CASE("drive-of-another-host") {
  const std::string lines = field_input("drive-of-another-host", "input.txt");
  CHECK(count(looked(lines), "drive_errors") == 1);
  CHECK(count(looked(lines, {}, {{"/sys/class/nvme/nvme7/transport", "tcp\n"}}), "drive_errors") == 0);
  CHECK(count(looked(lines, {}, {{"/sys/class/nvme/nvme7/transport", "pcie\n"}}), "drive_errors") == 1);
}

FIELD_CASE("mlx5-health") {
  const Measurement reported = looked(field_input("mlx5-health", "input.txt"));
  CHECK(count(reported, "nic_errors") == 1);
  CHECK(part(reported) == "NIC 0000:08:00.0");
  const Measurement older = looked(field_input("mlx5-health", "older.txt"));
  CHECK(count(older, "nic_errors") == 1);
  CHECK(part(older) == "NIC 0000:5e:00.1");
  const Measurement others = looked(field_input("mlx5-health", "others.txt"));
  CHECK(count(others, "nic_errors") == 0);
  CHECK(part(others).empty());
  CHECK(noted(others, "event") == 1);
  CHECK(count(looked(field_input("mlx5-health", "broken.txt")), "nic_errors") == 5);
}

FIELD_CASE("operation-not-supported") {
  CHECK(count(looked(field_input("operation-not-supported", "input.txt")), "drive_errors") == 0);
}

}  // namespace muster::tests
