// muster-agent: the node's end of muster.
//   muster-agent   as process 1 of the RAM system: sets the machine up, joins, takes orders
//   muster-agent run --config FILE     as a service of an installed system
//   muster-agent join --url U --pin P --token T --node N   adopts a running machine: key and certificate
//   muster-agent adopt --stdin         the host's end of `muster node add --adopt` (agent/joining/adopting.h)
//   muster-agent facts                 prints this machine's facts as JSON
//   muster-agent rollback NAME         run by a timer: undoes an unconfirmed change (agent/steps/two_phase.h)
//   muster-agent check | apply [--log FILE]   carries out the steps of an order (JSON on standard input);
//       the log has every program that was run and its output
//   muster-agent acs                   sets ACS registers as in /etc/muster/acs.json (agent/steps/gpu/acs.h)
//   muster-agent hand-over --stdin | --now   hands a system that is not a node of muster over to the RAM
//       system: prepares it, does it (controller/power/provider/provider_install.h)
//   muster-agent kexec --stdin | --now   loads a kernel into the running one; starts it (agent/boot/kexec.h)
//   muster-agent write-slot --stdin    writes the unused root slot (agent/image/slot_child.h)
//   muster-agent measure --stdin ...   the host's end of `muster accept --hosts` (agent/measuring/measure.h)
//   muster-agent tied PID PROGRAM ARGUMENTS...   becomes that program, which ends with process PID
//       (agent/measuring/descendants.h)
//   muster-agent version
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "agent/boot/kexec.h"
#include "agent/boot/ram_init.h"
#include "agent/core/agent.h"
#include "agent/core/identity.h"
#include "agent/core/step_runner.h"
#include "agent/facts/collect_facts.h"
#include "agent/image/slot_boot.h"
#include "agent/image/slot_child.h"
#include "agent/image/own_slots.h"
#include "agent/joining/adopting.h"
#include "agent/link/http_link.h"
#include "agent/measuring/measure.h"
#include "agent/measuring/descendants.h"
#include "agent/steps/gpu/acs.h"
#include "agent/steps/two_phase.h"
#include "agent/storage/storage_state.h"
#include "agent/work/file_journal.h"
#include "agent/work/own_functions.h"
#include "agent/work/work_runner.h"
#include "base/digest.h"
#include "base/json_dump.h"
#include "base/lower.h"
#include "base/version.h"
#include "host/net_ports.h"
#include "sys/core_files.h"
#include "sys/log.h"
#include "sys/pki.h"

