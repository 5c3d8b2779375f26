// What the command says of itself: help, examples, mistyped words, completion and manual.
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include "base/completion.h"
#include "base/help_text.h"
#include "base/split.h"
#include "base/verb_pages.h"
#include "cli/cli_context.h"
#include "cli/interrupt_note.h"
#include "cli/unknown_word.h"
#include "cli/verbs.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using namespace muster::cli;
using muster::testing::muster_command;

namespace {

using StringList = std::vector<std::string>;

struct Program {
  Program() { add_program(app, context); }
  Context context;
  Verb app{"muster: from a YAML file to an accepted GPU cluster"};
  const std::vector<VerbPage>& pages() {
    if (pages_.empty()) pages_ = verb_pages(app, "muster");
    return pages_;
  }

 private:
  std::vector<VerbPage> pages_;
};

// The words of each command that a line types, as a shell splits them.
std::vector<StringList> commands_of(const std::string& line) {
  std::vector<StringList> out(1);
  std::string word;
  char quote = '\0';
  bool any = false;
  const auto end_word = [&] {
    static const std::set<std::string> between = {"|", "&&", ">", "<"};
    if (any && between.count(word))
      out.emplace_back();
    else if (any)
      out.back().push_back(word);
    word.clear(), any = false;
  };
  for (const char c : line) {
    if (quote == '\0' && c == ' ') {
      end_word();
      continue;
    }
    any = true;
    if (quote == '\0' && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote)
      quote = '\0';
    else
      word += c;
  }
  end_word();
  return out;
}

bool parses(const StringList& words) {
  Program program;
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return !unknown_word(program.pages(), {words.begin() + 1, words.end()}) &&
         !parse_command_line(program.app, static_cast<int>(argv.size()), argv.data(), false).ended;
}

// Runs a checker of others on a text, where it is installed; else says that it was skipped.
void accepted_by(std::vector<std::string> argv, const std::string& text) {
  TempDir dir;
  dir.write("text", text);
  argv.push_back(dir.path("text"));
  CAPTURE(argv);
  const auto ran = make_process()->run({argv});
  if (!ran.ok() && ran.error().code == Code::not_found) {
    WARN("skipped: " << argv[0] << " is not installed");
    return;
  }
  REQUIRE(ran.ok());
  CHECK(ran->exit_code == 0);
  CHECK(ran->out + ran->err == "");
}

}  // namespace

TEST_CASE("each verb has an example of its own, which parses", "[cli][help]") {
  Program program;
  for (const VerbPage& page : program.pages()) {
    if (page.hidden) continue;
    CAPTURE(command_of(page));
    CHECK_FALSE(page.examples.empty());
    bool own = false;
    for (const std::string& example : page.examples)
      for (const StringList& words : commands_of(example)) {
        if (words.empty() || words[0] != "muster") continue;
        CAPTURE(example);
        own = own || std::equal(page.path.begin(), page.path.end(), words.begin(),
                                words.begin() + std::min(words.size(), page.path.size()));
        CHECK(parses(words));
      }
    CHECK(own);
  }
  CHECK_FALSE(parses({"muster", "why"}));
  CHECK_FALSE(parses({"muster", "why", "gpu03", "--limt", "x"}));
}

TEST_CASE("no line of help is wider than 80 columns, and each verb names its summary", "[cli][help]") {
  Program program;
  for (const VerbPage& page : program.pages()) {
    CAPTURE(command_of(page));
    CHECK_FALSE(page.summary.empty());
    for (const std::string& line : split_lines(help_text(program.pages(), page))) {
      CAPTURE(line);
      CHECK(line.size() <= kHelpWidth);
    }
  }
}

TEST_CASE("`help VERB` is what `VERB --help` prints", "[cli][help]") {
  for (const StringList& verb : {StringList{}, {"up"}, {"spec", "check"}, {"power", "cycle"}}) {
    StringList asked = {"help"}, given = verb;
    asked.insert(asked.end(), verb.begin(), verb.end());
    given.push_back("--help");
    const auto help = muster_command(asked);
    CHECK(help.exit == kAccepted);
    CHECK(help.out.find("Usage: muster") == 0);
    CHECK(help.out == muster_command(given).out);
  }
  const auto wrong = muster_command({"help", "spec", "chexk"});
  CHECK(wrong.exit == kUsage);
  CHECK(has(wrong.err, "'check'"));
  CHECK(muster_command({"help", "why", "gpu03"}).exit == kUsage);
}

