// MemoryPrograms: holds an order's programs in memory, for an agent that leaves nothing on any disk. Each is
// an anonymous file of this process, executed through /proc/PID/fd, which every process of the same user can
// do while this process lives.
//
// Where the kernel does not execute such files (vm.memfd_noexec=2, some security modules), a program is
// written to a folder in which files can be executed, and unlinked once it is open; it is executed in the
// same way. Thread safety: one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/measuring/pipe_link.h"
#include "agent/work/carried_programs.h"
#include "sys/os.h"

namespace muster {

class MemoryPrograms : public CarriedPrograms {
 public:
  struct Ports {
    // Fetches a program by its digest, 64 hexadecimal digits.
    std::function<Result<PipeLink::Packed>(const std::string& sha256, const std::function<bool()>& cancelled)>
        fetch;
    // A folder that only this user can write to, and in which files can be executed; created at the first
    // call.
    std::function<Result<std::string>()> folder;
    std::function<void(const std::string&)> say;  // called once: why programs are not kept in memory
  };
  MemoryPrograms(Process& process, Ports ports) : process_(process), ports_(std::move(ports)) {}
  ~MemoryPrograms() override;
  MemoryPrograms(const MemoryPrograms&) = delete;
  MemoryPrograms& operator=(const MemoryPrograms&) = delete;

  // Errors: those of the ports; denied: no file of this process can be executed.
  Result<std::map<std::string, std::string>> ready(const std::vector<CarriedProgram>& programs,
                                                   const std::function<bool()>& cancelled) override;

 protected:
  // Tests override it to simulate a kernel that rejects files in memory.
  virtual int make_memory_file();

 private:
  Result<std::string> fetched(const CarriedProgram& program, const std::function<bool()>& cancelled);
  Result<int> in_memory(const std::string& content);
  Result<int> in_folder(const std::string& content);
  bool runs(int fd);

  Process& process_;
  Ports ports_;
  std::map<std::string, int> files_;  // by digest: open descriptors
  bool memory_works_ = true;
  bool proven_ = false;  // a program was executed in the way that is used
};

}  // namespace muster
