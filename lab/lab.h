// The lab's command-line operations up, down and status. All others use control() in lab/serve.h.
//
// up() creates, in this order: folder, key and secret, namespace and bridge, package proxy, `muster lab
// serve` (BMCs and machines, all off), musterd; if a step fails, it removes everything. A lab that is up with
// the same machines is left as it is (lab/existing.h). down() needs only the folder: it finds processes by
// PID files and by the namespace's inode, so it works after any crash.
// The calls block; for command-line programs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lab/lab_dir.h"
#include "sys/os.h"

namespace muster::lab {

struct UpOptions {
  std::string spec_path;
  std::string dir;                 // --dir
  std::optional<bool> controller;  // --controller, --no-controller; unset: if musterd is found
  std::vector<std::string> add;    // machines that are not in the spec
  std::string accel;               // "kvm", "tcg"; empty: decided by probe_kvm()
  bool replace_partial = false;    // takes down a lab that is only partly up, and starts it again
  std::function<void(const std::string&)> say = [](const std::string&) {};  // progress, one line each
};
// Starts the lab. Returns already (it was up), cluster, dir, namespace, spec, socket, apt_proxy, accel,
// nodes, warnings. Code::conflict: the folder's lab has other machines or options, or is only partly up.
Result<Json> up(Process& process, const UpOptions& options);

struct DownOptions {
  std::string dir;
  bool keep = false;  // keeps the folder (drives, images, logs)
};
// Returns what was ended and removed; ok if there was nothing.
Result<Json> down(Process& process, const DownOptions& options);

Result<Json> status(const LabDir& dir);

// Puts the lab's public key in place of LAB_SSH_KEY (outside comments); unchanged if the lab has no key.
std::string with_lab_key(const LabDir& dir, std::string spec_text);
// The same for the lab given by --dir, MUSTER_LAB_DIR or the default folder; `muster up` calls it for every
// spec that it reads.
std::string with_any_lab_key(std::string spec_text);
// Returns the socket of the lab's controller; "" if there is no lab, more than one, or no controller in it.
std::string lab_socket();

// Returns an argv that runs `command` inside the lab's network, for ssh and for users.
Result<std::vector<std::string>> inside(const LabDir& dir, const std::vector<std::string>& command);
// ... that logs in to a machine and runs `remote` there.
Result<std::vector<std::string>> ssh_command(const LabDir& dir, const std::string& node,
                                             const std::vector<std::string>& remote);
// The argv of ssh alone; `login`: USER@ADDRESS. MUSTER_LAB_SSH_OPTIONS of the environment are among its
// options.
std::vector<std::string> ssh_argv(const LabDir& dir, const std::string& login,
                                  const std::vector<std::string>& remote);
// Attaches this terminal to a machine's serial console until Ctrl-] ; prints the last lines of its log first.
Status console(const LabDir& dir, const std::string& node, int log_lines);

}  // namespace muster::lab
