// muster image: what nodes run.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/bringup.h"
#include "cli/render.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

void list(Context& context) {
  const auto images = Api(context).get("/v1/images");
  if (!images.ok()) return complain(context, images.error());
  show(context, *images, [&] {
    fmt::print("{:<16} {:<10} {:<8} {:<28} {}\n", "IMAGE", "STORED", "NEEDED", "SYSTEM", "DIGEST");
    for (const Json& i : images->value("images", Json::array()))
      fmt::print("{:<16} {:<10} {:<8} {:<28} {}\n", i.value("name", ""),
                 i.value("built", false) ? human_bytes(i.value("stored_bytes", 0.0)) : "not built",
                 i.value("needed", false) ? "yes" : "no", i.value("os", ""), i.value("digest", ""));
  });
}

}  // namespace

void add_image(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("image", "operating system images");
  verb->require_subcommand(1);
  verb->add_subcommand("list", "images that are built, and those the spec needs")->callback([&context] { list(context); });
  auto name = std::make_shared<std::string>();
  auto rebuild = std::make_shared<bool>(false);
  CLI::App* build = verb->add_subcommand("build", "build an image from its recipe; default: all the spec needs");
  build->add_option("NAME", *name, "as in the spec's images, or a recipe's name such as debian-12");
  build->add_flag("--rebuild", *rebuild, "although nothing changed, e.g. for new package versions");
  build->callback([name, rebuild, &context] {
    if (const auto built = build_images(context, *name, *rebuild); !built.ok()) return complain(context, built.error());
    if (context.json) list(context);
  });
  CLI::App* import = verb->add_subcommand("import", "not implemented yet");
  import->callback([&context] { complain(context, fail(Code::invalid, "image import is not implemented")); });
  verb->footer("Examples:\n  muster image build debian-12\n  muster image list");
}

}  // namespace muster::cli
