// The lab as its command line uses it: up, down, status. Everything else goes through lab/serve.h (control).
//
// up() builds, in this order, and takes everything down again when a step fails: folder, key and secret,
// namespace and bridge, package proxy, `muster lab serve` (BMCs, machines, all off), musterd. down() needs
// only the folder: it finds processes by pid files and by the namespace's inode, so it works after any crash.
// Thread: blocking calls of a command-line program.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/os.h"
#include "lab/lab_dir.h"

namespace muster::lab {

struct UpOptions {
  std::string spec_path;
  std::string dir;                 // --dir
  std::optional<bool> controller;  // --controller / --no-controller; unset: if musterd is installed
  std::vector<std::string> add;    // machines that are not in the spec
  std::string accel;               // "", "kvm", "tcg": empty: decided by the probe
  std::function<void(const std::string&)> say = [](const std::string&) {};  // progress, one line each
};
// What is up: cluster, dir, namespace, spec, socket, apt_proxy, accel, nodes, warnings.
Result<Json> up(Process& process, const UpOptions& options);

struct DownOptions {
  std::string dir;
  bool keep = false;  // keeps the folder (drives, images, logs)
};
// What was ended and removed. Ok also if there was nothing.
Result<Json> down(Process& process, const DownOptions& options);

Result<Json> status(const LabDir& dir);

// The spec with the lab's public key in place of LAB_SSH_KEY (outside comments); unchanged when the lab has
// no key.
std::string with_lab_key(const LabDir& dir, std::string spec_text);
// The same for the lab that --dir, MUSTER_LAB_DIR or the default folder name: called by `muster up` on every
// spec it reads.
std::string with_any_lab_key(std::string spec_text);
// Socket of the lab's controller, or "" when there is no lab, more than one, or no controller in it.
std::string lab_socket();

// argv that runs `command` inside the lab's network. For ssh and for people.
Result<std::vector<std::string>> inside(const LabDir& dir, const std::vector<std::string>& command);
Result<std::vector<std::string>> ssh_command(const LabDir& dir, const std::string& node,
                                             const std::vector<std::string>& remote);
// Attaches this terminal to a machine's serial console until Ctrl-] ; prints the last lines of its log first.
Status console(const LabDir& dir, const std::string& node, int log_lines);

}  // namespace muster::lab
