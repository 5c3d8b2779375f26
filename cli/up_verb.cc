// muster up: from a YAML file to an accepted cluster.
#include "base/json_at.h"
#include "cli/carry_out.h"
#include "cli/spec_request.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

struct UpFlags {
  std::string spec, limit, report = "muster-report";
  Approval approval;
  bool reimage = false, through_ram = false, dry_run = false;
};

// What would change is shown and approved before a spec is stored or an image is built.
void run_up(Context& context, const UpFlags& flags) {
  Goal goal;
  const auto nodes = node_list(flags.limit);
  if (!nodes.ok()) return complain(context, nodes.error());
  goal.nodes = *nodes;
  goal.approval = flags.approval;
  goal.report_dir = flags.report;
  goal.reimage = flags.reimage;
  goal.through_ram = flags.through_ram;
  PreviewRequest request;
  request.file = flags.spec;
  request.nodes = *nodes;
  request.reimage = flags.reimage;
  request.through_ram = flags.through_ram;
  if (!flags.spec.empty()) {
    const auto text = spec_to_send(context, flags.spec);
    if (!text) return;
    request.spec = *text;
  }
  const auto preview = request_preview(context, request);
  if (!preview) return;
  if (flags.dry_run) return show_preview(context, *preview);
  const bool prepares = needs_preparation(*preview);
  if (prepares) {
    if (!context.json) show_preview(context, *preview);
    if (const std::string why = why_up_would_stop(*preview); !why.empty())
      return complain(context, fail(Code::denied, "nothing was stored or built: " + why), *preview);
    context.exit = kAccepted;
    if (const auto approved = approve(context, flags.approval, *preview, question_about(*preview));
        !approved.ok())
      return complain(context, approved.error(), *preview);
    if (!flags.spec.empty() && !store_spec(context, request, *preview)) return;
    if (const auto built = build_images(context); !built.ok()) return complain(context, built.error());
  }
  // The approval is used up: the preview's first plan needs no second one, and any other plan its own.
  if (prepares || names_digest(flags.approval, text_at(*preview, "digest"))) {
    goal.agreed = text_at(*preview, "first_plan");
    goal.approval.digest.clear();
  }
  reach(context, goal);
}

}  // namespace

void add_up(Verb& app, Context& context) {
  auto flags = std::make_shared<UpFlags>();
  Verb& verb = app.add_verb("up", "bring the cluster to what SPEC declares, test it, and write a report");
  verb.add_option("SPEC", &flags->spec, "spec file (cluster.yaml); default: the stored revision");
  add_approval(verb, flags->approval, "approve every plan, including the data that it destroys");
  verb.add_flag("--dry-run", &flags->dry_run,
                "only show what would change; store, build and request nothing of nodes");
  verb.add_option("--limit", &flags->limit, "handle only these nodes, e.g. gpu[01-04],gpu07")
      .check(wrong_list);
  verb.add_flag("--reimage", &flags->reimage,
                "also re-image accepted nodes that run an older build of their image; each is drained first");
  verb.add_flag("--through-ram", &flags->through_ram, "re-image through the RAM system, not in place")
      .needs("--reimage");
  verb.add_option("--report", &flags->report, "folder for report.html, report.json, junit.xml")
      .check(wrong_report_folder)
      .shows_default();
  verb.example("muster up cluster.yaml").example("muster up cluster.yaml --yes --report /srv/www/acceptance");
  verb.example("muster up cluster.yaml --dry-run");
  verb.example("muster up --limit gpu03").example("muster up --reimage --limit gpu[01-04]");
  verb.footer(
      "Nothing is stored or built if a node is refused, cannot be planned, or has an image that cannot be "
      "built; nodes that a plan leaves out do not stop the others. With SPEC, --approve takes `digest` of "
      "`muster plan SPEC --json`, which covers the text, the images and the plans; a plan that was not known "
      "then, because images had to be built or nodes discovered, has a digest of its own.\n"
      "Exit: 0 accepted, 1 failed, 2 invalid input, 3 some nodes quarantined or returned, 4 refused or not "
      "approved, 5 degraded");
  verb.runs([flags, &context] { run_up(context, *flags); });
}

}  // namespace muster::cli
