#include "cli/accept_hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/split.h"
#include "cli/destination.h"
#include "cli/hosts_file.h"
#include "cli/terminal.h"
#include "controller/hosts/hosts_spec.h"
#include "controller/hosts/ssh_command.h"
#include "controller/spec/address.h"
#include "controller/spec/units.h"
#include "sys/log.h"
#include "sys/os.h"

namespace muster::cli {
namespace {

struct AddressLookUp {
  bool by_ssh = true;      // destinations are passed to ssh, whose configuration resolves names (`ssh -G`)
  std::string ssh_config;  // ssh -F; "": ssh's own
};

constexpr size_t kAtOnce = 16;  // programs and name look-ups
constexpr DurationMs kLookUp = 10 * kSecond;

// IPv4; "" if there is none.
std::string address_of_name(const std::string& name) {
  if (parse_ipv4(name)) return name;
  Command look;
  look.argv = {"getent", "ahostsv4", name};
  look.deadline = kLookUp;
  const auto found = make_process()->run(look);
  if (!found.ok() || !found->ok()) return "";
  const std::string first = found->out.substr(0, found->out.find_first_of(" \n"));
  return parse_ipv4(first) ? first : "";
}

// Without user and port.
std::string host_of(const std::string& destination) {
  const std::string key = destination_key(destination);
  const size_t colon = key.find(':');
  return colon != std::string::npos && key.find(':', colon + 1) == std::string::npos ? key.substr(0, colon)
                                                                                     : key;
}

// Returns the host that ssh would connect to according to its configuration.
std::string connected_to(const AddressLookUp& how, const std::string& destination) {
  Command look;
  look.argv = {"ssh"};
  if (!how.ssh_config.empty()) look.argv.insert(look.argv.end(), {"-F", how.ssh_config});
  look.argv.insert(look.argv.end(), {"-G", "--", destination});
  look.deadline = kLookUp;
  const auto found = make_process()->run(look);
  if (!found.ok() || !found->ok()) return host_of(destination);
  const std::string key = "hostname ";
  for (const std::string& line : split_lines(found->out))
    if (line.starts_with(key)) return line.substr(key.size());
  return host_of(destination);
}

std::string address_of(const AddressLookUp& how, const ListedHost& host) {
  if (!host.address.empty()) return host.address;
  const std::string named = host_of(host.destination);
  if (parse_ipv4(named)) return named;
  return address_of_name(how.by_ssh ? connected_to(how, host.destination) : named);
}

// Returns host -> IPv4 address: the listed one, the one in its destination, or what its host name resolves to
// on this machine. Hosts without a known address are left out. Looks up several at once.
std::map<std::string, std::string> addresses_of(const AddressLookUp& how,
                                                const std::vector<ListedHost>& hosts) {
  std::map<std::string, std::string> out;
  std::mutex guard;
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next++; i < hosts.size(); i = next++) {
      const std::string address = address_of(how, hosts[i]);
      if (address.empty()) continue;
      const std::lock_guard lock(guard);
      out[hosts[i].name] = address;
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(hosts.size(), kAtOnce); ++i) threads.emplace_back(take);
  for (auto& thread : threads) thread.join();
  return out;
}

namespace fs = std::filesystem;

constexpr int kWorkers = 8;
constexpr DurationMs kRefresh = 700;
constexpr const char* kBesideJobs = "beside-jobs";  // playbooks/acceptance/
constexpr const char* kStandard = "standard";

std::string absolute(const std::string& path) {
  return path.empty() ? "" : fs::absolute(path).lexically_normal().string();
}

bool is_file(const std::string& given) {
  std::error_code error;
  return fs::is_regular_file(given, error);
}

Result<HostsFile> read_hosts(const std::string& given) {
  if (!is_file(given)) {
    if (given.find('/') != std::string::npos) return fail(Code::not_found, given + ": no such file");
    return read_hosts_option(given);
  }
  TRY(const auto text, Files("/").read(absolute(given)));
  return read_hosts_file(text);
}

Result<std::vector<ListedHost>> listed_hosts(const std::string& given) {
  TRY(auto read, read_hosts(given));
  const std::string file = is_file(given) ? given : "--hosts";
  if (!read.errors.empty()) return fail(Code::invalid, to_string(read.errors, file));
  for (const auto& warning : read.warnings) fmt::print(stderr, "muster: {}\n", to_string(warning, file));
  if (read.hosts.empty()) return fail(Code::invalid, file + ": no hosts");
  return std::move(read.hosts);
}

Result<std::string> name_of(const AcceptHostsFlags& flags) {
  if (flags.name.empty()) return is_file(flags.hosts) ? cluster_name_of(flags.hosts) : std::string("hosts");
  if (cluster_name_of(flags.name) == flags.name) return flags.name;
  return fail(Code::invalid,
              "--name must begin with a letter and have at most 30 lower-case letters, digits and '-'");
}

bool differs(const DriftProperty& property) {
  return property.agreement == Agreement::outliers || property.agreement == Agreement::tie ||
         property.agreement == Agreement::split;
}

std::vector<std::string> drifting(const Drift& drift) {
  std::vector<std::string> out;
  for (const auto& group : drift)
    for (const auto& property : group.properties)
      if (differs(property) && std::find(out.begin(), out.end(), property.name) == out.end())
        out.push_back(property.name);
  return out;
}

class Screen {
 public:
  explicit Screen(const Context& context)
      : quiet_(context.json), terminal_(::isatty(STDOUT_FILENO) == 1), view_(context.json) {}

