#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/time.h"
#include "lab/apt_proxy.h"
#include "lab/child.h"
#include "lab/controller.h"
#include "lab/existing.h"
#include "lab/ipmi_bmc.h"
#include "lab/lab.h"
#include "lab/lab_dir.h"
#include "lab/lab_network.h"
#include "lab/qemu_args.h"
#include "lab/serve.h"
#include "sys/os.h"

namespace muster::lab {
namespace {

struct KvmProbe {
  Accel accel = Accel::tcg;
  std::string reason;  // "firmware up in 1.4 s", "no /dev/kvm", "firmware not up within 12 s"
};

constexpr DurationMs kProbeDeadline = 12 * kSecond;

// With a deadline: nested KVM may open without error, and then hang in the firmware's first real-mode code.
KvmProbe probe_kvm(const LabDir& dir, const QemuHost& host) {
  const int device = open("/dev/kvm", O_RDWR | O_CLOEXEC);
  if (device < 0) return {Accel::tcg, "/dev/kvm cannot be opened"};
  close(device);
  const auto variables = dir.path("kvm-probe.fd"), console = dir.path("kvm-probe.log");
  std::error_code error;
  std::filesystem::copy_file(host.variables, variables, std::filesystem::copy_options::overwrite_existing,
                             error);
  Spawn qemu;
  qemu.argv = {"qemu-system-x86_64",
               "-machine",
               "q35",
               "-accel",
               "kvm",
               "-cpu",
               "host",
               "-m",
               "256",
               "-nodefaults",
               "-display",
               "none",
               "-vga",
               "none",
               "-serial",
               "file:" + console,
               "-drive",
               "if=pflash,format=raw,readonly=on,file=" + host.firmware,
               "-drive",
               "if=pflash,format=raw,file=" + variables};
  qemu.log = dir.path("kvm-probe.err");
  qemu.mark = console;
  KvmProbe probe{Accel::tcg, fmt::format("the firmware was not up within {}", to_human(kProbeDeadline))};
  auto child = spawn(qemu);
  if (!child) return {Accel::tcg, child.error().message};
  for (DurationMs waited = 0; waited < kProbeDeadline; waited += 100) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    auto text = Files("/").read(console);
    if (text &&
        text->find("Bds") != std::string::npos) {  // output of the boot manager: every earlier phase has run
      probe = {Accel::kvm, fmt::format("firmware up in {:.1f} s", static_cast<double>(waited + 100) / 1000)};
      break;
    }
    if (!alive(*child)) {
      const auto words = Files("/").read_line(qemu.log);
      probe.reason = "QEMU ended: " + words.substr(0, words.find('\n'));
      break;
    }
  }
  if (auto ended = terminate(*child, 0); !ended) probe = {Accel::tcg, ended.error().message};
  for (const auto& file : {variables, console, qemu.log}) std::filesystem::remove(file, error);
  return probe;
}

std::string own_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

Status check_host(const QemuHost& host) {
  if (geteuid() != 0)
    return fail(Code::denied, "a lab needs root: it creates a network namespace and taps (try sudo)");
  std::string missing;
  const auto need = [&](const std::string& path, const std::string& source) {
    if (!std::filesystem::exists(path)) missing += fmt::format("\n  {} ({})", path, source);
  };
  need("/usr/bin/qemu-system-x86_64", "package qemu-system-x86");
  need(host.firmware, "package ovmf");
  need(host.variables, "package ovmf");
  need("/usr/lib/ipxe/qemu/efi-virtio.rom", "package ipxe-qemu");
  need("/dev/net/tun", "device of the kernel module tun");
  need("/usr/bin/ssh-keygen", "package openssh-client");
  if (!missing.empty()) return fail(Code::not_found, "the lab needs:" + missing);
  return Ok{};
}

// Writes the spec with the lab's own public key; secret and key pair are created once per folder.
Status write_credentials(Process& process, const LabDir& dir, std::string spec_text) {
  Files files("/");
  // IPMI holds 20 characters.
  if (!files.exists(dir.secret())) TRY_(files.write(dir.secret(), "admin:" + random_hex(8) + "\n", 0600));
  const auto key = dir.path("ssh/id_ed25519");
  TRY_(files.make_directories(dir.path("ssh"), 0700));
  if (!files.exists(key)) {
    auto made = run_ok(
        process, Command{.argv = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", key}});
    if (!made) return std::move(made).error();
  }
  return files.write(dir.path("cluster.yaml"), with_lab_key(dir, std::move(spec_text)));
}

class Builder {
 public:
  Builder(Process& process, const UpOptions& options, LabDir dir, LabSpec spec, std::string text)
      : process_(process),
        options_(options),
        dir_(std::move(dir)),
        spec_(std::move(spec)),
        text_(std::move(text)) {}

  Result<Json> build() {
    if (!spec_.adopted.empty())
      warn(fmt::format("left out, because a lab has no machines for adopted hosts: {}",
                       fmt::join(spec_.adopted, ", ")));
    const auto by_ipmi = [](const LabNode& node) { return node.ipmi; };
    if (std::any_of(spec_.nodes.begin(), spec_.nodes.end(), by_ipmi) && !std::filesystem::exists(kIpmiSim))
      return fail(Code::not_found, fmt::format("the lab needs:\n  {} (package openipmi)", kIpmiSim));
    TRY_(files_and_keys());
    TRY_(accelerator());
    TRY(const auto space, create_namespace(process_, dir_, namespace_name(spec_)));
    space_ = space.name;
    TRY_(run_all(process_, bridge_commands(spec_, space_)));
    for (const auto& node : spec_.nodes) TRY_(run_all(process_, node_commands(node, space_)));
    options_.say("network namespace " + space_);
    auto proxy = start_apt_proxy(process_, dir_, spec_, space_);
    if (proxy)
      proxy_ = *proxy;
    else
      warn("no package proxy: " + proxy.error().message);
    TRY_(start_serve());
    TRY_(start_controller());
    const auto up = summary();
    TRY_(Files("/").write(dir_.summary(), dump_json(up, 1) + "\n"));
    return up;
  }

 private:
  void warn(const std::string& text) {
    warnings_.push_back(text);
    options_.say("warning: " + text);
  }

  Status files_and_keys() {
    Files files("/");
    if (files.exists(dir_.summary())) TRY_(files.remove(dir_.summary()));  // of a lab whose files were kept
    TRY_(files.make_directories(dir_.path("nodes"), 0750));
    TRY_(files.make_directories(dir_.path("apt"), 0755));
    for (const auto& name : options_.add) {
      TRY(auto node, make_extra_node(spec_, name));
      spec_.nodes.push_back(node);
    }
    TRY_(files.write(dir_.spec(), dump_json(to_json(spec_), 1) + "\n"));
    return write_credentials(process_, dir_, text_);
  }

  Status accelerator() {
    if (options_.accel.empty()) {
      const auto probe = probe_kvm(dir_, host_);
      host_.accel = probe.accel;
      options_.say(fmt::format("machines run under {} ({})", to_string(probe.accel), probe.reason));
      return Ok{};
    }
    if (options_.accel != "kvm" && options_.accel != "tcg")
      return fail(Code::invalid, "--accel takes kvm or tcg");
    host_.accel = options_.accel == "kvm" ? Accel::kvm : Accel::tcg;
    return Ok{};
  }

  Status start_serve() {
    Spawn serve;
    serve.argv = {"ip",
                  "netns",
                  "exec",
                  space_,
                  own_program(),
                  "lab",
                  "serve",
                  "--dir",
                  dir_.root(),
                  "--accel",
                  std::string(to_string(host_.accel))};
    serve.log = dir_.path("serve.log");
    serve.mark = dir_.root();
    TRY(auto child, spawn(serve));
    TRY_(write_pid_file(dir_.path("serve.pid"), child));
    // Each machine's drives, certificate and server are created before the first response.
    const DurationMs limit = 20 * kSecond + static_cast<DurationMs>(spec_.nodes.size()) * kSecond;
    for (DurationMs waited = 0; waited < limit; waited += 100) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (control(dir_, "GET", "/status", {}, 5 * kSecond).ok()) {
        options_.say(fmt::format("{} machines, each with a BMC, are ready and off", spec_.nodes.size()));
        return Ok{};
      }
      if (!alive(child)) break;
    }
    return fail(Code::failed, "the BMCs did not start:\n" + Files("/").read(serve.log).value_or("(no log)"));
  }

  Status start_controller() {
    if (options_.controller == false) return Ok{};
    auto started = muster::lab::start_controller(dir_, spec_, space_);
    if (started) {
      controller_ = true;
      options_.say("musterd listens on " + spec_.controller);
      return Ok{};
    }
    if (started.error().code != Code::not_found || options_.controller == true) return started;
    warn(started.error().message + ": the lab is up without a controller");
    return Ok{};
  }

  Json summary() const {
    Json nodes = Json::array();
    for (const auto& node : spec_.nodes)
      nodes.push_back({{"name", node.name},
                       {"bmc_address", node.bmc_address},
                       {"mac", node.mac},
                       {"address", node.address},
                       {"ports", ports_json(node.ports)},
                       {"in_spec", node.in_spec}});
    return {{"already", false},
            {"cluster", spec_.cluster},
            {"dir", dir_.root()},
            {"namespace", space_},
            {"spec", dir_.path("cluster.yaml")},
            {"socket", controller_ ? Json(dir_.path("musterd.sock")) : Json()},
            {"bmc_secret_file", dir_.secret()},
            {"apt_proxy", proxy_.empty() ? Json() : Json(proxy_)},
            {"accel", std::string(to_string(host_.accel))},
            {"time_scale", spec_.time_scale},
            {"nodes", nodes},
            {"warnings", warnings_}};
  }

  Process& process_;
  const UpOptions& options_;
  const LabDir dir_;
  LabSpec spec_;
  const std::string text_;
  QemuHost host_;
  std::string space_, proxy_;
  bool controller_ = false;
  std::vector<std::string> warnings_;
};

// The spec may have changed in what is not about machines: its copy with the lab's key is written again.
Result<Json> already_up(Process& process, const LabDir& dir, const std::string& text) {
  TRY_(write_credentials(process, dir, text));
  TRY(const auto stored, Files("/").read(dir.summary()));
  TRY(auto summary, parse_json(stored));
  summary["already"] = true;
  return summary;
}

// Ends the process of a PID file, if it is still the same one; removes the file. True if it was running.
Result<bool> end_recorded(const std::string& pid_file, DurationMs grace) {
  auto id = read_pid_file(pid_file);
  if (!id) {
    if (id.error().code == Code::not_found) return false;
    TRY_(Files("/").remove(pid_file));  // damaged in a crash; the process is still found by its namespace
    return false;
  }
  const bool was_alive = alive(*id);
  TRY_(terminate(*id, grace));
  TRY_(Files("/").remove(pid_file));
  return was_alive;
}

Result<int> end_namespace_processes(const Namespace& space) {
  int ended = 0;
  for (int round = 0; round < 5; ++round) {  // processes that start meanwhile are found in the next round
    const auto found = processes_in_namespace(space.inode);
    int others = 0;
    for (const auto& id : found) {
      if (id.pid == getpid()) continue;
      ++others;
      TRY_(terminate(id, round == 0 ? kSecond : 0));
      ++ended;
    }
    if (others == 0) break;
  }
  return ended;
}

}  // namespace

Result<Json> up(Process& process, const UpOptions& options) {
  TRY_(check_host({}));
  TRY(auto text, Files("/").read(std::filesystem::absolute(options.spec_path).string()));
  auto spec = lab_spec_from_yaml(text);
  if (!spec) return std::move(spec).error().with(options.spec_path);
  TRY(auto dir, LabDir::choose(options.dir, spec->cluster));
  TRY(const auto claim, claim_namespace(namespace_name(*spec)));
  const auto existing = existing_lab(dir, *spec, options);
  if (existing == Existing::same) return already_up(process, dir, text);
  if (existing == Existing::other)
    return fail(Code::conflict, "the lab in " + dir.root() +
                                    " is up with other machines or options: run `muster lab down` first, or "
                                    "choose another folder with --dir");
  if (existing == Existing::silent)  // never replaced: its drives may be good
    return fail(Code::unavailable,
                "the lab in " + dir.root() +
                    " runs and does not answer: try again when the machine is less busy, or "
                    "run `muster lab down` first");
  if (existing == Existing::partial && !options.replace_partial)
    return fail(Code::conflict,
                "the lab in " + dir.root() +
                    " is only partly up (see `muster lab status`): run `muster lab down` first; "
                    "`--replace-partial` does that, too");
  if (existing == Existing::partial) {
    options.say("the lab in " + dir.root() + " is only partly up: it is taken down and started again");
    TRY_(down(process, {.dir = dir.root()}));
  }
  auto built = Builder(process, options, dir, *spec, text).build();
  if (built) return built;
  auto error = std::move(built).error();
  if (auto undone = down(process, {.dir = dir.root(), .keep = true}); !undone)
    error.message += "\nand cleaning up failed: " + undone.error().message;
  return error;
}

Result<Json> down(Process& process, const DownOptions& options) {
  auto found = LabDir::find(options.dir);
  if (!found) {
    if (found.error().code != Code::not_found) return std::move(found).error();
    return Json{
        {"dir", nullptr}, {"ended", Json::array()}, {"removed", false}, {"note", found.error().message}};
  }
  const LabDir dir = *found;
  Files files("/");
  if (!files.exists(dir.root()))
    return Json{
        {"dir", dir.root()}, {"ended", Json::array()}, {"removed", false}, {"note", "nothing to take down"}};
  if (!files.exists(dir.spec()) && !files.exists(dir.space()))
    return fail(Code::denied, dir.root() + " does not contain a lab (no lab.json); nothing was changed");
  Json ended = Json::array();
  const auto end = [&](const std::string& name, const std::string& pid_file, DurationMs grace) -> Status {
    TRY(const bool was_alive, end_recorded(pid_file, grace));
    if (was_alive) ended.push_back(name);
    return Ok{};
  };
  TRY_(end("musterd", dir.path("musterd.pid"), 10 * kSecond));
  TRY_(end("serve", dir.path("serve.pid"), 10 * kSecond));
  for (const auto& node : files.list(dir.path("nodes"))) TRY_(end(node, dir.node(node, "qemu.pid"), 0));
  TRY_(end("apt proxy (lab side)", dir.path("apt/lab.pid"), kSecond));
  TRY_(end("apt proxy (host side)", dir.path("apt/host.pid"), kSecond));
  auto space = recorded_namespace(dir);
  if (space) {
    TRY(const int others, end_namespace_processes(*space));
    if (others) ended.push_back(fmt::format("{} more process(es) in the namespace", others));
    TRY_(delete_namespace(process, *space));
    TRY_(files.remove(dir.space()));
  }
  std::error_code error;
  if (!options.keep) {
    std::filesystem::remove_all(dir.root(), error);
    if (error) return fail(Code::failed, dir.root() + ": " + error.message());
  }
  return Json{{"dir", dir.root()}, {"ended", ended}, {"removed", !options.keep}};
}

}  // namespace muster::lab
