// Steps shared by the verbs that change a cluster: plan, show, approve, follow, report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cli_context.h"

namespace muster {
class Verb;
}

namespace muster::cli {

struct Approval {
  bool yes = false;    // approve every plan
  std::string digest;  // approve exactly this plan (a prefix of 8 digits is enough)
};

// Adds --yes and --approve to a verb. `approval` must live as long as the app.
void add_approval(Verb& verb, Approval& approval,
                  const std::string& what = "approve the plan without a prompt");

struct Goal {
  std::string kind = "auto";            // auto | reimage | accept | ...: what POST /v1/plan takes
  std::vector<std::string> nodes = {};  // empty: all
  std::string profile = {};             // accept: an acceptance profile that replaces the spec's
  std::vector<std::string> force = {};  // nodes to include even if nothing changed
  bool through_ram = false;             // reimage: not in place
  bool reimage = false;                 // auto: also accepted nodes that run an older build of their image
  Approval approval = {};
  std::string agreed = {};                   // digest of a plan that was already shown and approved
  std::string report_dir = "muster-report";  // "": no report
};

// Plans and carries out until nothing is left to do (discover, then install); each plan is approved
// separately. Writes the report and sets the exit code.
void reach(Context& context, const Goal& goal);
struct ImageOrder {
  std::string name = {};  // empty: all that the spec needs
  bool rebuild = false;
  std::vector<std::string> bake = {};  // playbooks to bake, if the image is not in the spec
  std::string recipe = {};
};
// The spec's images that are missing or whose inputs changed (`rebuild`: all), or only the named image.
Status build_images(Context& context, const ImageOrder& order = {});
// Runs POST /v1/images/VERB (build, import, export) to its end and shows its progress as that of `name`.
Status image_job(Context& context, const std::string& verb, const std::string& name, const Json& body,
                 bool explicitly = true);
// What is wrong with the value of --report, for Argument::check: known before hours of work, not after.
std::string wrong_report_folder(const std::string& given);
// Writes report.html, report.json, junit.xml and nodes.jsonl; returns the folder's absolute path.
Result<std::string> write_report(Context& context, int64_t run, const std::string& folder);
// True if the approval names this digest, in full or by its beginning.
bool names_digest(const Approval& approval, const std::string& digest);
// Ok when `planned` is approved: by flag, by its digest, or by the answer on a terminal. denied otherwise.
Status approve(const Context& context, const Approval& approval, const Json& planned,
               const std::string& question = "Carry out this plan?");
// With the full plan for a script, else without actions: hundreds of megabytes for a large cluster.
const char* plan_route(const Context& context);
// False without a terminal.
bool confirm_prompt(const std::string& question);
// Ok with `yes`, or if the question is answered with it on a terminal. denied: it was not; invalid: there is
// no terminal, or --json.
Status confirmed(const Context& context, bool yes, const std::string& question);
// Prints that there is nothing to do, and sets the exit code.
void nothing_to_do(Context& context, const Json& planned, bool missing);
void print_plan(const Json& planned);

}  // namespace muster::cli
