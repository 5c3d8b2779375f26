// The command line of a program as values: verbs with options, flags, positional arguments, help and action.
//
// A program fills a tree of Verb, whose root is the program itself, and calls parse_command_line(). Only
// command_line.cc includes the parser, CLI11: its header costs a source 3 to 6 s of compile time.
// Destinations and what the functions capture must live until it has returned. Nothing is read or written
// before. Thread: the main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster {

// One of several words, each for a number, which may be given in its place.
struct Choice {
  std::map<std::string, int> words;
  std::function<void(int)> chosen;
};

using Destination = std::variant<bool*, int*, int64_t*, uint16_t*, uint32_t*, uint64_t*, double*,
                                 std::string*, std::vector<int>*, std::vector<std::string>*, Choice>;

class Argument {
 public:
  enum class Kind { value, flag, version, manual };
  Argument(Kind kind, std::string names, Destination to, std::string help)
      : kind_(kind), names_(std::move(names)), to_(std::move(to)), help_(std::move(help)) {}

  Argument& required() { return required_ = true, *this; }
  Argument& shows_default() { return shows_default_ = true, *this; }  // in the help
  // The variable that gives the value where the command line does not.
  Argument& environment(std::string variable) { return environment_ = std::move(variable), *this; }
  // Several values in one word: "a,b".
  Argument& separated_by(char delimiter) { return delimiter_ = delimiter, *this; }
  Argument& one_of(std::vector<std::string> words) { return words_ = std::move(words), *this; }
  Argument& positive() { return positive_ = true, *this; }
  Argument& between(double low, double high) { return range_ = {low, high}, *this; }
  // `wrong` returns what is wrong with the text; "" if nothing is.
  Argument& check(std::function<std::string(const std::string&)> wrong) {
    return wrong_ = std::move(wrong), *this;
  }
  // The name, such as "--limit", of another option or flag of the same verb.
  Argument& needs(std::string other) { return needs_ = std::move(other), *this; }
  Argument& excludes(std::string other) { return excludes_ = std::move(other), *this; }

  const std::string& names() const { return names_; }

 private:
  friend class CommandLine;
  friend class PageWalk;
  Kind kind_;
  std::string names_;
  Destination to_;
  std::string help_;
  bool required_ = false, shows_default_ = false, positive_ = false;
  std::string environment_, needs_, excludes_;
  char delimiter_ = '\0';
  std::vector<std::string> words_;
  std::optional<std::pair<double, double>> range_;
  std::function<std::string(const std::string&)> wrong_;
};

struct Given {
  std::vector<std::string> arguments;  // names of those with a value, as they were added
  std::vector<std::string> rest;       // what takes_rest() left over
};

class Verb {
 public:
  explicit Verb(std::string help) : help_(std::move(help)) {}  // of a program

  // `names`: "--limit", "-v,--verbose", or "NODES" for a positional argument. "!--no-dhcp" is a flag that
  // sets false. References stay valid.
  Argument& add_option(std::string names, Destination to, std::string help = "");
  Argument& add_flag(std::string names, bool* to, std::string help = "");
  void add_version(std::string text);  // --version prints it
  // --manual prints the manual page; `section`: 1 for a command of users, 8 for a daemon. Of a program.
  void add_manual(int section);
  Verb& add_verb(std::string name, std::string help);
  // Options of which at least `least` and at most `most` must be given. Only its options count.
  Verb& add_group(std::string name, size_t least, size_t most);

  // Paragraphs below the options in the help and the manual, each a line here: what no option says.
  Verb& footer(std::string text) { return footer_ = std::move(text), *this; }
  // A line to type, such as "muster why gpu03".
  Verb& example(std::string line) { return examples_.push_back(std::move(line)), *this; }
  Verb& hidden() { return hidden_ = true, *this; }  // from the help
  Verb& needs_verb() { return needs_verb_ = true, *this; }
  // Its options may also follow the verbs below it. Before those are added.
  Verb& falls_through() { return falls_through_ = true, *this; }
  // Words from the first that is not known, with all that follow.
  Verb& takes_rest() { return takes_rest_ = true, *this; }
  // Called where no verb below this one was given.
  Verb& runs(std::function<void(const Given&)> action) { return action_ = std::move(action), *this; }
  Verb& runs(std::function<void()> action);

 private:
  friend class CommandLine;
  friend class PageWalk;
  std::string name_ = {}, help_, footer_ = {};
  std::vector<std::string> examples_ = {};
  int manual_section_ = 0;
  std::list<Argument> arguments_ = {};
  std::list<Verb> verbs_ = {};
  std::optional<std::pair<size_t, size_t>> group_ = {};
  bool hidden_ = false, needs_verb_ = false, falls_through_ = false, takes_rest_ = false;
  std::function<void(const Given&)> action_ = {};
};

struct Parsed {
  bool ended = false;  // the program has nothing to do: --help, --version, or bad usage, which was printed
  int status = 0;      // 0, or above 100: the parser's number of the mistake
  std::string verb;    // the one given to the program
};
// Fills the destinations and runs the verb, unless `runs` is false. Help and versions go to stdout, mistakes
// to stderr.
Parsed parse_command_line(const Verb& program, int argc, const char* const* argv, bool runs = true);

}  // namespace muster
