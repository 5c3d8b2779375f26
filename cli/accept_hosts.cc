#include "cli/accept_hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "cli/destination.h"
#include "cli/early_lines.h"
#include "cli/host_look_up.h"
#include "cli/hosts_file.h"
#include "cli/terminal.h"
#include "controller/hosts/hosts_spec.h"
#include "controller/hosts/ssh_command.h"
#include "controller/spec/address.h"
#include "controller/spec/host_name.h"
#include "controller/spec/own_variables.h"
#include "controller/spec/units.h"
#include "sys/log.h"
#include "sys/open_files.h"
#include "sys/os.h"
#include "sys/piped_child.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kWorkers = 8;
constexpr DurationMs kRefresh = 700;
constexpr const char* kBesideJobs = "beside-jobs";  // playbooks/acceptance/
constexpr const char* kStandard = "standard";

std::string absolute(const std::string& path) {
  return path.empty() ? "" : fs::absolute(path).lexically_normal().string();
}

fs::file_type type_of(const std::string& given) {
  std::error_code error;
  return fs::status(given, error).type();
}

bool is_file(const std::string& given) { return type_of(given) == fs::file_type::regular; }
// <(command), /dev/stdin. It can be read once.
bool is_pipe(const std::string& given) { return type_of(given) == fs::file_type::fifo; }

// A list may have '/' only in ssh://, and in the step of a range.
bool is_path(const std::string& given) {
  const size_t slash = given.find('/');
  return slash != std::string::npos && given.find("://") == std::string::npos &&
         given.find('[') == std::string::npos;
}

Error no_list(const std::string& path) {
  const fs::file_type type = type_of(path);
  if (type == fs::file_type::directory)
    return fail(Code::invalid, path + " is a folder: pass the file with the list");
  if (type == fs::file_type::not_found) return fail(Code::not_found, path + ": no such file");
  return fail(Code::invalid, path + " is neither a file nor a pipe that can be read");
}

Result<HostsFile> read_hosts(const std::string& given, const HostLookUp& how) {
  const auto aliases = [&how](const std::set<std::string>& words) { return known_aliases(how, words); };
  if (!is_file(given) && !is_pipe(given)) {
    if (is_path(given)) return no_list(given);
    return read_hosts_option(given, aliases);
  }
  TRY(const auto text, Files("/").read(absolute(given)));
  return read_hosts_file(text, aliases);
}

