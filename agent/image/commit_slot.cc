#include "agent/image/commit_slot.h"

#include <fmt/format.h>

#include "agent/core/identity.h"
#include "agent/disk/block_device.h"
#include "agent/image/efi_variables.h"
#include "agent/image/esp_files.h"
#include "agent/image/own_slots.h"

namespace muster {
namespace {

// Only a running, completely written system may be committed.
Result<OwnSlots> running_system(const Files& files, const SlotCommit& c) {
  TRY(OwnSlots own, own_slots(files));
  if (own.running != c.slot)
    return fail(Code::conflict,
                fmt::format("slot {} is running, but the order would commit slot {}", own.running, c.slot));
  const ImageRecord record = read_image_record(files);
  if (record.digest != c.digest)
    return fail(Code::conflict,
                fmt::format("image {} is running, but the order would commit {}", record.digest, c.digest));
  const SlotNote* note = own.note(c.slot);
  if (!note || note->stage != kSlotWritten || note->digest != c.digest)
    return fail(Code::conflict,
                "the disk's marker does not record that this image was written to slot " + c.slot);
  return own;
}

// Checks that loader.conf was written by muster, and that all files that the slot needs to boot are present.
Result<std::string> standing_now(const OwnSlots& own, const Files& esp, Proof proof) {
  const std::string standing = standing_slot(esp);
  if (standing.empty())
    return fail(Code::conflict,
                "the loader's configuration was not written by muster, so it was left unchanged");
  TRY_(slot_is_startable(esp, own.running, own.slot(own.running).guid, own.note(own.running), proof));
  return standing;
}

bool marker_holds(const OwnSlots& own, const SlotCommit& c) {
  return own.marker.current == c.slot && own.marker.slot == c.slot && own.marker.digest == c.digest &&
         own.marker.stage == "done";
}

Status go_on(const CommitDeps& deps, std::string_view what) {
  return deps.before_write ? deps.before_write(what) : Status(Ok{});
}

Status commit_marker(const CommitDeps& deps, const OwnSlots& own, const SlotCommit& c) {
  TRY(const BlockDevice disk, BlockDevice::open(own.device, BlockDevice::Access::shared_write));
  TRY(ImageMarker marker, read_marker(disk));
  marker.current = marker.slot = c.slot;
  marker.digest = c.digest;
  marker.stage = "done";
  marker.order = c.order;
  marker.approved.clear();  // the content that an earlier order was approved to overwrite
  TRY_(go_on(deps, "marker"));
  return write_marker(disk, marker);
}

}  // namespace

Result<std::string> uncommitted(const Files& files, const SlotCommit& c) {
  TRY(const OwnSlots own, running_system(files, c));
  TRY(const auto esp, open_own_esp(files, own, kEspPlace, Mounted::Way::read));
  TRY(const std::string standing, standing_now(own, esp->files(), Proof::sizes));
  TRY_(esp->close());
  std::string out;
  if (standing != c.slot) out = fmt::format("loader.conf: slot {} -> {}", standing, c.slot);
  if (!marker_holds(own, c))
    out += fmt::format("{}marker: slot {} -> {}", out.empty() ? "" : "; ", own.marker.current, c.slot);
  if (const std::string set = efi::overrides(files); !set.empty())
    out += fmt::format("{}EFI variables that override loader.conf: {}", out.empty() ? "" : "; ", set);
  return out;
}

Status commit_slot(const CommitDeps& deps, const SlotCommit& c) {
  TRY(const OwnSlots own, running_system(deps.files, c));
  TRY(const auto esp, open_own_esp(deps.files, own, kEspPlace, Mounted::Way::write));
  TRY(const std::string standing, standing_now(own, esp->files(), Proof::digests));
  // What overrides loader.conf is removed before that changes: if it fails, nothing has changed.
  if (const std::string set = efi::overrides(deps.files); !set.empty()) {
    TRY_(go_on(deps, set));
    TRY_(efi::drop_overrides(deps.files));
  }
  if (standing != c.slot) {
    TRY_(go_on(deps, "loader.conf"));
    TRY_(change_standing(esp->files(), standing, c.slot));
    if (standing_slot(esp->files()) != c.slot)
      return fail(Code::failed, "loader.conf does not read back as written");
  }
  if (const Status noted = commit_marker(deps, own, c); !noted.ok()) {
    const auto after = own_slots(deps.files);  // one of the marker's two copies is enough
    if (!after.ok() || !marker_holds(*after, c)) {
      if (standing != c.slot && go_on(deps, "loader.conf back").ok())
        (void)change_standing(esp->files(), c.slot, standing);
      return noted;
    }
  }
  TRY_(go_on(deps, "trial entry"));
  TRY_(esp->files().remove(entry_path(trial_name(c.slot))));
  return esp->close();
}

}  // namespace muster