namespace muster {
namespace {

constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";

// Retries until the join succeeds or fails permanently, for `patience` at most. 0: one attempt.
Result<Credentials> join_until(const JoinOptions& options, std::string* node, DurationMs patience) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience);
  for (DurationMs pause = 500;; pause = std::min<DurationMs>(pause * 2, 10 * kSecond)) {
    auto joined = join(options, node);
    if (joined.ok()) return joined;
    const Code code = joined.error().code;
    if (code == Code::denied || code == Code::invalid || code == Code::conflict) return joined;
    if (std::chrono::steady_clock::now() >= until) return joined;
    log::warning("joining", {{"controller", options.url}, {"error", joined.error().message}});
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
}

// Returns the path of the key for a token. The key is stored before the token is used: if the program ends
// before it has the answer, or before the service runs, the next attempt uses the same key, because a
// different key would count as a second machine.
std::string join_key_path(const std::string& folder, const std::string& token) {
  return folder + "/join-" + sha256(token).substr(0, 16) + ".key";
}

Result<std::string> join_key(const Files& files, const std::string& folder, const std::string& token) {
  const std::string path = join_key_path(folder, token);
  if (files.exists(path)) return files.read(path);
  TRY(const std::string key, pki::make_key());
  TRY_(files.make_directories(folder, 0700));
  TRY_(files.write(path, key, 0600));
  return key;
}

Result<JoinOptions> join_options(const Files& files, const std::string& folder, const BootParameters& boot,
                                 wire::Mode mode) {
  JoinOptions options;
  options.url = boot.url;
  TRY(options.pin, normal_pin(boot.pin));
  TRY(options.key_pem, join_key(files, folder, boot.token));
  options.request.node = boot.node;
  options.request.token = boot.token;
  options.request.boot_id = files.read_line(kBootId);
  options.request.mode = mode;
  // Also of an adapter on USB, which is no port to measure, but may be the one that it boots over.
  for (const auto& port : net_devices(files))
    if (!port.mac.empty()) options.request.macs.push_back(port.mac);
  options.request.product_uuid = lower(files.read_line("/sys/class/dmi/id/product_uuid"));
  return options;
}

// Joins with a token and stores the resulting identity in `folder`.
Result<AgentConfig> join_and_keep(const Files& files, const std::string& folder, const BootParameters& boot,
                                  wire::Mode mode, DurationMs patience) {
  TRY(const JoinOptions options, join_options(files, folder, boot, mode));
  AgentConfig config{boot.node, boot.url, options.pin, mode};
  TRY(const Credentials credentials, join_until(options, &config.node, patience));
  TRY_(write_config(files, folder, config));
  TRY_(write_credentials(files, folder, credentials));
  log::info("joined", {{"node", config.node}, {"controller", config.url}});
  return config;
}

Status serve(Files& files, Process& process, const std::string& folder, const AgentConfig& config,
             WorkFunctions functions, bool loader_skipped = false) {
  TRY(const Credentials credentials, read_credentials(files, folder));
  const auto reactor = make_reactor(1);
  AgentIdentity identity;
  identity.mode = config.mode;
  identity.boot_id = files.read_line(kBootId);
  identity.incarnation = random_hex(8);
  const ImageRecord image = config.mode == wire::Mode::ram ? ImageRecord{} : read_image_record(files);
  identity.image_digest = image.digest;
  identity.slot = image.slot;
  if (config.mode != wire::Mode::ram) identity.on_trial = [&files] { return on_trial(files); };
  identity.version = kProgramVersion;
  identity.loader_skipped = loader_skipped;
  identity.jitter_seed = std::hash<std::string>()(config.node + identity.incarnation);
  StorageState storage(files, process);
  const auto report = [&storage] {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return storage.text(std::chrono::duration_cast<std::chrono::seconds>(since).count());
  };
  TRY(const auto link,
      make_http_link(*reactor, config.url, credentials, identity,
                     config.mode == wire::Mode::ram ? std::function<std::string()>() : report));
  FileJournal journal(*reactor, files, folder + "/journal");
  const auto runner = make_work_runner(*reactor, files, process, config.node, std::move(functions));
  Agent agent(*reactor, *link, journal, *runner, identity);
  TRY_(agent.start());
  log::info("agent", {{"node", config.node},
                      {"mode", std::string(wire::to_string(config.mode))},
                      {"controller", config.url}});
  reactor->on_stop_signal([&reactor] { reactor->stop(); });
  Renewal renewal(*reactor, files, *link, folder, config);
  renewal.look();
  // Resets the RAM system's dead-man timer only after real contact with the controller.
  std::function<void()> watch = [&, seen = SteadyMs{}]() mutable {
    if (agent.last_contact() != seen) ram_contact();
    seen = agent.last_contact();
    reactor->after(5 * kSecond, watch);
  };
  if (config.mode == wire::Mode::ram) watch();
  reactor->run();
  return Ok{};
}

Status run_ram(Files& files, Process& process) {
  TRY(const BootParameters boot, parse_kernel_command_line(files.read_line("/proc/cmdline")));
  // An agent that was restarted in the same boot keeps its identity, because its token is used up.
  if (const auto known = read_config(files, kRamIdentity);
      known.ok() && read_credentials(files, kRamIdentity).ok())
    return serve(files, process, kRamIdentity, known.value(), ram_functions(files, process, known->node));
  TRY(const AgentConfig config, join_and_keep(files, kRamIdentity, boot, wire::Mode::ram, 10 * kMinute));
  ram_contact();
  return serve(files, process, kRamIdentity, config, ram_functions(files, process, config.node));
}

// Runs in the child of process 1 (agent/boot/ram_init.h), which restarts it when it ends.
int ram_agent(const RamEnvironment&) {
  forbid_core_files();
  Files files;
  const auto process = make_process();
  const Status ended = run_ram(files, *process);
  log::error("the RAM system's agent ended",
             {{"error", ended.ok() ? "stopped by a signal" : ended.error().message}});
  return 1;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

// Rolls back changes that a power loss left unconfirmed: one of them may lock the controller out.
void take_back_unconfirmed(Files& files, Process& process) {
  for (const auto& [name, result] : steps::roll_back_orphans(files, process))
    log::warning("rolled back a change that was never confirmed",
                 {{"change", name}, {"result", result.ok() ? "done" : result.error().message}});
}

Status run_installed(const std::map<std::string, std::string>& options) {
  forbid_core_files();
  Files files;
  const auto process = make_process();
  take_back_unconfirmed(files, *process);
  forget_kexec(files, *process);
  // Makes the next restart a normal one, whatever causes it. The boot loader removes the entry for one boot
  // before it starts it: if this is another boot than the one that set it, the loader did not run.
  const bool armed = slot_boot_armed(files);
  if (armed) disarm_slot_boot(files);
  const auto it = options.find("config");
  const std::string folder =
      folder_of(it == options.end() ? std::string(kInstalledIdentity) + "/agent.json" : it->second);
  TRY(AgentConfig config, read_config(files, folder));
  // The image writer copies what the RAM system's agent wrote, but this is an installed system.
  if (config.mode == wire::Mode::ram) config.mode = wire::Mode::installed;
  return serve(files, *process, folder, config, installed_functions(files, *process), armed);
}

Result<std::string> line_from_stdin() {
  std::string line;
  for (int c = getchar(); c != EOF && c != '\n' && line.size() < 8192; c = getchar())
    line += static_cast<char>(c);
  if (line.empty()) return fail(Code::invalid, "standard input is empty");
  return line;
}

Result<BootParameters> parameters_of(const std::map<std::string, std::string>& options) {
  BootParameters boot;
  for (const auto& [name, field] : std::map<std::string, std::string*>{
           {"url", &boot.url}, {"pin", &boot.pin}, {"token", &boot.token}, {"node", &boot.node}}) {
    const auto it = options.find(name);
    if (it == options.end() || it->second.empty()) return fail(Code::invalid, "--" + name + " is missing");
    *field = it->second;
  }
  // "-": the token is read from standard input, so that it does not appear in a process list.
  if (boot.token == "-") {
    TRY(boot.token, line_from_stdin());
    while (!boot.token.empty() && isspace(static_cast<unsigned char>(boot.token.back())))
      boot.token.pop_back();
  }
  return boot;
}

Status run_join(const std::map<std::string, std::string>& options) {
  TRY(const BootParameters boot, parameters_of(options));
  Files files;
  const auto folder = options.find("folder");
  const std::string place = folder != options.end() ? folder->second : identity_folder(files);
  TRY_(may_join(files, place, boot));
  TRY(const AgentConfig config, join_and_keep(files, place, boot, wire::Mode::adopted, kMinute));
  (void)files.remove(join_key_path(place, boot.token));  // the identity has its own copy
  fmt::print("{} joined {}; identity in {}\n", config.node, config.url, place);
  return Ok{};
}

// Checks that can reject the request come before the program is written and the token used.
Result<std::string> settle(Files& files, Process& process, const BootParameters& boot) {
  const std::string place = identity_folder(files);
  TRY_(may_serve(files));
  TRY_(may_join(files, place, boot));
  TRY_(settle_program(files));
  TRY(const AgentConfig config, join_and_keep(files, place, boot, wire::Mode::adopted, kMinute));
  TRY_(start_service(files, process, place));
  (void)files.remove(join_key_path(place, boot.token));
  return config.node;
}

Status run_adopt() {
  Files files;
  const auto process = make_process();
  const auto join = [&](const BootParameters& boot) { return settle(files, *process, boot); };
  answer_adopter({files, *process, join}, std::cin, std::cout);
  return Ok{};
}

Status print_facts() {
  Files files;
  TRY(const HardwareFacts facts, collect_facts(files));
  fmt::print("{}\n", dump_json(to_json(facts), 2));
  return Ok{};
}

// Exit status 4: the kernel does not allow it.
int run_kexec() {
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  const Status loaded = load_kexec(text);
  if (loaded.ok()) return 0;
  fmt::print(stderr, "{}\n", loaded.error().message);
  return loaded.error().code == Code::denied ? 4 : 1;
}

Status run_rollback(const std::string& name) {
  Files files;
  const auto process = make_process();
  return steps::roll_back(files, *process, name);
}

Status run_acs() {
  TRY(const int changed, steps::reapply_acs(Files()));
  if (changed > 0) fmt::print("ACS: {} registers corrected\n", changed);
  return Ok{};
}

// Logs every program that is run and all its output.
class LoggedProcess : public Process {
 public:
  LoggedProcess(Process& inner, FILE* log) : inner_(inner), log_(log) {}
  Result<Output> run(const Command& command) override {
    std::string words;
    for (const auto& word : command.argv) words += " " + word;
    fmt::print(log_, "+{}\n", words);
    Command watched = command;
    watched.on_output = [&](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), log_);
      std::fflush(log_);
      if (command.on_output) command.on_output(text);
    };
    auto output = inner_.run(watched);
    if (!output.ok())
      fmt::print(log_, "- {}\n", output.error().message);
    else if (!output->ok())
      fmt::print(log_, "- exit status {}\n", output->exit_code);
    std::fflush(log_);
    return output;
  }