TEST_CASE("a mistyped word is named with what may be meant, at every depth", "[cli][help]") {
  Program program;
  const auto near = [&](const StringList& words) {
    const auto unknown = unknown_word(program.pages(), words);
    REQUIRE(unknown);
    return unknown->near;
  };
  CHECK(near({"upp"}) == "up");
  CHECK(near({"spec", "chexk"}) == "check");
  CHECK(near({"node", "qarantine", "gpu03"}) == "quarantine");
  CHECK(near({"rollout", "staart"}) == "start");
  CHECK(near({"notify", "tset"}) == "test");
  CHECK(near({"--socket", "/run/x", "--json", "spec", "chexk"}) == "check");
  CHECK(near({"plan", "--limti", "3"}) == "--limit");
  CHECK(near({"plan", "--jsno"}) == "--json");
  CHECK(near({"power", "zzzzzzzz"}).empty());
  const auto at = unknown_word(program.pages(), {"rollout", "staart"});
  REQUIRE(at);
  CHECK(at->command == "muster rollout");
  CHECK_FALSE(at->option);

  for (const StringList& right : {StringList{},
                                  {"--help"},
                                  {"--version"},
                                  {"why", "upp"},
                                  {"logs", "-f", "gpu03"},
                                  {"plan", "--limit", "--json"},
                                  {"plan", "--limit=gpu03"},
                                  {"lab", "exec", "--", "--nope"},
                                  {"sim", "--seed"},
                                  {"report", "--run", "-1"},
                                  {"notify"},
                                  {"lab", "serve"}})
    CHECK_FALSE(unknown_word(program.pages(), right));

  const auto ran = muster_command({"rollout", "staart"});
  CHECK(ran.exit == kUsage);
  CHECK(ran.out.empty());
  CHECK(has(ran.err, "'start'"));
}

TEST_CASE("completion and manual are read without complaint by the programs they are for", "[cli][help]") {
  Program program;
  for (const std::string& shell : completion_shells()) {
    const auto ran = muster_command({"completion", shell});
    CHECK(ran.exit == kAccepted);
    CHECK(ran.out == completion_script(shell, program.pages()));
    accepted_by({shell, "-n"}, ran.out);
  }
  CHECK(muster_command({"completion", "csh"}).exit == kUsage);
  const auto manual = muster_command({"--manual"});
  CHECK(manual.exit == kAccepted);
  CHECK(has(manual.out, ".SS \"muster spec check"));
  accepted_by({"groff", "-man", "-ww", "-z", "-Tutf8"}, manual.out);
}

TEST_CASE("bash completes verbs, options and words", "[cli][help]") {
  TempDir dir;
  dir.write("script", muster_command({"completion", "bash"}).out);
  const auto offered = [&](const std::string& typed) {
    const auto ran = make_process()->run(
        {{"bash", "-c",
          "source " + dir.path("script") + "; COMP_WORDS=(" + typed +
              "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _muster; printf '%s\\n' \"${COMPREPLY[@]}\""}});
    REQUIRE(ran.ok());
    CHECK(ran->err == "");
    const auto lines = split_lines(ran->out);
    return std::set<std::string>(lines.begin(), lines.end());
  };
  CHECK(offered("muster sp") == std::set<std::string>{"spec"});
  CHECK(offered("muster spec ''").count("check") == 1);
  CHECK(offered("muster --json spec ''").count("check") == 1);
  CHECK(offered("muster spec check --play") == std::set<std::string>{"--playbooks"});
  CHECK(offered("muster report --format js") == std::set<std::string>{"json"});
  CHECK(offered("muster report --format = js") == std::set<std::string>{"json"});
  CHECK(offered("muster report --format =").count("html") == 1);
  CHECK(offered("muster completion ''") == std::set<std::string>{"bash", "fish", "zsh"});
  CHECK(offered("muster lab se") == std::set<std::string>{""});  // hidden: nothing is offered
}

TEST_CASE("Ctrl-C says what goes on, and ends the program as ever", "[cli][help]") {
  TempDir dir;
  const std::string said = dir.path("said");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);
    ::dup2(::open(said.c_str(), O_CREAT | O_WRONLY, 0600), STDERR_FILENO);
    InterruptNote note("nothing was stopped");
    note.set("run 7 goes on");
    ::raise(SIGINT);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
  const std::string text = dir.read("said");
  CHECK(has(text, "run 7 goes on"));
  CHECK_FALSE(has(text, "nothing was stopped"));
}

TEST_CASE("a reader that went away is a failure without words", "[cli]") {
  TempDir dir;
  const std::string said = dir.path("said");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(99);
    ::close(ends[0]);
    ::signal(SIGPIPE, SIG_IGN);  // as systemd has it for its units
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(::open(said.c_str(), O_CREAT | O_WRONLY, 0600), STDERR_FILENO);
    const char* argv[] = {"muster", "power", "--help"};
    ::_exit(cli::run(3, argv));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kFailed);
  CHECK(dir.read("said") == "");
}
