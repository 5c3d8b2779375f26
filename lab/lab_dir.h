// LabDir: the paths of all files of one lab. One folder, removed as a whole by `muster lab down`.
//
//   lab.json         the running LabSpec, including machines added later
//   namespace.json   namespace name and inode
//   up.json          what `muster lab up` returned, written when all of the lab is up
//   cluster.yaml     the spec with the lab's ssh key filled in
//   tsc-khz          rate of the host's time stamp counter
//   bmc-secret       password of the BMCs' admin account (0600)
//   ssh/             key pair and known hosts
//   lab.sock         control socket of `lab serve`; also serve.pid, serve.log
//   state/           musterd's state; also musterd.pid, musterd.log, musterd.sock
//   apt/             caching proxy
//   bmc.log          requests to the BMCs
//   nodes/<name>/    drives, firmware variables, sockets, console.log, BMC certificate, pid file
// Thread safety: a plain value type.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::lab {

class LabDir {
 public:
  explicit LabDir(std::string root) : root_(std::move(root)) {}
  const std::string& root() const { return root_; }
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string spec() const { return path("lab.json"); }
  std::string space() const { return path("namespace.json"); }
  std::string summary() const { return path("up.json"); }
  std::string control() const { return path("lab.sock"); }
  std::string secret() const { return path("bmc-secret"); }
  std::string node(const std::string& name) const { return path("nodes/" + name); }
  std::string node(const std::string& name, const std::string& file) const { return node(name) + "/" + file; }

  // Makes the path absolute, without trailing slash; it must be short enough for sockets (107 characters).
  static Result<LabDir> at(const std::string& folder);
  // --dir, else MUSTER_LAB_DIR, else $XDG_STATE_HOME/muster/lab/<cluster>, else ~/.local/state/...
  static Result<LabDir> choose(const std::string& flag, const std::string& cluster);
  // As choose(), for commands without a spec: the only existing lab; Code::invalid if there are several.
  static Result<LabDir> find(const std::string& flag);

 private:
  std::string root_;
};

}  // namespace muster::lab
