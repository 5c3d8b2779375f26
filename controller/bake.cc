#include "controller/bake.h"

#include <fmt/format.h>

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

void bake_units(const Json& params, ImageRequest& request) {
  const auto units = names_of(params, "name", "names");
  const auto add = [&](const char* verb) {
    std::vector<std::string> argv = {"systemctl", verb};
    argv.insert(argv.end(), units.begin(), units.end());
    request.run.push_back(std::move(argv));
  };
  if (params.contains("masked")) add(params.value("masked", false) ? "mask" : "unmask");
  if (params.contains("enabled")) add(params.value("enabled", false) ? "enable" : "disable");
}

Status bake_step(const PlaybookStep& step, ImageRequest& request) {
  if (step.params.dump().find("{{") != std::string::npos || !step.when.empty() || !step.for_each.empty())
    return fail(Code::invalid, "a step of phase image cannot depend on a node");
  if (step.module == "package") {
    for (auto& name : names_of(step.params, "name", "names")) request.packages.push_back(std::move(name));
  } else if (step.module == "file") {
    RecipeFile file;
    file.path = step.params.value("path", "");
    file.content = step.params.value("content", "");
    const std::string mode = step.params.value("mode", "0644");
    file.mode = static_cast<unsigned>(std::strtoul(mode.c_str(), nullptr, 8));
    request.files.push_back(std::move(file));
  } else if (step.module == "service") {
    bake_units(step.params, request);
  } else {
    return fail(Code::invalid, fmt::format("module {} cannot be baked into an image", step.module));
  }
  return Ok{};
}

}  // namespace

Status bake(const ImageSpec& image, const std::map<std::string, Playbook>& playbooks, ImageRequest& request) {
  for (const auto& name : image.bake) {
    const auto found = playbooks.find(name);
    if (found == playbooks.end())
      return fail(Code::invalid, fmt::format("image {} bakes playbook {}, which does not exist", image.name, name));
    for (const auto& step : found->second.steps) {
      if (step.phase != "image") continue;
      auto baked = bake_step(step, request);
      if (!baked.ok()) return std::move(baked).error().with(fmt::format("image {}: {}/{}", image.name, name, step.name));
    }
  }
  return Ok{};
}

}  // namespace muster