 private:
  Process& inner_;
  FILE* log_;
};

// Carries out {"steps": [...]} as in an order, for building images, trying a playbook and measuring. Prints
// one line per step, and JSON on the last line.
Status run_steps_here(bool write, const std::string& log_path) {
  std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  TRY(Json order, parse_json(text));
  if (!order.is_object()) return fail(Code::invalid, "standard input: expected an order (a JSON object)");
  order["mode"] = write ? "apply" : "check";
  if (!order.contains("stop_on_failure")) order["stop_on_failure"] = false;
  Files files;
  const auto plain = make_process();
  const std::unique_ptr<FILE, int (*)(FILE*)> log(
      log_path.empty() ? nullptr : std::fopen(log_path.c_str(), "ae"), std::fclose);
  if (!log_path.empty() && !log) return fail(Code::failed, "cannot write " + log_path);
  const auto logged = log ? std::make_unique<LoggedProcess>(*plain, log.get()) : nullptr;
  Process* process = logged ? static_cast<Process*>(logged.get()) : plain.get();
  StepContext context{files, *process, files.read_line("/proc/sys/kernel/hostname")};
  const auto report = [&log](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
    if (log) fmt::print(log.get(), "# {}\n", line);
  };
  context.say = [&report](const std::string& line) { report("  " + line); };
  context.module = [](const std::string& name) { return find_step_module(name); };
  context.root = ::geteuid() == 0;
  TRY(const StepOrder parsed, step_order_from_json(order, context));
  const auto begun = std::chrono::steady_clock::now();
  const auto now = [begun] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun)
        .count();
  };
  const WorkOutcome outcome =
      run_steps(context, parsed, now, [&report](const std::string& kind, const Json& data) {
        if (kind == "step")
          report(fmt::format("{} {} {} {}", data.value("status", ""), data.value("step", ""),
                             data.value("message", ""), data.value("diff", "")));
      });
  fmt::print("{}\n",
             dump_json(Json{{"counts", outcome.result.value("counts", Json::object())}, {"ms", now()}}));
  return outcome.status;
}