  void draw(AcceptSession::Progress progress) {
    if (progress.running) {
      clear();
      running_ = true;
      return view_.draw(progress.status);
    }
    if (quiet_ || !terminal_ || running_) return;
    fmt::print("\r\x1b[K{} of {} hosts reached", progress.reached, progress.hosts);
    line_ = true;
    std::fflush(stdout);
  }
  void out(const HostOutcome& host) {
    if (quiet_ || running_) return;
    clear();
    fmt::print("{}: {}: {}\n", clean(host.name), to_string(host.verdict), clean(host.reason));
    std::fflush(stdout);
  }
  void not_measured(const std::vector<NotMeasured>& all) {
    if (quiet_) return;
    clear();
    for (const auto& one : all) fmt::print("{}\n", clean(to_text(one)));
    std::fflush(stdout);
  }
  void finish() {
    clear();
    if (running_) view_.finish();
  }

 private:
  void clear() {
    if (std::exchange(line_, false)) fmt::print("\r\x1b[K");
  }
  bool quiet_, terminal_, running_ = false, line_ = false;
  LiveView view_;
};

void show_hosts(const std::vector<HostOutcome>& hosts) {
  size_t width = 0;
  for (const auto& host : hosts) width = std::max(width, host.name.size());
  for (const auto& host : hosts)
    fmt::print("{:<{}}  {}{}{}\n", clean(host.name), width, to_string(host.verdict),
               host.reason.empty() ? "" : ": ", clean(host.reason));
}

void show_outcome(const SessionOutcome& outcome, bool drift_only, const std::string& report) {
  if (drift_only) {
    fmt::print("{}", clean_lines(render_drift(outcome.drift)));
    return;
  }
  fmt::print("\n");
  show_hosts(outcome.hosts);
  for (const auto& note : outcome.notes) fmt::print("note: {}\n", clean(note));
  const auto names = drifting(outcome.drift);
  if (!names.empty())
    fmt::print("settings that differ between hosts (details: --drift-only): {}\n",
               clean(fmt::format("{}", fmt::join(names, ", "))));
  if (std::any_of(outcome.hosts.begin(), outcome.hosts.end(),
                  [](const HostOutcome& host) { return !host.why_user.empty(); }))
    fmt::print(
        "some hosts were measured without root (no passwordless sudo): checks that need root were skipped\n");
  fmt::print("\n{}\n", clean(outcome.title));
  if (!report.empty()) fmt::print("report: {}/report.html\n", report);
}

Result<std::string> write_report(const SessionOutcome& outcome, const std::string& folder) {
  if (folder.empty() || outcome.report.empty()) return std::string();
  const std::string at = absolute(folder);
  for (const auto& [name, content] : outcome.report) TRY_(Files("/").write(at + "/" + name, content));
  return at;
}

Result<SessionOutcome> run_session(Context& context, SessionOptions options) {
  const auto reactor = make_reactor(kWorkers);
  Screen screen(context);
  std::optional<SessionOutcome> outcome;
  TRY(auto session, AcceptSession::open(*reactor, std::move(options),
                                        {[&](const HostOutcome& host) { screen.out(host); },
                                         [&](SessionOutcome came) {
                                           outcome = std::move(came);
                                           reactor->stop();
                                         },
                                         [&](const auto& all) { screen.not_measured(all); }}));
  bool ending = false;
  reactor->on_stop_signal([&] {
    // A second Ctrl-C ends this process at once; child processes end with it.
    if (std::exchange(ending, true)) std::_Exit(kFailed);
    if (!context.json) fmt::print(stderr, "\nmuster: stopping cleanly; press Ctrl-C again to stop at once\n");
    session->cancel("interrupted");
  });
  std::function<void()> draw = [&] {
    screen.draw(session->progress());
    reactor->after(kRefresh, draw);
  };
  reactor->post([&] {
    session->start();
    draw();
  });
  reactor->run();
  screen.finish();
  session.reset();
  if (!outcome) return fail(Code::failed, "the session ended without a result");
  return std::move(*outcome);
}

void report_error(Context& context, const SessionOutcome& outcome) {
  context.exit = exit_for(outcome.ended.error());
  if (!context.json) return complain(context, outcome.ended.error());
  Json out = outcome_json(outcome, context.exit);
  out["verdict"] = "error";
  out["code"] = to_string(outcome.ended.error().code);
  out["message"] = outcome.ended.error().message;
  show(context, out, [] {});
}

}  // namespace

