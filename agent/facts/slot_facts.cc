#include "agent/facts/slot_facts.h"

#include <fmt/format.h>

#include "agent/image/efi_variables.h"
#include "agent/image/esp_files.h"
#include "agent/image/own_slots.h"

namespace muster {
namespace {

SlotFacts facts_of(const SlotNote& note) {
  return {note.image, note.digest, note.stage, note.address, note.trial};
}

// Sets the default slot; returns why the files on the ESP do not allow a trial.
std::string read_esp(const Files& files, const OwnSlots& own, std::string& standing) {
  const auto esp = open_own_esp(files, own, kEspPlace, Mounted::Way::read);
  if (!esp.ok()) return esp.error().message;
  standing = standing_slot((*esp)->files());
  if (standing.empty()) return "the loader's configuration was not written by muster";
  if (own.marker.current == standing) return "";
  // A commit was interrupted between its two writes: neither slot can be written or tried until they agree.
  return fmt::format(
      "loader.conf starts slot {}, but the disk's marker records {}: run `muster reimage --through-ram` to "
      "resolve this",
      standing, own.marker.current.empty() ? "none" : "slot " + own.marker.current);
}

}  // namespace

BootFacts slot_facts(const Files& files) {
  BootFacts out;
  const auto own = own_slots(files);
  if (!own.ok()) return out;
  out.running = own->running;
  for (const char* name : {"a", "b"})
    if (const SlotNote* note = own->note(name)) out.slots[name] = facts_of(*note);
  out.slots[own->running] = facts_of(running_note(files, *own));
  out.no_trial = read_esp(files, *own, out.standing);
  for (const Status& can : {efi::came_from(files, own->esp().guid), efi::takes_one_shot(files)})
    if (!can.ok()) out.no_trial = can.error().message;
  return out;
}

}  // namespace muster
