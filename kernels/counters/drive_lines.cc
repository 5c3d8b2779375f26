// Drives that fail, as the kernel reports it: block/blk-core.c, drivers/nvme/host/{core,pci}.c, drivers/ata/
// libata-core.c, libata-eh.c and drivers/scsi/{scsi_error,scsi_lib}.c of Linux 5.10 to 6.12.
#include <regex>

#include "base/split.h"
#include "host/real_drives.h"
#include "kernels/counters/log_lines.h"

namespace muster::kernels {
namespace {

const std::regex kBlock(R"(^(?:blk_update_request: |print_req_error: )?)"
                        R"((?:I/O error|(?:critical )?medium error), dev ([a-z][0-9a-z]*),? )");
// Newer kernels give up with "Disabling device after reset failure", older ones with "Removing after probe
// failure".
const std::regex kNvme(R"(^nvme (nvme\d+): (?:I/O (?:tag )?\d+ .*timeout|controller is down|)"
                       R"(Device not ready; aborting (?:reset|initialisation)|)"
                       R"(Disabling device after reset failure|[Rr]emoving after probe failure))");
// "disabled" before 5.18. The port alone gives up where no drive could be reset.
const std::regex kAta(R"(^(ata\d+(?:\.\d+)?): (?:disable device|disabled|reset failed, giving up)$)");
const std::regex kScsi(
    R"(^sd (\d+:\d+:\d+:\d+): (?:\[(sd[a-z]+)\] )?)"
    R"((?:Device offlined - not ready after error recovery|rejecting I/O to offline device))");
// The disk whose place in sysfs has this folder; "" if it is gone, as after a failure it may be.
std::string disk_below(const Files& files, const std::string& folder) {
  for (const auto& disk : files.list("/sys/block"))
    if (has(files.read_link("/sys/block/" + disk).value_or("") + "/", "/" + folder + "/")) return disk;
  return "";
}

// A drive named by its place: by its name, if it has one; nothing if that is none of the machine's drives.
std::string by_place(const Files& files, const std::string& place, const std::string& folder) {
  const std::string disk = disk_below(files, folder);
  if (disk.empty()) return place;
  return is_drive_of_machine(files, disk) ? disk : "";
}

}  // namespace

std::string drive_at_fault(const Files& files, const std::string& text) {
  std::smatch found;
  const auto is = [&](const std::regex& line) { return std::regex_search(text, found, line); };
  if (is(kBlock)) return is_drive_of_machine(files, found[1]) ? found[1].str() : "";
  if (is(kNvme)) return is_local_nvme(files, found[1]) ? found[1].str() : "";
  if (is(kAta)) {
    const std::string place = found[1];
    return by_place(files, place, place.substr(0, place.find('.')));
  }
  if (!is(kScsi)) return "";
  if (found[2].matched) return is_drive_of_machine(files, found[2]) ? found[2].str() : "";
  return by_place(files, found[1], found[1]);
}

}  // namespace muster::kernels
