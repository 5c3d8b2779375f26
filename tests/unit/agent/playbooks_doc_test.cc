// docs/playbooks.md is made from what the modules and playbooks say of themselves, and is the same as what
// they say now. Regenerate it: MUSTER_ACCEPT=1 build/muster_tests "docs/playbooks.md*"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "agent/core/step.h"
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

const std::string kRoot = source_dir();

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}
std::string code(const std::string& text) { return text.empty() ? "" : "`" + one_line(text) + "`"; }

std::string module_text(const StepModule& module) {
  std::string out = fmt::format("### {}\n{}\n\n", module.name, module.help);
  if (module.measure)
    out += "Measures.\n\n";
  else if (!module.apply)
    out += "A pure test: it changes nothing.\n\n";
  for (const auto& p : module.parameters) {
    const bool required = p.value("required", false);
    const std::string fallback = p.contains("default") ? p["default"].dump() : "";
    out += fmt::format("- `{}` ({}{}{}): {}\n", p.value("name", ""), p.value("type", "any"),
                       required                                 ? ", required"
                       : fallback.empty() || fallback == "\"\"" ? ""
                                                                : ", " + code(fallback),
                       p.value("secret", false) ? ", may be a secret" : "", one_line(p.value("help", "")));
  }
  return module.parameters.empty() ? out : out + "\n";
}

std::string condition(const PlaybookStep& step) {
  std::string out;
  if (!step.for_each.empty()) out += "for each of " + code(step.for_each);
  const std::string otherwise =
      step.otherwise.empty() ? "" : fmt::format(" (else: not applicable, {})", one_line(step.otherwise));
  if (!step.for_each.empty()) out += otherwise;
  if (!step.when.empty()) out += (out.empty() ? "" : ", ") + std::string("when ") + code(step.when);
  if (step.phase == "cluster" && step.stage > 1)
    out += (out.empty() ? "" : ", ") + fmt::format("stage {}", step.stage);
  if (step.on != "all") out += (out.empty() ? "" : ", ") + ("on " + step.on);
  if (!step.among.empty()) out += (out.empty() ? "" : ", ") + ("among those with `" + step.among + "`");
  if (step.for_each.empty()) out += otherwise;
  if (!step.needs.empty())
    out += (out.empty() ? "" : ", ") + fmt::format("needs {}", fmt::join(step.needs, ", "));
  if (!step.blocks.empty())
    out += (out.empty() ? "" : ", ") + fmt::format("stops a node: {}", fmt::join(step.blocks, ", "));
  else if (!step.mandatory)
    out += (out.empty() ? "" : ", ") + std::string("optional");
  return out;
}

std::string only_for(const Playbook& playbook) {
  const auto& [distribution, elsewhere] = playbook.only_for;
  if (distribution.empty()) return "";
  return fmt::format("For `{}` only{}.\n\n", distribution,
                     elsewhere.empty() ? "" : "; elsewhere: " + elsewhere);
}

// Acceptance profiles repeat one another's steps, and docs/acceptance.md has what they measure.
std::string playbook_text(const Playbook& playbook, const std::string& file) {
  std::string out = fmt::format("### {}\n{} (`{}`)\n\n", playbook.name, one_line(playbook.help), file);
  if (file.starts_with("playbooks/acceptance/")) return out;
  out += only_for(playbook);
  for (const auto& step : playbook.steps) {
    const std::string verify =
        step.verify.is_object() ? ", then `" + step.verify.value("module", "") + "`" : "";
    const std::string when = condition(step);
    out += fmt::format("- {} ({}): `{}`{}{}\n", one_line(step.name), step.phase, step.module, verify,
                       when.empty() ? "" : "; " + when);
  }
  return out + "\n";
}

std::string document() {
  std::string out =
      "# Playbooks and step modules\n\n"
      "Generated from the modules and playbooks themselves; a test keeps it so. What a playbook may name in "
      "its templates is in\n"
      "[playbook-context.md](playbook-context.md); every string is a template, so the module `file` is the "
      "template module too.\n\n"
      "A module that measures is judged by the acceptance profile's `expect`. A step is checked first, "
      "applied only where it does not hold, and verified. Steps of phase `image` "
      "are baked into an image,\n"
      "and only checked on nodes; `node` steps need the node; `cluster` steps wait for all nodes, stage by "
      "stage.\n"
      "What is optional is reported and stops nothing. `stops a node` names what of an acceptance step does "
      "so, "
      "when it is not all\n"
      "of it: `run` (it could not run), `data` (it failed, or a result was wrong), `ceilings` (a metric "
      "above its `max`, or a count above its `degraded_above`).\n\n"
      "## Playbooks\n\n";
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot + "/playbooks"))
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths)
    out += playbook_text(parse_playbook(read(path.string())).playbook, fs::relative(path, kRoot).string());
  out += "## Step modules\n\n";
  std::vector<const StepModule*> modules;
  for (const auto& module : step_modules()) modules.push_back(&module);
  std::sort(modules.begin(), modules.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const auto* module : modules) out += module_text(*module);
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

TEST_CASE("docs/playbooks.md says what the modules and playbooks say") {
  const std::string path = kRoot + "/docs/playbooks.md", now = document();
  if (std::getenv("MUSTER_ACCEPT")) std::ofstream(path, std::ios::binary) << now;
  const std::string written = read(path);
  const auto mismatch = std::mismatch(now.begin(), now.end(), written.begin(), written.end());
  INFO("from here on: " << now.substr(static_cast<size_t>(mismatch.first - now.begin()), 200));
  INFO("regenerate it with MUSTER_ACCEPT=1");
  CHECK(now == written);
}

TEST_CASE("docs/playbooks.md: no step that stops a node is called optional") {
  PlaybookStep step;
  step.mandatory = false;
  CHECK(condition(step) == "optional");
  step.blocks = {"run", "data"};
  CHECK(condition(step) == "stops a node: run, data");
}

TEST_CASE("docs/playbooks.md: every parameter of every module is explained") {
  for (const auto& module : step_modules())
    for (const auto& p : module.parameters) {
      INFO(module.name << "." << p.value("name", ""));
      CHECK(!p.value("help", "").empty());
    }
}

}  // namespace
}  // namespace muster