Result<std::string> accept_state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state && state[0] == '/') return std::string(state) + "/muster/accept";
  const char* home = std::getenv("HOME");
  if (home && home[0] == '/') return std::string(home) + "/.local/state/muster/accept";
  return fail(
      Code::invalid,
      "neither XDG_STATE_HOME nor HOME is set, so there is no folder for the history and the signing key");
}

Result<SessionOptions> session_options(const AcceptHostsFlags& flags) {
  if (flags.beside_jobs && !flags.profile.empty())
    return fail(Code::invalid,
                "--beside-jobs uses its own profile, which puts no load on the hosts: omit --profile");
  if (!flags.libs.empty() && flags.libs[0] != '/')
    return fail(Code::invalid, "--libs must be the absolute path of a folder on the hosts");
  if (!flags.via.empty() && !flags.ssh_config.empty())
    return fail(Code::invalid, "--ssh-config cannot be combined with --via: it applies to ssh only");
  SessionOptions out;
  TRY(const auto hosts, listed_hosts(flags.hosts));
  TRY(out.cluster, name_of(flags));
  TRY(out.keys, accept_state_folder());
  const std::string config = absolute(flags.ssh_config);
  if (!config.empty() && !is_file(config)) return fail(Code::not_found, config + ": no such file");
  for (const auto& host : hosts) {
    HostToAccept one{host.name, host.address, host.group, {}};
    TRY(one.argv,
        flags.via.empty() ? ssh_command(host.destination, config) : via_command(flags.via, host.destination));
    out.hosts.push_back(std::move(one));
  }
  const auto addresses = addresses_of({flags.via.empty(), config}, hosts);
  for (auto& host : out.hosts)
    if (const auto at = addresses.find(host.name); at != addresses.end()) host.address = at->second;
  out.core.state = out.keys + "/" + out.cluster;
  out.core = with_defaults(std::move(out.core), "muster");
  TRY(out.gpu, find_gpu_programs(flags.gpu_programs, gpu_program_folders(out.core.accept_binary)));
  out.profile = flags.beside_jobs ? kBesideJobs : flags.profile.empty() ? kStandard : flags.profile;
  if (!flags.libs.empty()) out.vars["libs"] = flags.libs;
  for (const auto& [name, rate] : {std::pair{"rail_rate", flags.rail_rate}, {"port_rate", flags.port_rate}}) {
    if (rate.empty()) continue;
    TRY_(parse_link_rate(rate));
    out.vars[name] = rate;
  }
  out.as_user = flags.user;
  out.beside_jobs = flags.beside_jobs;
  out.drift_only = flags.drift_only;
  return out;
}

int exit_of_outcome(const SessionOutcome& outcome, bool drift_only) {
  const int exit = exit_of(outcome.hosts, outcome.cancelled);
  if (drift_only && !outcome.cancelled && all_looked_at(outcome.hosts))
    return drifting(outcome.drift).empty() ? kAccepted : kDegraded;
  return outcome.look && exit == kDegraded ? kPartial : exit;
}

Json outcome_json(const SessionOutcome& outcome, int exit) {
  Json hosts = Json::array();
  for (const auto& host : outcome.hosts) hosts.push_back(to_json(host));
  Json not_measured = Json::array();
  for (const auto& one : outcome.not_measured) not_measured.push_back(to_json(one));
  Json out = {{"title", outcome.title},
              {"verdict", verdict_word(exit, outcome.hosts)},
              {"exit", exit},
              {"hosts", hosts},
              {"not_measured", not_measured},
              {"drift", to_json(outcome.drift)},
              {"notes", outcome.notes}};
  if (outcome.run > 0) out["run"] = outcome.run;
  return out;
}

void accept_hosts(Context& context, const AcceptHostsFlags& flags) {
  auto options = session_options(flags);
  if (!options.ok()) return complain(context, options.error());
  log::set_level(context.verbose ? log::Level::info : log::Level::error);
  const auto outcome = run_session(context, std::move(options).value());
  if (!outcome.ok()) return complain(context, outcome.error());
  if (!outcome->ended.ok()) return report_error(context, *outcome);
  context.exit = exit_of_outcome(*outcome, flags.drift_only);
  const auto folder = write_report(*outcome, flags.report);
  Json out = outcome_json(*outcome, context.exit);
  if (folder.ok() && !folder->empty()) out["report"] = *folder;
  show(context, out, [&] { show_outcome(*outcome, flags.drift_only, folder.value_or("")); });
  if (!folder.ok()) {
    fmt::print(stderr, "muster: the report could not be written: {}\n", folder.error().message);
    if (context.exit == kAccepted) context.exit = kFailed;
  }
}

}  // namespace muster::cli
