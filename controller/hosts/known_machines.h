// KnownMachines: the machine that each host name stood for in the last run, kept in a file next to the
// database, so that a name's history continues only with the same machine. Thread safety: plain value type;
// read() and write() access the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "controller/plan/machine_parts.h"

namespace muster {

class KnownMachines {
 public:
  // Reads the file in `folder`; empty if there is none. corrupt: the file does not have the expected format.
  static Result<KnownMachines> read(const std::string& folder);
  Status write() const;

  // Compares `now` with the machine that had this name. If it differs, a new history begins after
  // `newest_run`, and `now` is stored.
  MachineChange meet(const std::string& host, const MachineParts& now, int64_t newest_run);
  // Returns host -> the last run in which a different machine had its name (AddedToRun).
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
