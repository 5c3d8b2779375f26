#include "cli/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/ports.h"
#include "base/version.h"
#include "cli/cli_context.h"
#include "cli/verbs.h"
#include "controller/spec/spec.h"
#include "lab/lab.h"

namespace muster::cli {
namespace {

constexpr char kFooter[] =
    "First steps:\n  muster spec check cluster.yaml   show every error in a spec, without a controller\n"
    "  muster lab up SPEC               start a virtual cluster on this machine to rehearse on\n"
    "  muster up cluster.yaml           turn racked servers into an accepted cluster\nExit codes: 0 "
    "accepted, 1 failed, 2 bad usage or "
    "invalid input, 3 some nodes quarantined, returned or left out, 4 refused for safety or not approved, 5 "
    "all nodes work and some are degraded, 6 report signed by another key";

void global_flags(Verb& app, Context& context) {
  // Without an installed controller, the socket of the only lab is the default, if there is exactly one lab.
  if (std::error_code error; !std::filesystem::exists(context.socket, error))
    if (const auto socket = lab::lab_socket(); !socket.empty()) context.socket = socket;
  app.add_option("--socket", &context.socket, "the controller's Unix socket")
      .environment("MUSTER_SOCKET")
      .shows_default();
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

// The parser reports a mistyped verb as a missing one, so unknown verbs are handled here.
bool unknown_verb(const Verb& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  const std::vector<std::string> verbs = app.verbs();
  if (std::find(verbs.begin(), verbs.end(), argv[1]) != verbs.end()) return false;
  const std::string near = nearest_spelling(argv[1], verbs);
  fmt::print(stderr, "muster: unknown verb '{}'{}; see `muster --help`\n", argv[1],
             near.empty() ? "" : ", did you mean '" + near + "'?");
  return true;
}

int run_verb(int argc, const char* const* argv) {
  Context context;
  Verb app("muster: from a YAML file to an accepted GPU cluster");
  app.footer(kFooter);
  app.needs_verb();
  app.falls_through();  // global flags may follow the verb
  app.add_version(std::string("muster ") + kProgramVersion);
  global_flags(app, context);
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
  if (unknown_verb(app, argc, argv)) return kUsage;
  const Parsed parsed = parse_command_line(app, argc, argv);
  if (parsed.ended) return parsed.status == 0 ? kAccepted : kUsage;  // --help and --version are not errors
  return context.exit;
}

}  // namespace

// What could not be written, to a full disk for instance, is a failure whatever the verb did.
int run(int argc, const char* const* argv) {
  int code = kAccepted;
  try {
    code = run_verb(argc, argv);
  } catch (const std::system_error&) {  // fmt's, of a write
    if (std::ferror(stdout) == 0) throw;
  }
  if (std::ferror(stdout) == 0 && std::fflush(stdout) == 0) return code;
  fmt::print(stderr, "muster: standard output cannot be written: {}\n", std::strerror(errno));
  return code == kAccepted ? kFailed : code;
}

}  // namespace muster::cli
