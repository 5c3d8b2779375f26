// What makes a written slot this node's system, beside the running one: its root (name, network, machine id,
// programs) and its files on the ESP. Thread: blocking.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/image/writer.h"
#include "base/os.h"
#include "base/result.h"
#include "base/wire.h"

namespace muster {

using BeforeWrite = std::function<Status(std::string_view what)>;

struct ProgramFile {
  wire::SlotProgram program;
  std::string content;  // checked
};

// Network files of the running root that the new system takes over: all of muster's where they lead over a
// bond or a VLAN; else none, and the job's are made. conflict: the node would have another address in them.
Result<std::map<std::string, std::string>> carried_network(const Files& running, const wire::ImageJob& job);

// invalid: one of them has no path that a program can have.
Status check_program_paths(const std::vector<wire::SlotProgram>& programs);

struct SlotSeed {
  const SeedRequest& request;
  std::string machine_id;
  std::map<std::string, std::string> network;
  const std::vector<ProgramFile>& programs;
};
// Paths of an image may lead anywhere by symbolic links; denied where one would lead out of `root`.
Status seed_slot_root(const Files& root, const SlotSeed& seed);
// Whether that root is what seed_slot_root() made: image, slot, name, address, programs. corrupt: it is not.
Status check_slot_root(const Files& root, const SlotSeed& seed);

// Takes the slot's entries away, the trial's first, and syncs.
Status remove_entries(const Files& esp, const std::string& slot, const BeforeWrite& before);
// Kernel, initrd, and last the plain entry; each whole or not at all.
Status write_slot_files(const Files& esp, const SeedRequest& request, const BeforeWrite& before);
// By reading them from the disk. corrupt: they are not what the manifest and the job say.
Status check_slot_files(const Files& esp, const SeedRequest& request);

}  // namespace muster
