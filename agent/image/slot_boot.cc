#include "agent/image/slot_boot.h"

#include <fmt/format.h>

#include <cstdlib>

#include "agent/image/efi_variables.h"
#include "agent/image/esp_files.h"
#include "agent/image/own_slots.h"
#include "sys/log.h"

namespace muster {
namespace {

bool is_trial(const std::string& id) { return id == trial_name("a") || id == trial_name("b"); }

Status check_note(const OwnSlots& own, const wire::BootSlotJob& job) {
  const SlotNote* note = own.note(job.slot);
  const auto refuse = [&job](const std::string& why) -> Status {
    return fail(Code::conflict, fmt::format("slot {} {}", job.slot, why));
  };
  if (!note || note->digest.empty()) return refuse("is empty, according to the disk's marker");
  if (note->stage != kSlotWritten) return refuse("is only partly written");
  if (note->digest != job.digest)
    return refuse(fmt::format("contains image {}, but the order is for {}", note->digest, job.digest));
  if (!note->trial)
    return refuse(
        "contains an image that cannot roll back automatically, according to the marker: re-image the node");
  return Ok{};
}

Status is_startable(const Files& esp, const OwnSlots& own, const std::string& slot) {
  return slot_is_startable(esp, slot, own.slot(slot).guid, own.note(slot), Proof::digests);
}

// Writes the entry before the variable: after an interruption in between, the next boot is a normal one.
Status arm(const Files& files, const Files& esp, const OwnSlots& own, const std::string& slot,
           int64_t seconds) {
  TRY_(is_startable(esp, own, slot));
  TRY(const std::string plain, esp.read(entry_path(entry_name(slot))));
  TRY(const std::string trial, trial_entry(plain, seconds));
  const std::string path = entry_path(trial_name(slot));
  TRY_(esp.write(path, trial));
  TRY_(sync_file_system(esp.root()));
  TRY(const std::string found, esp.read(path));
  if (found != trial) return fail(Code::failed, "the trial entry does not read back as written");
  TRY_(efi::drop_overrides(files));
  return efi::write_loader_text(files, efi::kOneShot, trial_name(slot));
}

void remove_trials(const Files& esp) {
  for (const char* slot : {"a", "b"}) (void)esp.remove(entry_path(trial_name(slot)));
  (void)sync_file_system(esp.root());
}

}  // namespace

Result<Json> arm_slot_boot(const Files& files, const wire::BootSlotJob& job) {
  TRY_(efi::takes_one_shot(files));
  TRY(const OwnSlots own, own_slots(files));
  TRY_(efi::came_from(files, own.esp().guid));
  if (job.slot == own.running || (job.slot != "a" && job.slot != "b"))
    return fail(Code::conflict, "this system runs from slot " + own.running +
                                    ", so the order must name the other slot, but it names " +
                                    (job.slot.empty() ? "none" : job.slot));
  TRY_(check_note(own, job));
  TRY(const auto esp, open_own_esp(files, own, kEspPlace, Mounted::Way::write));
  TRY_(is_committed(own, standing_slot(esp->files())));
  TRY_(is_startable(esp->files(), own, own.running));  // the system to return to
  Status armed = arm(files, esp->files(), own, job.slot, job.trial / kSecond);
  if (!armed.ok()) {
    if (is_trial(efi::loader_text(files, efi::kOneShot))) efi::remove_loader_variable(files, efi::kOneShot);
    remove_trials(esp->files());
    return std::move(armed).error();
  }
  if (const Status closed = esp->close(); !closed.ok()) {
    disarm_slot_boot(files);
    return closed.error();
  }
  return Json{{"slot", job.slot}, {"digest", job.digest}, {"entry", trial_name(job.slot)}};
}

Status keep_trial(const Files& files) {
  const std::string seconds = trial_seconds(files);
  if (seconds.empty()) return Ok{};
  TRY_(efi::takes_one_shot(files));
  TRY(const OwnSlots own, own_slots(files));
  TRY(const auto esp, open_own_esp(files, own, kEspPlace, Mounted::Way::write));
  if (standing_slot(esp->files()) == own.running) return esp->close();
  TRY_(arm(files, esp->files(), own, own.running, std::strtoll(seconds.c_str(), nullptr, 10)));
  return esp->close();
}

bool slot_boot_armed(const Files& files) { return is_trial(efi::loader_text(files, efi::kOneShot)); }

void disarm_slot_boot(const Files& files) {
  if (slot_boot_armed(files)) {
    efi::remove_loader_variable(files, efi::kOneShot);
    log::info("removed the boot loader's one-time entry for the other slot");
  }
  const auto own = own_slots(files);
  if (!own.ok()) return;
  const auto esp = open_own_esp(files, *own, kEspPlace, Mounted::Way::write);
  if (esp.ok()) remove_trials((*esp)->files());
}

}  // namespace muster
