#include "base/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/shell_text.h"

namespace muster {
namespace {

using Pages = std::vector<VerbPage>;

// The verbs of a page, each behind a blank: " spec check"; "" for the program. As the scripts collect them.
std::string verbs_before(const VerbPage& page) {
  std::string out;
  for (size_t i = 1; i < page.path.size(); ++i) out += " " + page.path[i];
  return out;
}

// "' up'|' spec'|' spec check'"
std::string all_verbs(const Pages& pages, const char* between) {
  std::string out;
  for (const VerbPage& page : pages)
    if (page.path.size() > 1 && !page.hidden)
      out += (out.empty() ? "" : between) + shell_word(verbs_before(page));
  return out;
}

// The options of a page, with those that all verbs take.
std::vector<const ArgumentPage*> offered_options(const Pages& pages, const VerbPage& page) {
  std::vector<const ArgumentPage*> out;
  for (const ArgumentPage& argument : page.arguments)
    if (!argument.positional) out.push_back(&argument);
  if (&page != &pages.front() && pages.front().options_below)
    for (const ArgumentPage& argument : pages.front().arguments)
      if (!argument.positional && !argument.alone && !argument_at(page, argument.names.back()))
        out.push_back(&argument);
  return out;
}

// The words that the positional arguments of a page take.
std::vector<std::string> fixed_words(const VerbPage& page) {
  std::vector<std::string> out;
  for (const ArgumentPage& argument : page.arguments)
    if (argument.positional) out.insert(out.end(), argument.words.begin(), argument.words.end());
  return out;
}

// Options with a value, as cases of "VERBS OPTION": by the words that they take, without words by "".
std::map<std::string, std::vector<std::string>> options_by_words(const Pages& pages) {
  std::map<std::string, std::vector<std::string>> out;
  for (const VerbPage& page : pages) {
    if (page.hidden) continue;
    for (const ArgumentPage* option : offered_options(pages, page)) {
      if (option->value.empty()) continue;
      auto& cases = out[fmt::format("{}", fmt::join(option->words, " "))];
      for (const std::string& name : option->names)
        cases.push_back(shell_word(verbs_before(page) + " " + name));
    }
  }
  return out;
}

std::string bash_script(const Pages& pages) {
  const std::string name = command_of(pages.front());
  std::string out = fmt::format(
      "# bash completion of {0}; `{0} completion bash` prints it.\n_{0}() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} verbs= words= i\n"
      "  # bash makes three words of --option=value.\n"
      "  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then "
      "before=${{COMP_WORDS[COMP_CWORD-2]}}; fi\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n    case \"$verbs ${{COMP_WORDS[i]}}\" in\n"
      "      {1}) verbs+=\" ${{COMP_WORDS[i]}}\" ;;\n    esac\n  done\n  COMPREPLY=()\n"
      "  case \"$verbs $before\" in\n",
      name, all_verbs(pages, "|"));
  for (const auto& [words, cases] : options_by_words(pages))
    out += fmt::format(
        "    {})\n      {}return ;;\n", fmt::join(cases, "|"),
        words.empty() ? ""
                      : fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$word\")\n      ", words));
  out += "  esac\n  case \"$verbs\" in\n";
  for (const VerbPage& page : pages) {
    if (page.hidden) continue;
    std::vector<std::string> words = fixed_words(page), options;
    for (const VerbPage* below : pages_below(pages, page)) words.push_back(below->path.back());
    for (const ArgumentPage* option : offered_options(pages, page))
      options.insert(options.end(), option->names.begin(), option->names.end());
    out += fmt::format("    {}) words='{}' options='{}' ;;\n", shell_word(verbs_before(page)),
                       fmt::join(words, " "), fmt::join(options, " "));
  }
  return out + fmt::format(
                   "  esac\n  [[ $word != -* ]] || words=$options\n"
                   "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}}\n"
                   "complete -o default -F _{0} {0}\n",
                   name);
}

// "'up:bring the cluster ...'", of which zsh shows what stands behind the first colon.
std::string zsh_word(const std::string& word, const std::string& words) {
  std::string escaped;
  for (const char c : word) escaped += c == ':' ? "\\:" : std::string(1, c);
  return " " + shell_word(escaped + ":" + words);
}

std::string zsh_script(const Pages& pages) {
  const std::string name = command_of(pages.front());
  std::string out = fmt::format(
      "#compdef {0}\n# zsh completion of {0}; `{0} completion zsh` prints it.\n_{0}() {{\n"
      "  local verbs='' i\n  local -a offered flags\n  for ((i = 2; i < CURRENT; ++i)); do\n"
      "    case \"$verbs ${{words[i]}}\" in\n      ({1}) verbs+=\" ${{words[i]}}\" ;;\n    esac\n  done\n"
      "  case \"$verbs ${{words[CURRENT-1]}}\" in\n",
      name, all_verbs(pages, "|"));
  for (const auto& [words, cases] : options_by_words(pages))
    out += fmt::format("    ({}) {}; return ;;\n", fmt::join(cases, "|"),
                       words.empty() ? "_files" : "compadd -- " + words);
  out += "  esac\n  case \"$verbs\" in\n";
  for (const VerbPage& page : pages) {
    if (page.hidden) continue;
    std::string words, options;
    for (const VerbPage* below : pages_below(pages, page))
      words += zsh_word(below->path.back(), below->summary);
    for (const std::string& word : fixed_words(page)) words += " " + shell_word(word);
    for (const ArgumentPage* option : offered_options(pages, page))
      for (const std::string& one : option->names) options += zsh_word(one, option->help);
    out += fmt::format("    ({})\n      offered=({})\n      flags=({}) ;;\n", shell_word(verbs_before(page)),
                       words, options);
  }
  return out + fmt::format(
                   "  esac\n  if [[ ${{words[CURRENT]}} == -* ]]; then _describe -o option flags\n"
                   "  elif (( ${{#offered}} )); then _describe verb offered\n  else _files\n  fi\n}}\n"
                   "if [[ ${{funcstack[1]}} == _{0} ]]; then _{0} \"$@\"; else compdef _{0} {0}; fi\n",
                   name);
}

// fish reads \' and \\ in single quotes.
std::string fish_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

std::string fish_option(const ArgumentPage& option) {
  std::string out;
  for (const std::string& name : option.names)
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty()) out += " -r";
  if (!option.words.empty())
    out += fmt::format(" -f -a {}", fish_word(fmt::format("{}", fmt::join(option.words, " "))));
  return option.help.empty() ? out : out + " -d " + fish_word(option.help);
}

