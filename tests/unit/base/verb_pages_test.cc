// Pages of a command line, and what is rendered from them.
#include "base/verb_pages.h"

#include <algorithm>

#include "base/completion.h"
#include "base/help_text.h"
#include "base/manual_page.h"
#include "base/split.h"
#include "base/wrapped.h"
#include "tests/catch.h"

using namespace muster;

namespace {

using StringList = std::vector<std::string>;

struct Values {
  std::string socket = "/run/a", format = "text", node, save;
  int64_t tail = 0;
  bool json = false, yes = false;
  StringList names;
};

void declare(Verb& program, Values& v) {
  program.needs_verb().falls_through();
  program.add_option("--socket", &v.socket, "a socket").environment("A_SOCKET").shows_default();
  program.add_flag("-j,--json", &v.json, "for programs");
  program.add_version("prog 1");
  Verb& show = program.add_verb("show", "show it\nA line of its own.");
  show.footer("It isn't changed.");
  show.add_option("NODE", &v.node, "a node").required();
  show.add_option("MORE", &v.names);
  show.add_option("--format", &v.format, "how").one_of({"text", "json"});
  show.add_option("--tail", &v.tail, "the last ones").between(1, 5000);
  show.add_flag("--yes,-y", &v.yes).needs("--format");
  show.example("prog show gpu03");
  Verb& keys = program.add_verb("keys", "keys");
  keys.needs_verb();
  Verb& group = keys.add_verb("save", "save them");
  group.add_group("what", 1, 1).add_option("--save", &v.save, "a file").required();
  program.add_verb("serve", "for programs").hidden();
}

const VerbPage& page(const std::vector<VerbPage>& pages, const StringList& path) {
  const VerbPage* found = page_at(pages, path);
  REQUIRE(found);
  return *found;
}

}  // namespace

TEST_CASE("a walk over the verbs has each with all that it takes", "[base][command-line]") {
  Values v;
  Verb program("a program");
  declare(program, v);
  const auto pages = verb_pages(program, "prog");
  REQUIRE(pages.size() == 5);
  CHECK(pages[0].has_verbs);
  CHECK(pages[0].options_below);
  const VerbPage& show = page(pages, {"prog", "show"});
  CHECK(show.summary == "show it");
  CHECK(show.notes == "A line of its own.\nIt isn't changed.");
  CHECK(show.examples == StringList{"prog show gpu03"});
  CHECK(usage_of(show) == "prog show [OPTIONS] NODE [MORE...]");
  REQUIRE(argument_at(show, "--format"));
  CHECK(argument_at(show, "--format")->words == StringList{"text", "json"});
  CHECK(argument_at(show, "--format")->value == "text|json");
  CHECK(argument_at(show, "--tail")->help == "the last ones (1 to 5000)");
  CHECK(argument_at(show, "-y") == argument_at(show, "--yes"));
  CHECK(argument_at(show, "-y")->value.empty());
  CHECK(argument_at(show, "-y")->help == "(needs --format)");
  CHECK(argument_at(pages[0], "--socket")->help == "a socket (default: /run/a; environment: A_SOCKET)");
  CHECK(argument_at(pages[0], "--version")->alone);
  CHECK(usage_of(page(pages, {"prog", "keys"})) == "prog keys [OPTIONS] VERB");
  // What a group holds is the verb's.
  CHECK(argument_at(page(pages, {"prog", "keys", "save"}), "--save"));
  CHECK(page(pages, {"prog", "serve"}).hidden);
  CHECK(pages_below(pages, pages[0]).size() == 2);
  CHECK(page_at(pages, {"prog", "nope"}) == nullptr);
}

TEST_CASE("text is broken at blanks, and a command so that a shell reads it as one", "[base][command-line]") {
  CHECK(wrapped("", 10).empty());
  CHECK(wrapped("one two three", 7) == StringList{"one two", "three"});
  CHECK(wrapped("  a: one two\nb", 8) == StringList{"  a: one", "  two", "b"});
  CHECK(wrapped("a-word-that-is-too-long b", 5) == StringList{"a-word-that-is-too-long", "b"});
  CHECK(wrapped_command("prog show --to 'one two three'", 18) ==
        StringList{"prog show --to \\", "    'one two three'"});
}

TEST_CASE("help names the options that every verb takes, and stays within its width",
          "[base][command-line]") {
  Values v;
  Verb program("a program");
  declare(program, v);
  program.add_verb("long", "a summary that is so long that it needs several lines because it goes on and on")
      .add_option("--a-name-that-needs-a-line-of-its-own", &v.node,
                  "an explanation that is as long as the summary, and so is broken into lines as well");
  const auto pages = verb_pages(program, "prog");
  for (const VerbPage& one : pages)
    for (const std::string& line : split_lines(help_text(pages, one))) {
      CAPTURE(line);
      CHECK(line.size() <= kHelpWidth);
    }
  const std::string show = help_text(pages, page(pages, {"prog", "show"}));
  CHECK(has(show, "--socket"));
  CHECK(has(show, "prog show gpu03"));
  CHECK_FALSE(has(show, "--version"));
  CHECK_FALSE(has(help_text(pages, pages[0]), "serve"));
}

TEST_CASE("a manual has every verb that is not hidden, and text that is no request", "[base][command-line]") {
  Values v;
  Verb program("prog: does it");
  declare(program, v);
  program.add_verb("odd", ".so it's").footer("'quoted' \\n in ~/.config").add_option("--x", &v.node);
  const std::string manual = manual_page(verb_pages(program, "prog"), 1);
  CHECK(manual.starts_with(".TH PROG 1 "));
  CHECK(has(manual, "prog \\- does it\n"));
  CHECK(has(manual, ".SS \"prog show [OPTIONS] NODE [MORE...]\"\n"));
  CHECK(has(manual, "\n\\&.so it\\(aqs\n"));
  CHECK(has(manual, "\\(aqquoted\\(aq \\en in \\(ti/.config"));
  CHECK_FALSE(has(manual, "serve"));
}

TEST_CASE("a completion knows verbs, options and words, for each shell", "[base][command-line]") {
  Values v;
  Verb program("a program");
  declare(program, v);
  const auto pages = verb_pages(program, "prog");
  CHECK(completion_script("csh", pages).empty());
  for (const std::string& shell : completion_shells()) {
    CAPTURE(shell);
    const std::string script = completion_script(shell, pages);
    for (const char* word : {"show", "keys", "save", "format", "text", "json", "socket"})
      CHECK(has(script, word));
    CHECK_FALSE(has(script, "serve"));
  }
}
