// muster report: the report of a run, again.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/bringup.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string dir, format = "text";
  int64_t run = 0;
};

void show_report(Context& context, const Flags& flags) {
  if (!flags.dir.empty()) {
    const auto folder = write_report(context, flags.run, flags.dir);
    if (!folder.ok()) return complain(context, folder.error());
    return show(context, {{"report", *folder}}, [&] { fmt::print("{}/report.html\n", *folder); });
  }
  const std::string format = context.json ? "json" : flags.format;
  const auto text = Api(context).text(fmt::format("/v1/report?run={}&format={}", flags.run, format));
  if (!text.ok()) return complain(context, text.error());
  fmt::print("{}", *text);
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = app.add_subcommand("report", "the acceptance report of a run");
  verb->add_option("--run", flags->run, "number of the run; default: the newest");
  verb->add_option("--format", flags->format, "text, html, json, junit")
      ->check(CLI::IsMember({"text", "html", "json", "junit"}))
      ->capture_default_str();
  verb->add_option("--dir", flags->dir, "write report.html, report.json and junit.xml there");
  verb->footer("Examples:\n  muster report\n  muster report --run 3 --format html > acceptance.html");
  verb->callback([flags, &context] { show_report(context, *flags); });
}

}  // namespace muster::cli
