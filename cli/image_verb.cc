// muster image: builds, lists, imports and exports the images of nodes.
#include <fmt/format.h>

#include <filesystem>

#include "base/distribution.h"
#include "cli/carry_out.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

void list_images(Context& context) {
  const auto images = Api(context).get("/v1/images");
  if (!images.ok()) return complain(context, images.error());
  show(context, *images, [&] {
    const Json list = images->value("images", Json::array());
    if (list.empty()) return fmt::print("no images yet: `muster up SPEC` builds those that the spec needs\n");
    fmt::print("{:<16} {:<10} {:<8} {:<28} {}\n", "IMAGE", "STORED", "NEEDED", "SYSTEM", "DIGEST");
    for (const Json& i : list)
      fmt::print("{:<16} {:<10} {:<8} {:<28} {}\n", i.value("name", ""),
                 i.value("built", false) ? human_bytes(i.value("stored_bytes", 0.0)) : "not built",
                 i.value("needed", false) ? "yes" : "no", i.value("os", ""), i.value("digest", ""));
  });
}

// The controller opens these paths, so they must not be relative to this process's working directory.
std::string absolute_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

void import_from(Context& context, const std::string& path) {
  const auto done = image_job(context, "import", path, {{"path", absolute_path(path)}});
  if (!done.ok()) return complain(context, done.error());
  if (context.json) list_images(context);
}

void export_to(Context& context, const std::string& name, const std::string& path) {
  const std::string file = absolute_path(path);
  const auto done = image_job(context, "export", name, {{"name", name}, {"path", file}});
  if (!done.ok()) return complain(context, done.error());
  show(context, {{"name", name}, {"path", file}}, [&] { fmt::print("{}\n", file); });
}

void add_transfer(Verb& verb, Context& context) {
  auto from = std::make_shared<std::string>();
  Verb& in = verb.add_verb("import",
                           "import an image that another controller exported, after verifying it completely");
  in.add_option("FILE|DIR", from.get(),
                "the exported file, or the folder that it was unpacked into, on the controller host")
      .required();
  in.example("muster image import /srv/gpu.image");
  in.runs([from, &context] { import_from(context, *from); });
  auto name = std::make_shared<std::string>();
  auto to = std::make_shared<std::string>();
  Verb& out =
      verb.add_verb("export", "export an image to one file, for `muster image import` on another controller");
  out.add_option("NAME", name.get()).required();
  out.add_option("FILE", to.get(), "file to create on the controller host; must not exist yet").required();
  out.example("muster image export gpu /srv/gpu.image");
  out.runs([name, to, &context] { export_to(context, *name, *to); });
}

}  // namespace

void add_image(Verb& app, Context& context) {
  Verb& verb = app.add_verb("image", "manage operating system images");
  verb.needs_verb();
  verb.add_verb("list", "list the images that are built, and those that the spec needs")
      .example("muster image list")
      .runs([&context] { list_images(context); });
  auto order = std::make_shared<ImageOrder>();
  Verb& build =
      verb.add_verb("build", "build an image from its recipe; default: all images that the spec needs");
  build.add_option("NAME", &order->name,
                   "a name from the spec's `images`, or a recipe's name such as " + default_recipe());
  build.add_flag("--rebuild", &order->rebuild,
                 "build even if nothing changed, for example to get new package versions");
  build.add_option("--bake", &order->bake, "playbooks to bake into an image that is not in the spec")
      .separated_by(',');
  build.add_option("--recipe", &order->recipe,
                   "recipe to build from; default: NAME, or " + default_recipe() + " with --bake");
  build.example("muster image build").example("muster image build " + default_recipe());
  build.example("muster image build gpu --bake gpu,hpc,apptainer");
  build.runs([order, &context] {
    if (const auto built = build_images(context, *order); !built.ok())
      return complain(context, built.error());
    if (context.json) list_images(context);
  });
  add_transfer(verb, context);
  verb.example("muster image list").example("muster image build");
}

}  // namespace muster::cli
