// KnownMachines: which machine each host's name stood for in the last run, kept in a file beside the
// database. So the history of a name continues only with the same machine. Thread: values; read() and write()
// touch the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "controller/plan/machine_parts.h"

namespace muster {

class KnownMachines {
 public:
  // From a folder; empty if there is no file. corrupt: it is not ours.
  static Result<KnownMachines> read(const std::string& folder);
  Status write() const;

  // Compares `now` with the machine that had this name. A different machine begins a new history after
  // `newest_run`.
  MachineChange meet(const std::string& host, const MachineParts& now, int64_t newest_run);
  // Host -> the last run in which another machine had its name (AddedToRun).
  std::map<std::string, int64_t> history_after() const;

 private:
  struct Known {
    MachineParts parts;
    int64_t history_after = 0;
  };
  explicit KnownMachines(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::map<std::string, Known> hosts_;
};

}  // namespace muster