Result<std::vector<ListedHost>> listed_hosts(const std::string& given, const HostLookUp& how) {
  TRY(auto read, read_hosts(given, how));
  const std::string file = is_file(given) || is_pipe(given) ? given : "--hosts";
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

// What hosts resolve to here is needed only where hosts reach one another.
std::map<std::string, std::string> addresses_of(const AcceptHostsFlags& flags, const HostLookUp& how,
                                                const std::vector<ListedHost>& hosts) {
  if (flags.drift_only || flags.beside_jobs || hosts.size() < 2) return {};
  LookedUp found = look_up_addresses(how, hosts, look_up_limit(hosts.size()));
  if (found.too_late > 0)
    fmt::print(stderr,
               "muster: name resolution on this machine is too slow: {} of {} hosts were not looked up, and "
               "their own addresses are used; `address=` in the list names others\n",
               found.too_late, hosts.size());
  return std::move(found.addresses);
}

// The first part of a domain name, which is how most kernels call themselves; "": the host has none.
std::string short_name_of(const ListedHost& host) {
  const std::string whole = destination_host(host.written);
  const size_t dot = whole.find('.');
  return dot == std::string::npos || parse_ipv4(whole) ? "" : host_label(whole.substr(0, dot));
}

// Each connected host has open files of this process, from its first connection to its last.
Status enough_open_files(size_t hosts) {
  constexpr uint64_t kOwn = 64;  // database, event loop, report
  const uint64_t allowed = raise_open_files();
  const uint64_t others = open_files_now() + kOwn + PipedChild::kOpenFilesToStart;
  const uint64_t needed = hosts * PipedChild::kOpenFiles + others;
  if (needed <= allowed) return Ok{};
  return fail(
      Code::invalid,
      fmt::format("{} hosts need {} open files at once, but this process may have {} (`ulimit -Hn`): "
                  "raise the hard limit (nofile in /etc/security/limits.conf, LimitNOFILE= of a unit), "
                  "or measure at most {} hosts in one run",
                  hosts, needed, allowed,
                  allowed > others ? (allowed - others) / PipedChild::kOpenFiles : 0));
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
      show_lines(early_.rest());
      running_ = true;
      return view_.draw(progress.status);
    }
    if (quiet_ || !terminal_ || running_) return;
    Look look;
    look.width = terminal_width();
    fmt::print("\r\x1b[K{}", cut(reaching_line(progress), look));
    line_ = true;
    std::fflush(stdout);
  }
  void out(const HostOutcome& host) {
    if (running_) return;
    show_lines(early_.left_out(fmt::format("{}: {}: {}", host.name, to_string(host.verdict), host.reason)));
  }
  void not_measured(const std::vector<NotMeasured>& all) { show_lines(early_.foreseen(all)); }
  void finish() {
    show_lines(early_.rest());
    if (running_) view_.finish();
  }

 private:
  void show_lines(const std::vector<std::string>& lines) {
    clear();
    if (quiet_) return;
    for (const auto& line : lines) fmt::print("{}\n", clean(line));
    std::fflush(stdout);
  }
  void clear() {
    if (std::exchange(line_, false)) fmt::print("\r\x1b[K");
  }
  bool quiet_, terminal_, running_ = false, line_ = false;
  EarlyLines early_;
  LiveView view_;
};

void show_hosts(const std::vector<HostOutcome>& hosts) {
  size_t width = 0;
  const auto shown = [](const HostOutcome& host) {
    return clean(host.written.empty() ? host.name : fmt::format("{} ({})", host.name, host.written));
  };
  for (const auto& host : hosts) width = std::max(width, shown(host).size());
  for (const auto& host : hosts)
    fmt::print("{:<{}}  {}{}{}\n", shown(host), width, to_string(host.verdict),
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
  const std::string config = absolute(flags.ssh_config);
  if (!config.empty() && !is_file(config)) return fail(Code::not_found, config + ": no such file");
  const HostLookUp how{flags.via.empty(), config};
  TRY(const auto hosts, listed_hosts(flags.hosts, how));
  TRY(out.cluster, name_of(flags));
  TRY(out.keys, accept_state_folder());
  for (const auto& host : hosts) {
    HostToAccept one{host.name, host.address, host.group, {}};
    TRY(one.argv, flags.via.empty() ? ssh_command(ssh_argument(host.destination), config)
                                    : via_command(flags.via, host.destination));
    if (host.written != host.name) one.written = host.written;
    one.short_name = short_name_of(host);
    out.hosts.push_back(std::move(one));
  }
  const auto addresses = addresses_of(flags, how, hosts);
  for (auto& host : out.hosts)
    if (const auto at = addresses.find(host.name); at != addresses.end()) host.looked_up = at->second;
  out.core.state = out.keys + "/" + out.cluster;
  out.core = with_defaults(std::move(out.core), "muster");
  TRY(out.gpu, find_gpu_programs(flags.gpu_programs, gpu_program_folders(out.core.accept_binary)));
  out.profile = flags.beside_jobs ? kBesideJobs : flags.profile.empty() ? kStandard : flags.profile;
  if (!flags.libs.empty()) out.vars[own_variable::kLibs] = flags.libs;
  for (const auto& [name, rate] :
       {std::pair{own_variable::kRailRate, flags.rail_rate}, {own_variable::kPortRate, flags.port_rate}}) {
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
  if (const Status enough = enough_open_files(options->hosts.size()); !enough.ok())
    return complain(context, enough.error());
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