int usage() {
  fmt::print(stderr,
             "usage: muster-agent run [--config FILE] | join (--url URL --pin SHA256 --token TOKEN|- --node "
             "NAME) [--folder DIR] | adopt --stdin | facts | check [--log FILE] | "
             "apply [--log FILE] | acs | hand-over --stdin|--now | kexec --stdin|--now | rollback NAME | "
             "write-slot --stdin | version\n");
  return 2;
}

int main_with(int argc, char** argv) {
  if (is_ram_init()) ram_main(ram_agent);
  if (argc < 2) return usage();
  const std::string verb = argv[1];
  if (verb == "tied") return become_tied({argv + 2, argv + argc});
  if (verb == "rollback" && argc == 3) {
    const Status ended = run_rollback(argv[2]);
    if (!ended.ok()) fmt::print(stderr, "muster-agent: {}\n", ended.error().message);
    return ended.ok() ? 0 : 1;
  }
  std::map<std::string, std::string> options;
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--stdin" || name == "--now") {
      options[name.substr(2)] = "";
      continue;
    }
    if (!name.starts_with("--") || i + 1 >= argc) return usage();
    options[name.substr(2)] = argv[++i];
  }
  if (verb == "kexec" && options.count("stdin")) return run_kexec();
  if (verb == "kexec" && options.count("now")) start_loaded_kernel(Files());
  if (verb == "measure" && options.count("stdin")) return run_measure(options);
  // The error is in its output, which the agent reads.
  if (verb == "write-slot" && options.count("stdin")) return write_slot_child().ok() ? 0 : 1;
  Status ended = Ok{};
  if (verb == "run")
    ended = run_installed(options);
  else if (verb == "join")
    ended = run_join(options);
  else if (verb == "adopt" && options.count("stdin"))
    ended = run_adopt();
  else if (verb == "facts")
    ended = print_facts();
  else if (verb == "check" || verb == "apply")
    ended = run_steps_here(verb == "apply", options["log"]);
  else if (verb == "hand-over" && options.count("stdin"))
    ended = hand_over(true);
  else if (verb == "hand-over" && options.count("now"))
    ended = hand_over(false);
  else if (verb == "acs")
    ended = run_acs();
  else if (verb == "version" || verb == "--version")
    fmt::print("muster-agent {}\n", kProgramVersion);
  else
    return usage();
  if (ended.ok()) return 0;
  fmt::print(stderr, "muster-agent: {}\n", ended.error().message);
  if (verb == "hand-over" && ended.error().code == Code::denied) return 4;
  return ended.error().code == Code::invalid ? 2 : 1;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::main_with(argc, argv); }
