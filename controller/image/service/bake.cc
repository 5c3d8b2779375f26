#include "controller/image/service/bake.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/json_dump.h"
#include "base/release_key.h"
#include "base/wire.h"

namespace muster {
namespace {

std::vector<std::string> names_of(const Json& params, const char* one, const char* many) {
  std::vector<std::string> names;
  const Json list = params.value(many, Json::array());
  for (const auto& name : list)
    if (name.is_string()) names.push_back(name.get<std::string>());
  if (params.contains(one) && params[one].is_string()) names.push_back(params[one].get<std::string>());
  return names;
}

std::vector<std::vector<std::string>> unit_commands(const Json& params) {
  const auto units = names_of(params, "name", "names");
  std::vector<std::vector<std::string>> out;
  const auto add = [&](const char* verb) {
    out.push_back({"systemctl", verb});
    out.back().insert(out.back().end(), units.begin(), units.end());
  };
  if (params.contains("masked")) add(params.value("masked", false) ? "mask" : "unmask");
  if (params.contains("enabled")) add(params.value("enabled", false) ? "enable" : "disable");
  return out;
}

// The names that steps of phase image may use.
Json context_of(const Playbook& playbook, const BakeInputs& in) {
  Json vars = in.vars;
  for (const auto& group : playbook.optional_vars)
    for (const auto& name : group) vars.emplace(name, "");
  return {{"vars", std::move(vars)}};
}

// Empty if the step's `when` is false.
Result<std::optional<PlaybookStep>> rendered(PlaybookStep step, const Json& context) {
  const auto put_in = [&](Json& value) -> Status {
    if (dump_json(value).find("{{") == std::string::npos) return Ok{};
    TRY(value, render_params(value, context));
    return Ok{};
  };
  Json when = step.when;
  Status done = step.for_each.empty() ? put_in(when) : fail(Code::invalid, "'for_each' is not allowed");
  if (done.ok() && !step.when.empty() && !is_true(when)) return std::optional<PlaybookStep>();
  if (done.ok()) done = put_in(step.params);
  if (done.ok()) done = put_in(step.verify);
  if (done.ok()) TRY_(check_image_step({step.params, step.verify}));
  if (!done.ok())
    return fail(Code::invalid,
                fmt::format("a step of phase image can use the spec's 'vars', but not node values: {}",
                            done.error().message));
  return std::optional(std::move(step));
}

// True if the packages depend on what the archives have, on files, or on the kernel in the tree.
bool needs_a_tree(const Json& params) {
  for (const char* key : {"hold", "locked", "if_offered", "files"})
    if (params.contains(key)) return true;
  const auto names = names_of(params, "name", "names");
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.find_first_of("|{") != std::string::npos; });
}

// True if the step can go into the recipe's own tree without running any program of muster in it.
bool is_simple(const PlaybookStep& step) {
  if (!step.verify.is_null()) return false;
  if (step.module == "package") return !needs_a_tree(step.params);
  return step.module == "file" || step.module == "service";
}

Status bake_packages(const Json& params, const OsRelease& system, std::vector<std::string>& packages) {
  for (auto& name : names_of(params, "name", "names")) packages.push_back(std::move(name));
  const Json also = params.value("also", Json::object());
  for (const auto& [key, list] : also.items()) {
    TRY(const bool here, means_system(key, system));
    for (auto& name : here ? names_of(also, "", key.c_str()) : std::vector<std::string>())
      packages.push_back(std::move(name));
  }
  return Ok{};
}

Status bake_simple(const PlaybookStep& step, const OsRelease& system, ImageRequest& request) {
  if (step.module == "package") {
    TRY_(bake_packages(step.params, system, request.packages));
  } else if (step.module == "file") {
    RecipeFile file;
    file.path = step.params.value("path", "");
    file.content = step.params.value("content", "");
    const std::string mode = step.params.value("mode", "0644");
    file.mode = static_cast<unsigned>(std::strtoul(mode.c_str(), nullptr, 8));
    request.files.push_back(std::move(file));
  } else {
    for (auto& command : unit_commands(step.params)) request.run.push_back(std::move(command));
  }
  return Ok{};
}

// In a chroot there is no systemd: units are enabled and masked when all layers are complete.
void bake_into_layer(const PlaybookStep& step, const std::string& playbook, ImageLayer& layer) {
  if (step.module == "service") {
    for (auto& command : unit_commands(step.params)) layer.units.push_back(std::move(command));
    return;
  }
  wire::Step out;
  out.id = playbook + "/" + step.name;
  out.module = step.module;
  out.params = step.params;
  out.phase = step.phase;
  out.verify = step.verify;
  layer.steps.push_back(wire::to_json(out));
}

Status bake_playbook(const Playbook& playbook, const BakeInputs& in, ImageRequest& request) {
  if (const auto why = why_not_on(playbook.only_for, find_distribution(in.system.id)); !why.empty())
    return fail(Code::invalid, "it " + why);
  const Json context = context_of(playbook, in);
  std::vector<PlaybookStep> steps;
  bool simple = true;
  for (const auto& step : playbook.steps) {
    if (step.phase != "image") continue;
    auto own = rendered(step, context);
    if (!own.ok()) return std::move(own).error().with(step.name);
    if (!own->has_value()) continue;
    simple = simple && is_simple(**own);
    steps.push_back(std::move(**own));
  }
  ImageLayer layer{playbook.name};
  for (const auto& step : steps)
    if (!simple)
      bake_into_layer(step, playbook.name, layer);
    else if (Status done = bake_simple(step, in.system, request); !done.ok())
      return std::move(done).error().with(step.name);
  if (!simple) request.layers.push_back(std::move(layer));
  return Ok{};
}

}  // namespace

Status bake(const ImageSpec& image, const std::map<std::string, Playbook>& playbooks, const BakeInputs& in,
            ImageRequest& request) {
  for (const auto& name : image.bake) {
    const auto found = playbooks.find(name);
    if (found == playbooks.end())
      return fail(Code::invalid,
                  fmt::format("image {} bakes playbook {}, which does not exist", image.name, name));
    if (auto baked = bake_playbook(found->second, in, request); !baked.ok())
      return std::move(baked).error().with(fmt::format("image {}: {}", image.name, name));
  }
  return Ok{};
}

}  // namespace muster
