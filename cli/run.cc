#include "cli/run.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/ports.h"
#include "base/verb_pages.h"
#include "base/version.h"
#include "cli/cli_context.h"
#include "cli/unknown_word.h"
#include "cli/verbs.h"
#include "lab/lab.h"

namespace muster::cli {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 accepted, 1 failed, 2 bad usage or invalid input, 3 some nodes quarantined, returned or "
    "left "
    "out, 4 refused for safety or not approved, 5 all nodes work and some are degraded, 6 report signed by "
    "another key\n"
    "NO_COLOR in the environment: no colours";

void global_flags(Verb& app, Context& context) {
  // Without an installed controller, the socket of the only lab is the default, if there is exactly one lab.
  if (std::error_code error; !std::filesystem::exists(context.socket, error))
    if (const auto socket = lab::lab_socket(); !socket.empty()) context.socket = socket;
  app.add_option("--socket", &context.socket,
                 "the controller's Unix socket; default: that of the service, or else of the only lab")
      .environment("MUSTER_SOCKET");
  app.add_option("--url", &context.url, "use a controller on another machine: " + tls_url("ADDRESS"))
      .environment("MUSTER_URL");
  app.add_option("--token-file", &context.token_file, "file with the operator's token, for --url")
      .environment("MUSTER_TOKEN_FILE");
  app.add_option("--ca-file", &context.ca_file, "file with the controller's CA certificate, for --url")
      .environment("MUSTER_CA_FILE");
  app.add_flag("--json", &context.json,
               "print JSON on standard output, for programs (`logs` and `watch`: one value per line)");
  app.add_flag("-v,--verbose", &context.verbose, "print more detail");
}

int run_verb(int argc, const char* const* argv) {
  Context context;
  Verb app("muster: from a YAML file to an accepted GPU cluster");
  add_program(app, context);
  if (const auto unknown = unknown_word(verb_pages(app, "muster"), {argv + 1, argv + argc})) {
    fmt::print(stderr, "muster: {}\n", to_text(*unknown));
    return kUsage;
  }
  const Parsed parsed = parse_command_line(app, argc, argv);
  if (parsed.ended) return parsed.status == 0 ? kAccepted : kUsage;  // --help and --version are not errors
  return context.exit;
}

// Looked at rather than remembered: the write that failed may have been any of many.
bool reader_left() {
  pollfd out = {STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

}  // namespace

void add_program(Verb& app, Context& context) {
  app.needs_verb();
  app.falls_through();  // global flags may follow the verb
  app.add_version(std::string("muster ") + kProgramVersion);
  app.add_manual(1);
  app.footer(kFooter);
  app.example("muster spec check cluster.yaml").example("muster lab up cluster.yaml");
  app.example("muster up cluster.yaml").example("muster help accept");
  global_flags(app, context);
  add_doctor(app, context);
  add_up(app, context);
  add_plan(app, context);
  add_approve(app, context);
  add_status(app, context);
  add_watch(app, context);
  add_runs(app, context);
  add_cancel(app, context);
  add_why(app, context);
  add_logs(app, context);
  add_report(app, context);
  add_reimage(app, context);
  add_rollback(app, context);
  add_rollout(app, context);
  add_accept(app, context);
  add_power(app, context);
  add_node(app, context);
  add_image(app, context);
  add_spec(app, context);
  add_secret(app, context);
  add_replace(app, context);
  add_notify(app, context);
  add_ack(app, context);
  add_drain(app, context);
  add_sim(app, context);
  add_backup(app, context);
  add_version(app, context);
  add_lab_verb(app, context.json, context.exit);
  add_help(app, context);
  add_completion(app, context);
}

// What could not be written, to a full disk for instance, is a failure whatever the verb did. That a pipe's
// reader has gone is one, too, but of its own choice, as that of `head`: no message.
int run(int argc, const char* const* argv) {
  int code = kAccepted, cause = 0;
  try {
    code = run_verb(argc, argv);
  } catch (const std::system_error& error) {  // fmt's, of a write
    if (std::ferror(stdout) == 0) throw;
    cause = error.code().value();
  }
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (cause == 0) cause = errno;
  if (!reader_left())
    fmt::print(stderr, "muster: standard output cannot be written{}\n",
               cause == 0 ? "" : std::string(": ") + std::strerror(cause));
  return code == kAccepted ? kFailed : code;
}

}  // namespace muster::cli