std::string fish_script(const Pages& pages) {
  const std::string name = command_of(pages.front());
  std::string out = fmt::format(
      "# fish completion of {0}; `{0} completion fish` prints it.\nfunction __{0}_at\n  set -l verbs ''\n"
      "  set -l typed (commandline -opc)\n  for word in $typed[2..-1]\n    switch \"$verbs $word\"\n"
      "      case {1}\n        set verbs \"$verbs $word\"\n    end\n  end\n  test \"$verbs\" = "
      "\"$argv[1]\"\nend\n",
      name, all_verbs(pages, " "));
  for (const VerbPage& page : pages) {
    if (page.hidden) continue;
    const std::string begin = fmt::format("complete -c {} -n {}", name,
                                          fish_word(fmt::format("__{}_at \"{}\"", name, verbs_before(page))));
    for (const VerbPage* below : pages_below(pages, page))
      out += fmt::format("{} -f -a {} -d {}\n", begin, below->path.back(), fish_word(below->summary));
    for (const std::string& word : fixed_words(page))
      out += fmt::format("{} -f -a {}\n", begin, fish_word(word));
    for (const ArgumentPage* option : offered_options(pages, page))
      out += begin + fish_option(*option) + "\n";
  }
  return out;
}

struct ShellScript {
  const char* shell;
  std::string (*render)(const Pages& pages);
};
constexpr ShellScript kShellScripts[] = {{"bash", bash_script}, {"fish", fish_script}, {"zsh", zsh_script}};

}  // namespace

std::vector<std::string> completion_shells() {
  std::vector<std::string> out;
  for (const auto& [shell, render] : kShellScripts) out.emplace_back(shell);
  return out;
}

std::string completion_script(const std::string& shell, const std::vector<VerbPage>& pages) {
  for (const auto& [known, render] : kShellScripts)
    if (shell == known) return render(pages);
  return "";
}

}  // namespace muster
