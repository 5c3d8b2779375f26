#include "agent/image/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/manifest.h"

namespace muster {
namespace {

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
constexpr uint64_t kAlign = 4 * kMiB;

}  // namespace

Result<GptTable> make_layout(uint64_t disk_size, uint64_t raw_size, uint64_t root_size) {
  const uint64_t esp = esp_size(disk_size);
  const uint64_t state_min = std::clamp(disk_size / 5, 128 * kMiB, 64 * kGiB);
  const uint64_t edges = kAlign + kMiB;  // space before the first partition, and for the backup table
  if (disk_size < edges + esp + state_min)
    return fail(Code::invalid, "the disk is too small for an operating system");
  const uint64_t left = disk_size - edges - esp - state_min;
  uint64_t root = root_size ? root_size : std::min(left / 2, 64 * kGiB);
  root = root / kAlign * kAlign;
  if (root > left / 2 || root < raw_size + raw_size / 8)
    return fail(Code::invalid, fmt::format("the image ({} MiB) needs a root slot one eighth larger than the "
                                           "image, but this disk only has space for two slots of {} MiB",
                                           raw_size / kMiB, std::min(root, left / 2) / kMiB));
  GptTable t;
  t.disk_guid = random_guid();
  uint64_t at = kAlign;
  const auto add = [&](const char* type, const char* name, uint64_t size) {
    t.partitions.push_back({static_cast<int>(t.partitions.size()) + 1, type, random_guid(), name, at, size});
    at += size;
  };
  add(kTypeEsp, "muster-esp", esp);
  // Not the type of discoverable root partitions: a loader or initrd must never select a slot itself.
  add(kTypeLinux, "muster-root-a", root);
  add(kTypeLinux, "muster-root-b", root);
  add(kTypeLinux, "muster-state", (disk_size - kMiB - at) / kMiB * kMiB);
  return t;
}

bool is_layout(const GptTable& table) {
  static const char* names[] = {"muster-esp", "muster-root-a", "muster-root-b", "muster-state"};
  if (table.from_backup || table.partitions.size() != 4) return false;
  for (int i = 0; i < 4; ++i)
    if (table.partitions[static_cast<size_t>(i)].name != names[i] ||
        table.partitions[static_cast<size_t>(i)].number != i + 1)
      return false;
  return true;
}

const GptPartition* slot_partition(const GptTable& table, const std::string& slot) {
  return table.named("muster-root-" + slot);
}

}  // namespace muster
