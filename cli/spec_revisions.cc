// muster spec diff, history, rollback: a file against the stored spec, and the revisions before it.
#include "cli/spec_revisions.h"

#include <fmt/format.h>

#include "base/json_at.h"
#include "base/time.h"
#include "base/unified_diff.h"
#include "cli/spec_request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

struct RevisionFlags {
  std::string file;
  int64_t revision = 0;
  bool yes = false;
};

std::string revision_name(const Json& spec) {
  return fmt::format("revision {}", integer_at(spec, "revision"));
}

void diff_file(Context& context, const RevisionFlags& flags) {
  const auto text = spec_to_send(context, flags.file);
  if (!text) return;
  const auto stored = Api(context).get(fmt::format("/v1/spec?rev={}", flags.revision));
  if (!stored.ok()) return complain(context, stored.error());
  const std::string diff = unified_diff(text_at(*stored, "text"), *text, revision_name(*stored), flags.file);
  show(context, {{"revision", integer_at(*stored, "revision")}, {"unchanged", diff.empty()}, {"diff", diff}},
       [&] {
         if (diff.empty()) fmt::print("{} is {}\n", flags.file, revision_name(*stored));
         fmt::print("{}", clean_lines(diff));
       });
}

void list_history(Context& context) {
  const auto specs = Api(context).get("/v1/specs");
  if (!specs.ok()) return complain(context, specs.error());
  show(context, *specs, [&] {
    const Json list = specs->value("specs", Json::array());
    if (list.empty()) fmt::print("no spec yet: `muster up SPEC`\n");
    for (const Json& spec : list) {
      const std::string note = clean_at(spec, "note");
      fmt::print("{:<6} {}{}\n", spec.value("revision", int64_t{0}), stored_by(spec),
                 note.empty() ? "" : ": " + note);
    }
  });
}

// The old text becomes a new revision, so that the history stays whole.
void roll_back_spec(Context& context, const RevisionFlags& flags) {
  const auto old = Api(context).get(fmt::format("/v1/spec?rev={}", flags.revision));
  if (!old.ok()) return complain(context, old.error());
  PreviewRequest request;
  request.spec = text_at(*old, "text");
  request.file = revision_name(*old);
  const auto preview = request_preview(context, request);
  if (!preview) return;
  if (is_true_at(*preview, "unchanged")) {
    return show(context, {{"unchanged", true}, {"revision", integer_at(*preview, "revision")}}, [&] {
      fmt::print("revision {} is stored and has the text of {}\n", integer_at(*preview, "revision"),
                 request.file);
    });
  }
  if (!context.json) show_preview(context, *preview);
  context.exit = kAccepted;
  const auto coming = integer_at(*preview, "coming");
  if (const auto agreed =
          confirmed(context, flags.yes, fmt::format("Store {} again, as revision {}?", request.file, coming));
      !agreed.ok())
    return complain(context, agreed.error());
  const auto stored = store_spec(context, request, *preview, "back to " + request.file);
  if (!stored) return;
  show(context, {{"unchanged", false}, {"revision", *stored}, {"of", flags.revision}},
       [] { fmt::print("the nodes are as they were: `muster up` brings them to this spec\n"); });
}

}  // namespace

std::string stored_by(const Json& spec) {
  const std::string caller = clean_at(spec, "caller");
  return fmt::format("stored {}{}", to_iso8601(spec.value("time", int64_t{0})),
                     caller.empty() ? "" : " by " + caller);
}

void add_spec_revisions(Verb& spec, Context& context) {
  auto flags = std::make_shared<RevisionFlags>();
  Verb& diff = spec.add_verb("diff", "show how a file differs from the stored spec; stores nothing");
  diff.add_option("SPEC", &flags->file, "spec file (cluster.yaml)").required();
  diff.add_option("--rev", &flags->revision, "compare with this revision; default: the newest");
  diff.example("muster spec diff cluster.yaml");
  diff.runs([flags, &context] { diff_file(context, *flags); });
  spec.add_verb("history", "list the stored revisions, with time, user and note")
      .example("muster spec history")
      .runs([&context] { list_history(context); });
  Verb& rollback = spec.add_verb(
      "rollback", "store an earlier revision again, as the newest; no node is touched before `muster up`");
  rollback.add_option("REVISION", &flags->revision, "its number in `muster spec history`")
      .required()
      .positive();
  rollback.add_flag("--yes,-y", &flags->yes, "store it without a prompt");
  rollback.footer(
      "Storing takes effect on the controller at once: DHCP answers for the machines of that spec, limits of "
      "events apply, and records of provider installs that it does not have are deleted.");
  rollback.example("muster spec rollback 7");
  rollback.runs([flags, &context] { roll_back_spec(context, *flags); });
}

}  // namespace muster::cli
