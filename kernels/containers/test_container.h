// The container that shows what containers can use of this node: a folder whose only program, /bin/sh, is
// this one. Called by that name it opens the device files of GPUs and RDMA devices and prints the results, so
// the check needs neither a registry nor a program of the host. It opens them because a file that exists may
// be one that a cgroup denies. Thread: a TestContainer belongs to one thread; the functions are stateless.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "kernels/common/kernels.h"

namespace muster::kernels {

inline constexpr const char* kContainersProgram = "/bin/sh";

// The files /dev/nvidiaN and /dev/infiniband/uverbsN that exist: why each cannot be opened; "": it can.
using DeviceFiles = std::map<std::string, std::string>;
DeviceFiles open_devices(const Files& files);

// What the program prints in the container, one line, and its reader. An Error has what the engine or the
// program printed last; Code::timeout: it did not end in time.
std::string devices_text(const DeviceFiles& devices);
Result<DeviceFiles> read_devices(const Result<Output>& output);
// True if the caller started this program by the name that it has in the container.
bool is_containers_program(const std::string& argv0);

// The end of what a program printed, as one line; else its exit status, or why it was not run.
std::string last_words(const Result<Output>& output);

class TestContainer {
 public:
  // In a folder for temporary files in which programs may be executed. `program`: the path of this program,
  // which is linked statically. unavailable: there is no such folder. The destructor removes everything.
  static Result<std::unique_ptr<TestContainer>> make(const Files& files, Process& process,
                                                     const std::string& program);
  ~TestContainer();
  TestContainer(const TestContainer&) = delete;
  TestContainer& operator=(const TestContainer&) = delete;

  // Paths on this machine. `tree`: the container's root folder, which lies in `folder`.
  const std::string& folder() const { return folder_; }
  std::string tree() const { return folder_ + "/root"; }
  // For the names of what engines make of it; different for each container.
  const std::string& id() const { return id_; }
  // What its program could open outside of any container.
  const DeviceFiles& outside() const { return outside_; }

 private:
  TestContainer(const Files& files, const std::string& place);
  Status lay_out(const std::string& program) const;

  std::string id_, folder_;
  DeviceFiles outside_ = {};
};

}  // namespace muster::kernels
