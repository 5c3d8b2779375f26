// Turns a written slot into this node's system while the other one runs: its root (name, network, machine id,
// programs) and its files on the ESP. Thread: blocking.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/image/writer.h"
#include "base/result.h"
#include "base/wire.h"
#include "sys/os.h"

namespace muster {

using BeforeWrite = std::function<Status(std::string_view what)>;

struct ProgramFile {
  wire::SlotProgram program;
  std::string content;  // checked
};

// Returns the network files of the running root that the new system takes over: all of muster's if they set
// up a bond or a VLAN; otherwise none: they are generated from the job. conflict: the job's address differs.
Result<std::map<std::string, std::string>> carried_network(const Files& running, const wire::ImageJob& job);

// invalid: a path is not absolute, or has a part `.` or `..`.
Status check_program_paths(const std::vector<wire::SlotProgram>& programs);

struct SlotSeed {
  const SeedRequest& request;
  std::string machine_id;
  std::map<std::string, std::string> network;
  const std::vector<ProgramFile>& programs;
};
// denied: a symbolic link of the image leads out of `root`.
Status seed_slot_root(const Files& root, const SlotSeed& seed);
// Compares image, slot, name, address and programs with what seed_slot_root() wrote. corrupt: they differ.
Status check_slot_root(const Files& root, const SlotSeed& seed);

// Removes the slot's entries, the trial entry first, and syncs.
Status remove_entries(const Files& esp, const std::string& slot, const BeforeWrite& before);
// Writes kernel, initrd, and the plain entry last; each completely or not at all.
Status write_slot_files(const Files& esp, const SeedRequest& request, const BeforeWrite& before);
// Reads these files back from the disk. corrupt: they do not match the manifest and the job.
Status check_slot_files(const Files& esp, const SeedRequest& request);

}  // namespace muster
