// muster help, completion: what the verbs say of themselves, without a controller.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/completion.h"
#include "base/help_text.h"
#include "base/verb_pages.h"
#include "cli/cli_context.h"
#include "cli/unknown_word.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

void show_help(const Verb& app, Context& context, const std::vector<std::string>& verbs) {
  const std::vector<VerbPage> pages = verb_pages(app, "muster");
  std::vector<std::string> path = pages.front().path;
  path.insert(path.end(), verbs.begin(), verbs.end());
  if (const VerbPage* page = page_at(pages, path)) return fmt::print("{}", help_text(pages, *page));
  const auto unknown = unknown_word(pages, verbs);
  complain(context, fail(Code::invalid,
                         unknown ? to_text(*unknown) : fmt::format("no verb '{}'", fmt::join(verbs, " "))));
}

}  // namespace

void add_help(Verb& app, Context& context) {
  auto verbs = std::make_shared<std::vector<std::string>>();
  Verb& verb = app.add_verb("help", "show the help of a verb");
  verb.add_option("VERB", verbs.get(), "such as `spec check`; default: the program's own help");
  verb.example("muster help").example("muster help spec check");
  verb.runs([verbs, &app, &context] { show_help(app, context, *verbs); });
}

void add_completion(Verb& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  Verb& verb = app.add_verb("completion", "print the completion of verbs and options for a shell");
  verb.add_option("SHELL", shell.get(), "the shell").required().one_of(completion_shells());
  verb.footer(
      "The package installs it for all of them. Where muster was unpacked, add to ~/.bashrc: source "
      "<(muster completion bash)");
  verb.example("muster completion bash > ~/.local/share/bash-completion/completions/muster");
  verb.example("muster completion zsh > ~/.zfunc/_muster");
  verb.example("muster completion fish > ~/.config/fish/completions/muster.fish");
  verb.runs([shell, &app, &context] {
    const std::string script = completion_script(*shell, verb_pages(app, "muster"));
    show(context, {{"shell", *shell}, {"script", script}}, [&] { fmt::print("{}", script); });
  });
}

}  // namespace muster::cli
