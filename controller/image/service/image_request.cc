#include "controller/image/service/image_request.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/distribution.h"
#include "controller/image/package_sources.h"
#include "controller/image/recipe.h"
#include "controller/image/service/bake.h"

namespace muster {

Result<ImageRequest> image_request(const DaemonOptions& options, const Spec* spec,
                                   const std::map<std::string, Playbook>& playbooks,
                                   const BuildOrder& order) {
  if (options.images.empty())
    return fail(Code::not_found, "no image recipes found: start musterd with --images DIR");
  ImageRequest request;
  request.name = order.name;
  request.state_dir = options.state;
  request.rebuild = order.rebuild;
  request.shared_cache = options.image_cache;
  request.agent = options.agent_binary;
  ImageSpec image;
  if (spec && spec->images.count(order.name)) {
    image = spec->images.at(order.name);
    if (!order.bake.empty() || !order.recipe.empty())
      return fail(Code::conflict, "the spec declares the image " + order.name +
                                      ": change it in the spec or choose another name");
  } else {
    image.name = order.name;
    image.bake = order.bake;
    image.recipe = order.recipe;
    const bool own =
        order.bake.empty() || std::filesystem::exists(options.images + "/" + order.name + ".yaml");
    if (image.recipe.empty()) image.recipe = own ? order.name : default_recipe();
  }
  request.variant = image.kernel;
  const std::string path = options.images + "/" + image.recipe + ".yaml";
  if (!std::filesystem::exists(path))
    return fail(Code::not_found, fmt::format("no image {} in the spec, and no recipe {} in {}", order.name,
                                             image.recipe, options.images));
  TRY(request.recipe, load_recipe(std::filesystem::absolute(options.images).string(), image.recipe));
  if (spec) use_mirror(request.recipe, spec->network.apt_of(request.recipe.distribution));
  BakeInputs in;
  in.system.codename = request.recipe.suite;
  in.system.id = request.recipe.distribution;
  if (spec) in.vars = spec->vars;
  TRY_(bake(image, playbooks, in, request));
  return request;
}

std::vector<DueImage> due_images(const DaemonOptions& options, const Spec& spec,
                                 const std::map<std::string, Playbook>& playbooks,
                                 const std::set<std::string>& images) {
  std::vector<DueImage> out;
  for (const auto& name : images) {
    auto request = image_request(options, &spec, playbooks, {name});
    const auto why = request.ok() ? why_build(*request) : Result<std::string>(request.error());
    if (!why.ok())
      out.push_back({name, "", why.error().message});
    else if (!why->empty())
      out.push_back({name, *why, "", std::move(request).value()});
  }
  return out;
}

}  // namespace muster
