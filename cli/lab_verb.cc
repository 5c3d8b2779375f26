// muster lab: the virtual cluster on the command line.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>

#include "base/json_dump.h"
#include "base/standin.h"
#include "cli/cli_context.h"
#include "cli/verbs.h"
#include "lab/controller.h"
#include "lab/ipmi_bmc.h"
#include "lab/lab.h"
#include "lab/rack.h"
#include "lab/serve.h"

namespace muster::cli {
namespace {

// Flags of all lab verbs; they live as long as the app.
struct LabFlags {
  const bool* global_json = nullptr;
  int* exit = nullptr;
  bool json = false;
  std::string dir, node, name, accel, profile = "generic", password = "secret";
  std::vector<std::string> remote, words;
  lab::UpOptions up;
  lab::Break fault;
  bool kill = false, controller = false, no_controller = false, keep = false, fake = false, no_tls = false,
       on = false;
  int lines = 40, port = 0;

  bool wants_json() const { return json || *global_json; }
};
using LabFlagsPtr = std::shared_ptr<LabFlags>;

void complain(const LabFlags& flags, const Error& error) {
  *flags.exit = exit_for(error);
  if (flags.wants_json())
    fmt::print(
        "{}\n",
        dump_json(Json{{"error", {{"code", std::string(to_string(error.code))}, {"message", error.message}}}},
                  1));
  else
    fmt::print(stderr, "muster lab: {}\n", error.message);
}

template <typename Human>
void show(const LabFlags& flags, const Result<Json>& result, Human human) {
  if (!result) return complain(flags, result.error());
  if (flags.wants_json())
    fmt::print("{}\n", dump_json(*result, 1));
  else
    human(*result);
}

std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "-";
}

// "storage 52:54:00:21:00:01  rail0 52:54:00:22:00:01 (no cable)"
std::string ports_text(const Json& node) {
  std::string out;
  for (const auto& port : node.value("ports", Json::array()))
    out += fmt::format("{}{} {}{}", out.empty() ? "" : "  ", text(port, "network"), text(port, "mac"),
                       port.value("cabled", true) ? "" : " (no cable)");
  return out;
}

void print_lab_nodes(const Json& nodes) {
  fmt::print("{:<12} {:<6} {:<14} {:<14} {:<18} {:<11} {}\n", "NODE", "POWER", "ADDRESS", "BMC", "MAC",
             "PROFILE", "");
  for (const auto& node : nodes) {
    std::string notes = node.value("in_spec", true) ? "" : "not in the spec";
    if (node.contains("boot_override") && node["boot_override"] != "Disabled")
      notes += (notes.empty() ? "" : "; ") + ("next boot: " + text(node, "boot_override"));
    if (node.contains("faults"))
      for (const auto& [fault, words] : node["faults"].items())
        notes += (notes.empty() ? "" : "; ") + ("FAULT " + fault + ": " + words.get<std::string>());
    if (const auto left = node.find("firmware_tests_left_s"); left != node.end() && left->is_number())
      notes += fmt::format("; firmware tests for another {} s", left->get<int64_t>());
    fmt::print("{:<12} {:<6} {:<14} {:<14} {:<18} {:<11} {}\n", text(node, "name"), text(node, "power"),
               text(node, "address"), text(node, "bmc_address"), text(node, "mac"), text(node, "profile"),
               notes);
    if (const int gpus = node.value("simulated_gpus", 0); gpus > 0)
      fmt::print("{:<12} {} x {}\n", "", gpus, kSimulatedGpu);
    const auto ports = ports_text(node);
    if (!ports.empty()) fmt::print("{:<12} {}\n", "", ports);
  }
}

// Conditions that apply to the whole lab: time scale, switches that are down.
void print_conditions(const Json& lab) {
  if (const double scale = lab.value("time_scale", 1.0); scale != 1)
    fmt::print("TIME SCALE {}: firmware tests take this fraction of the time set with `lab break post`\n",
               scale);
  for (const auto& network : lab.value("networks", Json::array()))
    if (network["back_in_s"].is_number())
      fmt::print("SWITCH {}: FAULT drops all traffic for another {} s\n", text(network, "name"),
                 network["back_in_s"].get<int64_t>());
}

void run_lab_up(const LabFlagsPtr& flags) {
  auto process = make_process();
  flags->up.dir = flags->dir;
  flags->up.accel = flags->accel;
  if (flags->controller) flags->up.controller = true;
  if (flags->no_controller) flags->up.controller = false;
  flags->up.say = [](const std::string& line) { fmt::print(stderr, "lab: {}\n", line); };
  show(*flags, lab::up(*process, flags->up), [](const Json& j) {
    const bool already = j.value("already", false);
    fmt::print("lab {} is {} in {}\n", text(j, "cluster"), already ? "up already" : "up", text(j, "dir"));
    fmt::print("  SIMULATED HARDWARE: {} machines under {}{}\n", j["nodes"].size(), text(j, "accel"),
               already ? "" : ", powered off");
    print_conditions(j);
    fmt::print("  spec with the lab's key:  {}\n", text(j, "spec"));
    fmt::print("  the BMCs' user:password:   {}\n", text(j, "bmc_secret_file"));
    if (j["apt_proxy"].is_string()) fmt::print("  package proxy:            {}\n", text(j, "apt_proxy"));
    if (j["socket"].is_string())
      fmt::print("  controller:               muster --socket {} ...\n", text(j, "socket"));
  });
}

void run_status(const LabFlagsPtr& flags) {
  auto dir = lab::LabDir::find(flags->dir);
  if (!dir) return complain(*flags, dir.error());
  show(*flags, lab::status(*dir), [](const Json& j) {
    const auto yes = [&](const char* key) { return j.value(key, false) ? "up" : "DOWN"; };
    fmt::print("lab {} in {}\nnetwork {}  BMCs {}  controller {}  package proxy {}\n", text(j, "cluster"),
               text(j, "dir"), yes("network"), yes("bmcs"), yes("controller"), yes("apt_proxy"));
    print_conditions(j);
    print_lab_nodes(j["nodes"]);
  });
}

void run_down(const LabFlagsPtr& flags) {
  auto process = make_process();
  show(*flags, lab::down(*process, {flags->dir, flags->keep}), [](const Json& j) {
    if (j.contains("note")) return fmt::print("{}\n", text(j, "note"));
    fmt::print("lab in {} is down; ended processes: {}; files {}\n", text(j, "dir"),
               j["ended"].empty() ? "none" : dump_json(j["ended"]),
               j.value("removed", false) ? "removed" : "kept");
  });
}

void run_control(const LabFlagsPtr& flags, const std::string& path, const Json& body) {
  auto dir = lab::LabDir::find(flags->dir);
  if (!dir) return complain(*flags, dir.error());
  show(*flags, lab::control(*dir, "POST", path, body), [&](const Json& j) {
    if (path == "/break")
      fmt::print("{}: {}\n", text(j, "node"), text(j, "done"));
    else
      fmt::print("{} was added to the rack (power {}): MAC {}, BMC {}\n", text(j, "node"), text(j, "power"),
                 text(j, "mac"), text(j, "bmc_address"));
  });
}

void replace_process(const LabFlagsPtr& flags, const Result<std::vector<std::string>>& argv) {
  if (!argv) return complain(*flags, argv.error());
  std::vector<char*> words;
  for (const auto& word : *argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  complain(*flags, fail(Code::failed, std::string("cannot run ") + words[0]));
}

void run_ssh(const LabFlagsPtr& flags, bool shell_in_network) {
  auto dir = lab::LabDir::find(flags->dir);
  if (!dir) return complain(*flags, dir.error());
  replace_process(flags, shell_in_network ? lab::inside(*dir, flags->remote)
                                          : lab::ssh_command(*dir, flags->node, flags->remote));
}

// The parser would reorder a command's flags, so these must follow "--", after which nothing is parsed.
bool command_is_plain(const LabFlagsPtr& flags, const std::vector<std::string>& left_over) {
  if (left_over.empty() || left_over == std::vector<std::string>{"--"}) return true;
  complain(*flags, fail(Code::invalid, "a command that has flags must follow '--': " + left_over.front()));
  return false;
}

void run_console(const LabFlagsPtr& flags) {
  auto dir = lab::LabDir::find(flags->dir);
  if (!dir) return complain(*flags, dir.error());
  fmt::print(stderr, "console of {}: leave with Ctrl-]\n", flags->node);
  if (auto done = lab::console(*dir, flags->node, flags->lines); !done) complain(*flags, done.error());
}

void run_serve(const LabFlagsPtr& flags) {
  if (flags->fake) {
    auto done = lab::serve_fake_bmc(flags->profile, static_cast<uint16_t>(flags->port), flags->password,
                                    !flags->no_tls);
    if (!done) complain(*flags, done.error());
    return;
  }
  auto dir = lab::LabDir::find(flags->dir);
  if (!dir) return complain(*flags, dir.error());
  lab::QemuHost host;
  host.accel = flags->accel == "kvm" ? lab::Accel::kvm : lab::Accel::tcg;
  if (auto done = lab::serve(*dir, host); !done) complain(*flags, done.error());
}

void run_chassis(const LabFlagsPtr& flags) {
  auto dir = lab::LabDir::find(flags->dir);
  if (!dir) return complain(*flags, dir.error());
  const auto answer =
      lab::control(*dir, "POST", "/chassis", {{"node", flags->node}, {"words", flags->words}}, 10 * kSecond);
  if (!answer) return complain(*flags, answer.error());
  fmt::print("{}", lab::chassis_lines(*answer));
}

// Manual actions at a machine: its plug, its power button, the key for a network boot.
const std::map<std::string, std::vector<std::string>> kByHand = {
    {"on", {"set", "power", "1"}},
    {"off", {"set", "power", "0"}},
    {"press", {"set", "shutdown", "1"}},
    {"netboot", {"set", "power", "0", "boot", "pxe", "power", "1"}}};

std::vector<std::string> ways_by_hand() {
  std::vector<std::string> names;
  for (const auto& [name, words] : kByHand) names.push_back(name);
  return names;
}

void run_power(const LabFlagsPtr& flags) {
  auto dir = lab::LabDir::find(flags->dir);
  if (!dir) return complain(*flags, dir.error());
  const auto answer = lab::control(*dir, "POST", "/chassis",
                                   {{"node", flags->node}, {"words", kByHand.at(flags->name)}}, 10 * kSecond);
  if (!answer) return complain(*flags, answer.error());
  show(*flags, Json{{"node", flags->node}, {"done", flags->name}},
       [&](const Json&) { fmt::print("{}: {}\n", flags->node, flags->name); });
}

void run_restart(const LabFlagsPtr& flags) {
  auto dir = lab::LabDir::find(flags->dir);
  if (!dir) return complain(*flags, dir.error());
  if (auto done = lab::restart_controller(*dir, flags->kill); !done) return complain(*flags, done.error());
  show(*flags, Json{{"restarted", true}}, [](const Json&) { fmt::print("musterd was restarted\n"); });
}

Verb& verb(Verb& parent, const LabFlagsPtr& flags, const char* name, const char* help) {
  auto& sub = parent.add_verb(name, help);
  sub.add_option("--dir", &flags->dir,
                 "the lab's folder (default: MUSTER_LAB_DIR, else ~/.local/state/muster/lab/CLUSTER)");
  sub.add_flag("--json", &flags->json, "print one JSON value on standard output");
  return sub;
}

void add_up_down(Verb& lab_app, const LabFlagsPtr& flags) {
  auto& up =
      verb(lab_app, flags, "up",
           "start the virtual cluster of SPEC, with all machines powered off; a lab that is up with the same "
           "machines is left as it is");
  up.add_option("spec", &flags->up.spec_path, "cluster.yaml, with an optional `lab:` section").required();
  up.add_flag("--controller", &flags->controller, "fail unless musterd is installed");
  up.add_flag("--no-controller", &flags->no_controller, "do not start musterd").excludes("--controller");
  up.add_option("--add", &flags->up.add, "add a machine that the spec does not declare (repeatable)");
  up.add_option("--accel", &flags->accel, "kvm or tcg (default: kvm if a probe boot works)");
  up.add_flag("--replace-partial", &flags->up.replace_partial,
              "if an earlier lab in the folder is only partly up, take it down, with its drives, first");
  up.example("muster lab up cluster.yaml").example("muster lab up cluster.yaml --add spare01");
  up.runs([flags] { run_lab_up(flags); });

  auto& down = verb(lab_app, flags, "down",
                    "stop all processes of the lab and remove its folder (also works after a crash)");
  down.add_flag("--keep", &flags->keep, "keep the folder (drives, images, logs)");
  down.example("muster lab down");
  down.runs([flags] { run_down(flags); });
  auto& restart =
      verb(lab_app, flags, "restart-controller", "stop musterd and start it again with the same state");
  restart.add_flag("--kill", &flags->kill, "stop musterd with SIGKILL, as in a crash");
  restart.example("muster lab restart-controller --kill");
  restart.runs([flags] { run_restart(flags); });
  verb(lab_app, flags, "status", "show what is running").example("muster lab status").runs([flags] {
    run_status(flags);
  });
}

void add_node_verbs(Verb& lab_app, const LabFlagsPtr& flags) {
  auto& ssh = verb(lab_app, flags, "ssh", "log in to a machine with the lab's key");
  ssh.add_option("node", &flags->node).required();
  ssh.add_option("command", &flags->remote, "run this command instead of a shell");
  ssh.takes_rest();
  ssh.example("muster lab ssh node01").example("muster lab ssh node01 -- uname -r");
  ssh.runs([flags](const Given& given) {
    if (command_is_plain(flags, given.rest)) run_ssh(flags, false);
  });
  auto& exec = verb(lab_app, flags, "exec", "run a command inside the lab's network on this computer");
  exec.add_option("command", &flags->remote).required();
  exec.takes_rest();
  exec.example("muster lab exec -- ip address");
  exec.runs([flags](const Given& given) {
    if (command_is_plain(flags, given.rest)) run_ssh(flags, true);
  });
  auto& console = verb(lab_app, flags, "console", "open the serial console of a machine (leave with Ctrl-])");
  console.add_option("node", &flags->node).required();
  console.add_option("--lines", &flags->lines, "number of lines of the console log to print first");
  console.example("muster lab console node01 --lines 40");
  console.runs([flags] { run_console(flags); });
  auto& power = verb(lab_app, flags, "power", "operate a machine by hand, without a BMC");
  power.add_option("node", &flags->node).required();
  power
      .add_option("what", &flags->name,
                  "on, off (pull the plug), press (the power button), netboot (off, then on, booting once "
                  "from the network)")
      .required()
      .one_of(ways_by_hand());
  power.example("muster lab power node01 off");
  power.runs([flags] { run_power(flags); });
  auto& add = verb(lab_app, flags, "add", "add a machine that is not in the spec to the rack");
  add.add_option("node", &flags->name, "name of the machine in the lab").required();
  add.add_flag(
      "--on", &flags->on,
      "press the machine's power button; since the drives are blank, the machine boots from the network");
  add.example("muster lab add spare01 --on");
  add.runs([flags] { run_control(flags, "/add", {{"name", flags->name}, {"on", flags->on}}); });

  std::string help = "break a machine on purpose. Faults:";
  for (const auto& [name, words] : lab::fault_list()) help += "\n  " + name + ": " + words;
  auto& broken = verb(lab_app, flags, "break", help.c_str());
  broken.add_option(
      "what", &flags->words,
      "NODE FAULT [ARGUMENT], where ARGUMENT is what the fault needs: a duration, a rate, a number "
      "or a drive; with --switch: SECONDS");
  broken.add_option("--switch", &flags->fault.network_switch,
                    "make the switch of this network (provisioning, storage, rail0) drop all traffic for "
                    "SECONDS (default 60); BMCs are not on this switch");
  broken.add_option(
      "--network", &flags->fault.network,
      "for net-cut, shape, pull-cable and port-errors: the link of the machine (storage, rail0; "
      "default: provisioning)");
  broken.add_option("--seconds", &flags->fault.seconds, "duration of the fault");
  broken.add_option("--rate", &flags->fault.rate,
                    "for shape: a tc rate (10mbit); for slow-drive: bytes per second");
  broken.add_option("--drive", &flags->fault.drive,
                    "drive of the machine, as in the spec's lab section (fast1)");
  broken.add_option("--fs", &flags->fault.file_system, "file system: ext4 or xfs");
  broken.add_flag("--heal", &flags->fault.heal, "end the fault");
  broken.example("muster lab break node01 net-cut --seconds 30")
      .example("muster lab break --switch storage 60");
  broken.runs([flags] {
    if (auto taken = lab::take_words(flags->fault, flags->words); !taken)
      return complain(*flags, taken.error());
    run_control(flags, "/break", lab::to_json(flags->fault));
  });
}

void add_serve(Verb& lab_app, const LabFlagsPtr& flags) {
  auto& serve = verb(lab_app, flags, "serve", "(started by `lab up`) run the BMCs and machines of a lab");
  serve.hidden();
  serve.add_option("--accel", &flags->accel);
  serve.add_flag("--fake-machine", &flags->fake,
                 "for tests: run one BMC on 127.0.0.1, for a machine that exists only in memory");
  serve.add_option("--profile", &flags->profile);
  serve.add_option("--port", &flags->port);
  serve.add_option("--password", &flags->password);
  serve.add_flag("--no-tls", &flags->no_tls);
  serve.runs([flags] { run_serve(flags); });

  auto& chassis = verb(lab_app, flags, "chassis", "(called by ipmi_sim) get or set power and boot device");
  chassis.hidden();
  chassis.add_option("node", &flags->node).required();
  chassis.add_option("what", &flags->words, "get NAME..., set NAME VALUE...").required();
  chassis.runs([flags] { run_chassis(flags); });
}

}  // namespace

void add_lab_verb(Verb& app, const bool& json, int& exit) {
  auto flags = std::make_shared<LabFlags>();
  flags->global_json = &json;
  flags->exit = &exit;
  auto& lab_app = app.add_verb("lab", "run a virtual bare-metal cluster on this computer");
  lab_app.needs_verb();
  lab_app.example("muster lab up cluster.yaml").example("muster lab status").example("muster lab down");
  add_up_down(lab_app, flags);
  add_node_verbs(lab_app, flags);
  add_serve(lab_app, flags);
}

}  // namespace muster::cli
