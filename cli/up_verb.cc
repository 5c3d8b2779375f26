// muster up: from a YAML file to an accepted cluster.
#include <fmt/format.h>

#include "base/digest.h"
#include "cli/carry_out.h"
#include "cli/spec_file.h"
#include "cli/verbs.h"
#include "controller/spec/spec.h"

namespace muster::cli {
namespace {

struct UpFlags {
  std::string spec, limit, report = "muster-report";
  Approval approval;
  bool reimage = false, through_ram = false;
};

// Uploads the spec; prints every error with its position.
bool upload(Context& context, const std::string& path) {
  const auto file = read_spec_file(path);
  if (!file.ok()) return complain(context, file.error()), false;
  if (!file->errors.empty()) {
    for (const auto& e : file->errors) fmt::print(stderr, "{}\n", to_string(e, path));
    return complain(context, fail(Code::invalid, fmt::format("{} errors in the playbooks that the spec names",
                                                             file->errors.size()))),
           false;
  }
  Api api(context);
  const auto stored = api.put("/v1/spec?file=" + url_encode(path), file->text);
  if (stored.ok()) {
    if (!context.json && !stored->value("unchanged", false))
      fmt::print("spec revision {}: cluster {}, {} nodes\n", stored->value("revision", 0),
                 stored->value("cluster", ""), stored->value("nodes", 0));
    return true;
  }
  if (!context.json && api.details().is_object())
    for (const Json& e : api.details().value("errors", Json::array()))
      fmt::print(stderr, "{}\n", e.value("text", ""));
  complain(context, stored.error(), api.details());
  return false;
}

void run_up(Context& context, const UpFlags& flags) {
  Goal goal;
  const auto nodes = node_list(flags.limit);
  if (!nodes.ok()) return complain(context, nodes.error());
  goal.nodes = *nodes;
  goal.approval = flags.approval;
  goal.report_dir = flags.report;
  goal.reimage = flags.reimage;
  goal.through_ram = flags.through_ram;
  if (!flags.spec.empty() && !upload(context, flags.spec)) return;
  if (const auto built = build_images(context); !built.ok()) return complain(context, built.error());
  reach(context, goal);
}

}  // namespace

void add_up(Verb& app, Context& context) {
  auto flags = std::make_shared<UpFlags>();
  Verb& verb = app.add_verb("up", "bring the cluster to what SPEC declares, test it, and write a report");
  verb.add_option("SPEC", &flags->spec, "spec file (cluster.yaml); default: the stored revision");
  add_approval(verb, flags->approval, "approve every plan, including the data that it destroys");
  verb.add_option("--limit", &flags->limit, "handle only these nodes, e.g. gpu[01-04],gpu07");
  verb.add_flag("--reimage", &flags->reimage,
                "also re-image accepted nodes that run an older build of their image; each is drained first");
  verb.add_flag("--through-ram", &flags->through_ram, "re-image through the RAM system, not in place")
      .needs("--reimage");
  verb.add_option("--report", &flags->report, "folder for report.html, report.json, junit.xml")
      .check(wrong_report_folder)
      .shows_default();
  verb.example("muster up cluster.yaml").example("muster up cluster.yaml --yes --report /srv/www/acceptance");
  verb.example("muster up --limit gpu03").example("muster up --reimage --limit gpu[01-04]");
  verb.footer(
      "Exit: 0 accepted, 1 failed, 2 invalid input, 3 some nodes quarantined or returned, 4 refused or not "
      "approved, 5 degraded");
  verb.runs([flags, &context] { run_up(context, *flags); });
}

}  // namespace muster::cli
