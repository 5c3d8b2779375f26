#include "base/verb_pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/split.h"

namespace muster {

class PageWalk {
 public:
  explicit PageWalk(std::vector<VerbPage>& pages) : pages_(pages) {}

  void visit(const Verb& verb, const std::vector<std::string>& path) {
    VerbPage page;
    page.path = path;
    const size_t end = std::min(verb.help_.find('\n'), verb.help_.size());
    page.summary = verb.help_.substr(0, end);
    page.notes = verb.help_.substr(std::min(end + 1, verb.help_.size()));
    if (!page.notes.empty() && !verb.footer_.empty()) page.notes += "\n";
    page.notes += verb.footer_;
    page.examples = verb.examples_;
    page.hidden = verb.hidden_;
    page.needs_verb = verb.needs_verb_;
    page.takes_rest = verb.takes_rest_;
    page.options_below = verb.falls_through_;
    add_arguments(verb, page.arguments);
    page.arguments.push_back({{"-h", "--help"}, "", {}, "show this help"});
    const size_t at = pages_.size();
    pages_.push_back(std::move(page));
    for (const Verb& below : verb.verbs_) {
      if (below.group_) continue;
      pages_[at].has_verbs = true;
      std::vector<std::string> further = path;
      further.push_back(below.name_);
      visit(below, further);
    }
  }

 private:
  // Those of its groups are shown as its own.
  static void add_arguments(const Verb& verb, std::vector<ArgumentPage>& out) {
    for (const Argument& argument : verb.arguments_) out.push_back(page_of(argument));
    for (const Verb& below : verb.verbs_)
      if (below.group_) add_arguments(below, out);
  }

  static ArgumentPage page_of(const Argument& argument) {
    ArgumentPage page;
    for (std::string name : split(argument.names_, ',')) {
      if (name.front() == '!') name.erase(0, 1);
      page.names.push_back(std::move(name));
    }
    page.positional = page.names.front().front() != '-';
    page.required = argument.required_;
    page.several = std::holds_alternative<std::vector<std::string>*>(argument.to_) ||
                   std::holds_alternative<std::vector<int>*>(argument.to_);
    page.words = words_of(argument);
    if (argument.kind_ == Argument::Kind::value) page.value = value_of(argument, page.words);
    page.help = argument.kind_ == Argument::Kind::version ? "print the version" : help_of(argument);
    page.alone = argument.kind_ == Argument::Kind::version || argument.kind_ == Argument::Kind::manual;
    return page;
  }

  static std::vector<std::string> words_of(const Argument& argument) {
    if (!argument.words_.empty()) return argument.words_;
    std::vector<std::string> out;
    if (const auto* choice = std::get_if<Choice>(&argument.to_))
      for (const auto& [word, number] : choice->words) out.push_back(word);
    return out;
  }

  static std::string value_of(const Argument& argument, const std::vector<std::string>& words) {
    if (!words.empty()) return fmt::format("{}", fmt::join(words, "|"));
    const bool text = std::holds_alternative<std::string*>(argument.to_) ||
                      std::holds_alternative<std::vector<std::string>*>(argument.to_);
    return text ? "TEXT" : "N";
  }

  static std::string help_of(const Argument& argument) {
    std::vector<std::string> also;
    if (argument.required_ && argument.names_.front() == '-') also.push_back("required");
    if (argument.range_)
      also.push_back(fmt::format("{} to {}", argument.range_->first, argument.range_->second));
    if (argument.shows_default_)
      if (const std::string text = default_of(argument); !text.empty()) also.push_back("default: " + text);
    if (!argument.environment_.empty()) also.push_back("environment: " + argument.environment_);
    if (!argument.needs_.empty()) also.push_back("needs " + argument.needs_);
    if (!argument.excludes_.empty()) also.push_back("not with " + argument.excludes_);
    if (also.empty()) return argument.help_;
    return fmt::format("{}{}({})", argument.help_, argument.help_.empty() ? "" : " ", fmt::join(also, "; "));
  }

  // What the destination holds before the command line is read.
  static std::string default_of(const Argument& argument) {
    return std::visit(
        [](const auto& to) -> std::string {
          using To = std::decay_t<decltype(to)>;
          if constexpr (std::is_same_v<To, Choice> || std::is_same_v<To, std::vector<int>*> ||
                        std::is_same_v<To, std::vector<std::string>*>)
            return "";
          else
            return fmt::format("{}", *to);
        },
        argument.to_);
  }

  std::vector<VerbPage>& pages_;
};

std::vector<VerbPage> verb_pages(const Verb& program, const std::string& name) {
  std::vector<VerbPage> pages;
  PageWalk(pages).visit(program, {name});
  return pages;
}

const VerbPage* page_at(const std::vector<VerbPage>& pages, const std::vector<std::string>& path) {
  const auto found =
      std::find_if(pages.begin(), pages.end(), [&](const VerbPage& page) { return page.path == path; });
  return found == pages.end() ? nullptr : &*found;
}

std::vector<const VerbPage*> pages_below(const std::vector<VerbPage>& pages, const VerbPage& page) {
  std::vector<const VerbPage*> out;
  for (const VerbPage& one : pages)
    if (!one.hidden && one.path.size() == page.path.size() + 1 &&
        std::equal(page.path.begin(), page.path.end(), one.path.begin()))
      out.push_back(&one);
  return out;
}

const ArgumentPage* argument_at(const VerbPage& page, const std::string& name) {
  for (const ArgumentPage& argument : page.arguments)
    if (std::find(argument.names.begin(), argument.names.end(), name) != argument.names.end())
      return &argument;
  return nullptr;
}

std::string command_of(const VerbPage& page) { return fmt::format("{}", fmt::join(page.path, " ")); }

std::string usage_of(const VerbPage& page) {
  std::string out = command_of(page) + " [OPTIONS]";
  for (const ArgumentPage& argument : page.arguments)
    if (argument.positional)
      out += " " + (argument.required ? term_of(argument) : "[" + term_of(argument) + "]");
  if (page.has_verbs) out += page.needs_verb ? " VERB" : " [VERB]";
  return out;
}

std::string term_of(const ArgumentPage& argument) {
  std::string out = fmt::format("{}", fmt::join(argument.names, ", "));
  if (argument.positional) return argument.several ? out + "..." : out;
  return argument.value.empty() ? out : out + " " + argument.value;
}

}  // namespace muster
