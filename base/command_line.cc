#include "base/command_line.h"

#include <CLI/CLI.hpp>

#include <type_traits>

#include "base/help_text.h"
#include "base/manual_page.h"
#include "base/split.h"
#include "base/verb_pages.h"

namespace muster {

class CommandLine {
 public:
  CommandLine(const Verb& program, const std::string& name, bool runs)
      : pages_(verb_pages(program, name)),
        manual_section_(program.manual_section_),
        runs_(runs),
        app_(program.help_, name) {
    fill(app_, program, {name});
  }

  Parsed parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      return {true, app_.exit(e), ""};
    }
    const auto given = app_.get_subcommands();
    return {false, 0, given.empty() ? "" : given.front()->get_name()};
  }

 private:
  using Options = std::map<std::string, CLI::Option*>;
  enum class Word : int {};  // shown as ENUM in the help

  // `path`: the program, and the verbs that lead here.
  void fill(CLI::App& app, const Verb& verb, const std::vector<std::string>& path) {
    app.formatter_fn([this, path](const CLI::App*, const std::string&, CLI::AppFormatMode) {
      const VerbPage* page = page_at(pages_, path);
      return page ? help_text(pages_, *page) : "";
    });
    // CLI11 copies these two to the verbs that are added afterwards.
    if (verb.falls_through_) app.fallthrough();
    if (verb.needs_verb_) app.require_subcommand(1);
    if (verb.hidden_) app.group("");
    if (verb.takes_rest_) app.prefix_command();
    if (verb.group_) app.require_option(verb.group_->first, verb.group_->second);
    std::vector<std::pair<std::string, CLI::Option*>> options;
    Options by_name;
    for (const Argument& argument : verb.arguments_) {
      CLI::Option* option = add(app, argument);
      options.emplace_back(argument.names_, option);
      by_name[argument.names_] = option;
      refine(*option, argument);
    }
    for (const Argument& argument : verb.arguments_) relate(argument, by_name);
    for (const Verb& below : verb.verbs_) {
      CLI::App* sub = below.group_ ? static_cast<CLI::App*>(app.add_option_group(below.name_))
                                   : app.add_subcommand(below.name_, below.help_);
      std::vector<std::string> further = path;
      if (!below.group_) further.push_back(below.name_);
      fill(*sub, below, further);
    }
    if (!verb.action_ || !runs_) return;
    app.callback([&app, &verb, options] {
      if (!app.get_subcommands().empty()) return;
      Given given;
      for (const auto& [name, option] : options)
        if (option->count() > 0) given.arguments.push_back(name);
      if (verb.takes_rest_) given.rest = app.remaining();
      verb.action_(given);
    });
  }

  CLI::Option* add(CLI::App& app, const Argument& argument) {
    if (argument.kind_ == Argument::Kind::version)
      return app.set_version_flag(argument.names_, argument.help_);
    if (argument.kind_ == Argument::Kind::manual)
      return app.add_flag_callback(argument.names_, [this] {
        throw CLI::CallForVersion(manual_page(pages_, manual_section_), 0);  // printed, as a version is
      });
    if (argument.kind_ == Argument::Kind::flag)
      return app.add_flag(argument.names_, *std::get<bool*>(argument.to_), argument.help_);
    return std::visit([&](const auto& to) { return add_value(app, argument, to); }, argument.to_);
  }
  template <typename To>
  static CLI::Option* add_value(CLI::App& app, const Argument& argument, To* to) {
    return app.add_option(argument.names_, *to, argument.help_);
  }
  static CLI::Option* add_value(CLI::App& app, const Argument& argument, const Choice& choice) {
    std::map<std::string, Word> words;
    for (const auto& [word, number] : choice.words) words[word] = static_cast<Word>(number);
    const std::function<void(const Word&)> take = [&choice](const Word& word) {
      choice.chosen(static_cast<int>(word));
    };
    return app.add_option_function(argument.names_, take, argument.help_)
        ->transform(CLI::CheckedTransformer(words));
  }

  static void refine(CLI::Option& option, const Argument& argument) {
    if (argument.required_) option.required();
    if (!argument.environment_.empty()) option.envname(argument.environment_);
    if (argument.delimiter_ != '\0') option.delimiter(argument.delimiter_);
    if (!argument.words_.empty()) option.check(CLI::IsMember(argument.words_));
    if (argument.positive_) option.check(CLI::PositiveNumber);
    if (argument.range_) option.check(CLI::Range(argument.range_->first, argument.range_->second));
    if (argument.wrong_) option.check(argument.wrong_);
    if (argument.shows_default_) option.capture_default_str();
  }

  static void relate(const Argument& argument, const Options& by_name) {
    CLI::Option& option = *by_name.at(argument.names_);
    if (!argument.needs_.empty()) option.needs(by_name.at(argument.needs_));
    if (!argument.excludes_.empty()) option.excludes(by_name.at(argument.excludes_));
  }

  const std::vector<VerbPage> pages_;
  const int manual_section_;
  const bool runs_;
  CLI::App app_;
};

Argument& Verb::add_option(std::string names, Destination to, std::string help) {
  return arguments_.emplace_back(Argument::Kind::value, std::move(names), std::move(to), std::move(help));
}

Argument& Verb::add_flag(std::string names, bool* to, std::string help) {
  return arguments_.emplace_back(Argument::Kind::flag, std::move(names), to, std::move(help));
}

void Verb::add_version(std::string text) {
  arguments_.emplace_back(Argument::Kind::version, "--version", static_cast<bool*>(nullptr), std::move(text));
}

void Verb::add_manual(int section) {
  manual_section_ = section;
  arguments_.emplace_back(Argument::Kind::manual, "--manual", static_cast<bool*>(nullptr),
                          "print the manual page: `... --manual | man -l -`");
}

Verb& Verb::add_verb(std::string name, std::string help) {
  Verb& verb = verbs_.emplace_back(std::move(help));
  verb.name_ = std::move(name);
  return verb;
}

Verb& Verb::add_group(std::string name, size_t least, size_t most) {
  Verb& group = verbs_.emplace_back("");
  group.name_ = std::move(name);
  group.group_ = {least, most};
  return group;
}

Verb& Verb::runs(std::function<void()> action) {
  return runs([action = std::move(action)](const Given&) { action(); });
}

Parsed parse_command_line(const Verb& program, int argc, const char* const* argv, bool runs) {
  return CommandLine(program, last_component(argv[0]), runs).parse(argc, argv);
}

}  // namespace muster
