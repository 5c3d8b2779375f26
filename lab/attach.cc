// Commands that access a running lab: status, ssh, console.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>

#include "lab/child.h"
#include "lab/lab.h"
#include "lab/lab_network.h"
#include "lab/serve.h"

namespace muster::lab {
namespace {

Result<LabSpec> load_spec(const LabDir& dir) {
  auto text = Files("/").read(dir.spec());
  if (!text)
    return fail(Code::not_found, "no lab in " + dir.root() + " (start one with `muster lab up SPEC`)");
  TRY(auto json, parse_json(*text));
  return lab_spec_from_json(json);
}

bool process_runs(const std::string& pid_file) {
  auto id = read_pid_file(pid_file);
  return id.ok() && alive(*id);
}

std::string last_lines(const std::string& text, int lines) {
  size_t at = text.size();
  for (int i = 0; i <= lines && at != std::string::npos && at > 0; ++i) at = text.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

int connect_console(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

// Puts the terminal into raw mode while in scope.
class RawTerminal {
 public:
  RawTerminal() : on_(isatty(0) && tcgetattr(0, &saved_) == 0) {
    if (!on_) return;
    termios raw = saved_;
    cfmakeraw(&raw);
    tcsetattr(0, TCSANOW, &raw);
  }
  ~RawTerminal() {
    if (on_) tcsetattr(0, TCSANOW, &saved_);
  }

 private:
  termios saved_{};
  bool on_;
};

void relay(int console) {
  constexpr char kLeave = 0x1d;  // Ctrl-]
  char buffer[4096];
  pollfd watched[2] = {{0, POLLIN, 0}, {console, POLLIN, 0}};
  while (poll(watched, 2, -1) >= 0 || errno == EINTR) {
    if (watched[1].revents) {
      const auto got = read(console, buffer, sizeof buffer);
      if (got <= 0 || write(1, buffer, static_cast<size_t>(got)) < 0) return;
    }
    if (watched[0].revents) {
      const auto got = read(0, buffer, sizeof buffer);
      if (got <= 0) {
        watched[0].fd = -1;  // no more input: only show output from now on
        continue;
      }
      if (std::memchr(buffer, kLeave, static_cast<size_t>(got))) return;
      if (send(console, buffer, static_cast<size_t>(got), MSG_NOSIGNAL) < 0) return;
    }
  }
}

}  // namespace

Result<Json> status(const LabDir& dir) {
  TRY(auto spec, load_spec(dir));
  auto space = recorded_namespace(dir);
  Json out = {{"cluster", spec.cluster},
              {"dir", dir.root()},
              {"spec", dir.path("cluster.yaml")},
              {"namespace", space ? Json(space->name) : Json()},
              {"network", space.ok() && namespace_exists(*space)},
              {"serves", process_runs(dir.path("serve.pid"))},
              {"controller", process_runs(dir.path("musterd.pid"))},
              {"socket", dir.path("musterd.sock")},
              {"time_scale", spec.time_scale},
              {"apt_proxy", process_runs(dir.path("apt/lab.pid")) && process_runs(dir.path("apt/host.pid"))}};
  auto live = control(dir, "GET", "/status", {}, 10 * kSecond);
  out["bmcs"] = live.ok();
  if (live) {
    out["nodes"] = (*live)["nodes"];
    out["accel"] = (*live)["accel"];
    out["networks"] = (*live)["networks"];
    return out;
  }
  Json nodes = Json::array();
  for (const auto& node : spec.nodes)
    nodes.push_back({{"name", node.name},
                     {"power", process_runs(dir.node(node.name, "qemu.pid")) ? "on" : "off"},
                     {"bmc_address", node.bmc_address},
                     {"address", node.address},
                     {"mac", node.mac},
                     {"profile", node.profile},
                     {"ports", ports_json(node.ports)},
                     {"in_spec", node.in_spec}});
  out["nodes"] = nodes;
  return out;
}

std::string with_lab_key(const LabDir& dir, std::string spec_text) {
  const auto line = Files("/").read_line(dir.path("ssh/id_ed25519.pub"));
  const auto first = line.find(' '), second = line.find(' ', first + 1);
  if (first == std::string::npos) return spec_text;
  const auto key = line.substr(first + 1, second - first - 1);
  const std::string token = "LAB_SSH_KEY";
  for (size_t at = 0; (at = spec_text.find(token, at)) != std::string::npos;) {
    const auto start = spec_text.rfind('\n', at);
    const auto comment = spec_text.find('#', start == std::string::npos ? 0 : start);
    if (comment < at)
      at += token.size();
    else
      spec_text.replace(at, token.size(), key);
  }
  return spec_text;
}

std::string with_any_lab_key(std::string spec_text) {
  if (spec_text.find("LAB_SSH_KEY") == std::string::npos) return spec_text;
  auto dir = LabDir::find("");
  return dir ? with_lab_key(*dir, std::move(spec_text)) : spec_text;
}

std::string lab_socket() {
  auto dir = LabDir::find("");
  return dir && Files("/").exists(dir->path("musterd.sock")) ? dir->path("musterd.sock") : "";
}

Result<std::vector<std::string>> inside(const LabDir& dir, const std::vector<std::string>& command) {
  auto space = recorded_namespace(dir);
  if (!space || !namespace_exists(*space))
    return fail(Code::not_found, "the lab in " + dir.root() + " is not up");
  std::vector<std::string> argv = {"ip", "netns", "exec", space->name};
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

std::vector<std::string> ssh_argv(const LabDir& dir, const std::string& login,
                                  const std::vector<std::string>& remote) {
  std::vector<std::string> argv = {"ssh",
                                   "-i",
                                   dir.path("ssh/id_ed25519"),
                                   "-o",
                                   "IdentitiesOnly=yes",
                                   "-o",
                                   "UserKnownHostsFile=" + dir.path("ssh/known_hosts"),
                                   "-o",
                                   "StrictHostKeyChecking=accept-new",
                                   "-o",
                                   "ConnectTimeout=20"};
  if (const char* more = std::getenv("MUSTER_LAB_SSH_OPTIONS")) {
    std::istringstream words(more);
    argv.insert(argv.end(), std::istream_iterator<std::string>(words), {});
  }
  argv.push_back(login);
  argv.insert(argv.end(), remote.begin(), remote.end());
  return argv;
}

Result<std::vector<std::string>> ssh_command(const LabDir& dir, const std::string& name,
                                             const std::vector<std::string>& remote) {
  TRY(auto spec, load_spec(dir));
  const auto* node = find_node(spec, name);
  if (!node) return fail(Code::not_found, "the lab has no machine named " + name);
  if (spec.user.empty()) return fail(Code::invalid, "the spec declares no user to log in as");
  return inside(dir, ssh_argv(dir, spec.user + "@" + node->address, remote));
}

Status console(const LabDir& dir, const std::string& name, int log_lines) {
  TRY(auto spec, load_spec(dir));
  if (!find_node(spec, name)) return fail(Code::not_found, "the lab has no machine named " + name);
  auto log = Files("/").read(dir.node(name, "console.log"));
  if (log) {
    const auto tail = last_lines(*log, log_lines);
    if (write(1, tail.data(), tail.size()) < 0) return fail(Code::failed, "cannot write to the terminal");
  }
  const int fd = connect_console(dir.node(name, "console.sock"));
  if (fd < 0)
    return fail(Code::unavailable, name +
                                       " is off, or its console is in use (one client at a time); its log: " +
                                       dir.node(name, "console.log"));
  {
    RawTerminal raw;
    relay(fd);
  }
  close(fd);
  return Ok{};
}

}  // namespace muster::lab
