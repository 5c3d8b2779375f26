// Playbook: an ordered list of steps, as read from playbooks/<name>.yaml. Pure functions, no I/O.
//
//   playbook: storage-local
//   help: RAID0 + XFS over the local data drives
//   not_exercised: why               # what was never run for real, or why: every plan that uses the
//                                    playbook says so
//   distribution: debian             # only for systems of this one (base/distribution.h); default: all
//   elsewhere: use gpu-ubuntu        # what to do on others: the end of a sentence
//   optional_vars:                   # variables of the spec that may be left out: then the empty text.
//     - enroot_url enroot_sha256     # Those of one line are set together
//   overlay: true                    # only in a spec's own playbooks: changes the shipped one of this name
//   replaces: [ slurm.conf ]         # its steps that take the place of shipped ones with the same name
//   removes: [ job container ]       # shipped steps that are left out; its other steps are appended
//   steps:
//     - name: scratch array
//       phase: node                 # image | node | cluster | drain | undrain | pause | resume
//                                   # pause: before a working node leaves its system for a re-image or a
//                                   # rollback, in reverse order of playbooks; resume: once it is accepted
//                                   # in the new system, or has returned to the old one
//       when: "{{#scratch}}yes{{/scratch}}"   # rendered by the planner (in an image, by its build, over the
//                                   # spec's `vars` only); empty, "no", "false" and "0" mean no
//       for_each: storage_local     # a list in the planner's context; the element is {{item.*}}
//       otherwise: no local storage # if the list is empty, the step is in the plan as
//                                   # "not applicable: no local storage"; without for_each if `when` means
//                                   # no; a template, as `when` is
//       module: raid
//       params: { name: "{{item.name}}" }   # every string is a mustache template without HTML escaping
//       verify: { module: mount, params: {...} }
//       stage: 2                    # cluster phase only: all nodes finish stage n before any starts n+1
//       on: leader                  # cluster phase only: all (default) | leader | others; each
//                                   # storage section has its own leader
//       among: mpi                  # the step is about those nodes that also have this playbook; if none
//                                   # has it or `when` is false, `otherwise` applies. `group`: about all
//                                   # nodes of the plan that are measured; module accept_group only, one
//                                   # such step in a stage
//       mandatory: true             # or false, or a list of its mandatory parts: [run, data, ceilings]
//       needs: [root]               # if the agent lacks it, the step is "not looked at": not a pass, but
//                                   # no fault of the node either. An ordinary user's agent lacks root
//       expect: { gflops: { min: 0.5, unit: GFLOP/s, fleet_min_ratio: 0.5 } }
//                                   # acceptance profiles only, judged by the controller
//
// Acceptance profiles (playbooks/acceptance/<profile>.yaml) are playbooks whose modules measure.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "controller/spec/only_for.h"
#include "controller/spec/spec.h"
#include "controller/spec/variables.h"
#include "controller/spec/yaml.h"

namespace muster {

// For a step over all measured nodes: one of them leads it, and the planner makes the other nodes serve it.
inline constexpr const char* kGroup = "group";
inline constexpr const char* kGroupModule = "accept_group";

struct PlaybookStep {
  std::string name, phase = "node", module, when, for_each, otherwise, on = "all", among = "";
  Json params = Json::object();
  Json verify;  // null or {module, params}
  Json expect;  // null or {metric: {min?, max?, fleet_min_ratio?, unit}}
  int stage = 1;
  bool mandatory = true;  // a failure of any of its parts stops a node
  // What stops a node even if `mandatory` is false: `run` (not measured), `data` (wrong data), `ceilings`.
  std::vector<std::string> blocks = {};
  std::vector<std::string> needs = {};  // what the agent needs for it: "root"
  int line = 0, column = 0;
};
// The name of a shipped step, as listed in an overlay, and its place in the file.
struct NamedStep {
  std::string name;
  int line = 0, column = 0;
};
struct Playbook {
  std::string name, help;
  std::vector<PlaybookStep> steps;
  std::string not_exercised = "";
  bool overlay = false;
  std::vector<NamedStep> replaces = {}, removes = {};
  std::string origin = "";  // where a playbook that is not shipped comes from, for plans; empty: shipped
  OnlyFor only_for = {};
  VarGroups optional_vars = {};
};
// Renders every string in `value` as mustache over `context`. A whole-string "{{{name}}}" or "{{name}}" whose
// context value is not a string keeps its type (list, number, bool, object); as an element of a list, the
// name of a list stands for its elements. An unknown variable is an error that names it.
Result<Json> render_params(const Json& value, const Json& context);

// What a rendered `when` means: false for empty, "no", "false" and "0".
bool is_true(const Json& value);

// Returns the value of a name, "node.address"; null if unknown. Valid until the template has been rendered.
using FindName = std::function<const Json*(const std::string& name)>;

// Renders as render_params() does. Each template is parsed once, however often it is rendered.
class Templates {
 public:
  Templates();
  ~Templates();
  Templates(const Templates&) = delete;
  Templates& operator=(const Templates&) = delete;

  Result<Json> render(const Json& value, const FindName& find);

 private:
  struct Template;
  Result<Json> list(const Json& items, const FindName& find);
  Result<Json> text(const std::string& source, const FindName& find);

  std::map<std::string, std::unique_ptr<Template>> read_;  // by its source text
};

// Returns the names in all templates of the value: everything that its rendering depends on.
std::set<std::string> names_in(const Json& value);
// Returns the name for a text that is exactly "{{name}}" or "{{{name}}}"; else "".
std::string whole_name(const std::string& text);
const Json* find_name(const Json& object, const std::string& dotted);

// The agent's step modules and their parameters, for rejecting a playbook with an unknown one before anything
// runs. schema/modules.json is generated from the agent; a test compares the two.

struct ModuleParameter {
  std::string type;  // string | int | number | bool | list | object | any
  bool required = false;
  bool secret = false;  // its value may have secrets; else programs' arguments or other users could show them
};
const std::map<std::string, std::map<std::string, ModuleParameter>>& module_list();

// Why this parameter of a module must not have this value, which refers to a secret; "" if it may.
std::string why_no_secret(const std::string& module, const std::string& parameter, const Json& value);
// The same for all parameters of a rendered call. Code::invalid.
Status check_secrets(const std::string& module, const Json& params);
// invalid: this part of a step of phase image refers to a secret, and images are public.
Status check_image_step(const Json& part);

// Checks the call of a step (or of its `verify`): the module exists, and its parameters are known, complete,
// and of the right type unless they contain a {{variable}}. Errors give the place of the mistake.
void check_module_call(const YamlNode& step, const std::string& path, std::vector<SpecError>& errors);

namespace embedded {  // generated at build time from schema/modules.json
extern const char* const modules;
}  // namespace embedded

}  // namespace muster
