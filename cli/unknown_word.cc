#include "cli/unknown_word.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "controller/spec/spec.h"

namespace muster::cli {
namespace {

// A page and those that lead to it: the options of all of them are taken.
std::vector<const VerbPage*> pages_up(const std::vector<VerbPage>& pages, const VerbPage& page) {
  std::vector<const VerbPage*> out;
  for (std::vector<std::string> path = page.path; !path.empty(); path.pop_back())
    if (const VerbPage* one = page_at(pages, path)) out.push_back(one);
  return out;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !std::isdigit(static_cast<unsigned char>(word[1]));
}

// "--limit" of "--limit=gpu03"; the first one of "-fv".
std::string option_name(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

bool takes_words(const VerbPage& page) {
  return page.takes_rest || std::any_of(page.arguments.begin(), page.arguments.end(),
                                        [](const ArgumentPage& argument) { return argument.positional; });
}

UnknownWord unknown_option(const std::vector<VerbPage>& pages, const VerbPage& page,
                           const std::string& name) {
  std::vector<std::string> known;
  for (const VerbPage* one : pages_up(pages, page))
    for (const ArgumentPage& argument : one->arguments)
      if (!argument.positional) known.insert(known.end(), argument.names.begin(), argument.names.end());
  return {name, command_of(page), true, name.starts_with("--") ? nearest_spelling(name, known) : ""};
}

UnknownWord unknown_verb(const std::vector<VerbPage>& pages, const VerbPage& page, const std::string& word) {
  std::vector<std::string> known;
  for (const VerbPage* below : pages_below(pages, page)) known.push_back(below->path.back());
  return {word, command_of(page), false, nearest_spelling(word, known)};
}

}  // namespace

std::optional<UnknownWord> unknown_word(const std::vector<VerbPage>& pages,
                                        const std::vector<std::string>& words) {
  const VerbPage* page = &pages.front();
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (is_option(words[i])) {
      const std::string name = option_name(words[i]);
      const ArgumentPage* option = nullptr;
      for (const VerbPage* one : pages_up(pages, *page))
        if (!option) option = argument_at(*one, name);
      if (!option && page->takes_rest) return std::nullopt;
      if (!option) return unknown_option(pages, *page, name);
      if (!option->value.empty() && words[i] == name) ++i;  // its value
      continue;
    }
    std::vector<std::string> path = page->path;
    path.push_back(words[i]);
    if (const VerbPage* below = page_at(pages, path))
      page = below;
    else if (page->has_verbs && !takes_words(*page))
      return unknown_verb(pages, *page, words[i]);
  }
  return std::nullopt;
}

std::string to_text(const UnknownWord& unknown) {
  return fmt::format("unknown {} '{}' of `{}`{}; see `{} --help`", unknown.option ? "option" : "verb",
                     unknown.word, unknown.command,
                     unknown.near.empty() ? "" : ", did you mean '" + unknown.near + "'?", unknown.command);
}

}  // namespace muster::cli
