// Command lines as values: what arrives where, what is bad usage, and what the help shows.
#include "base/command_line.h"

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "tests/catch.h"

using namespace muster;

namespace {

using StringList = std::vector<std::string>;

struct Ran {
  Parsed parsed;
  std::string out, err;
};

Ran run(const Verb& program, const StringList& words) {
  std::vector<const char*> argv = {"prog"};
  for (const auto& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  const auto out_before = std::cout.rdbuf(out.rdbuf()), err_before = std::cerr.rdbuf(err.rdbuf());
  Ran ran{parse_command_line(program, static_cast<int>(argv.size()), argv.data()), "", ""};
  std::cout.rdbuf(out_before);
  std::cerr.rdbuf(err_before);
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

bool taken(const Verb& program, const StringList& words) {
  const Ran ran = run(program, words);
  CHECK(ran.parsed.ended == (ran.parsed.status != 0));
  CHECK(ran.err.empty() != ran.parsed.ended);
  return !ran.parsed.ended;
}

bool shows(const std::string& help, const std::string& what) {
  INFO(help);
  return help.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("every kind of value arrives at its destination", "[base][command-line]") {
  bool flag = false, dhcp = true;
  int whole = 0, word = -1;
  int64_t wide = 0;
  uint16_t port = 0;
  uint32_t heads = 0;
  uint64_t bytes = 0;
  double seconds = 0;
  std::string text;
  std::vector<int> gpus;
  StringList names, rest;
  Verb program("a program");
  program.add_flag("--yes,-y", &flag);
  program.add_flag("!--no-dhcp", &dhcp);
  program.add_option("--whole", &whole);
  program.add_option("--wide", &wide);
  program.add_option("--port", &port);
  program.add_option("--heads", &heads);
  program.add_option("--bytes", &bytes);
  program.add_option("--seconds", &seconds);
  program.add_option("--gpus", &gpus).separated_by(',');
  program.add_option("--name", &names);
  program.add_option("--turn", Choice{{{"shared", 1}, {"alone", 2}}, [&](int chosen) { word = chosen; }});
  program.add_option("TEXT", &text);
  program.add_option("REST", &rest);
  REQUIRE(taken(program, {"-y",
                          "--no-dhcp",
                          "--whole",
                          "-3",
                          "--wide",
                          "9000000000",
                          "--port",
                          "7443",
                          "--heads=8",
                          "--bytes",
                          "18446744073709551615",
                          "--seconds",
                          "0.5",
                          "--gpus",
                          "0,2",
                          "--name",
                          "a",
                          "--name",
                          "b",
                          "--turn",
                          "alone",
                          "first",
                          "second",
                          "third"}));
  CHECK(flag);
  CHECK_FALSE(dhcp);
  CHECK(whole == -3);
  CHECK(wide == 9000000000);
  CHECK(port == 7443);
  CHECK(heads == 8);
  CHECK(bytes == UINT64_MAX);
  CHECK(seconds == 0.5);
  CHECK(gpus == std::vector<int>{0, 2});
  CHECK(names == StringList{"a", "b"});
  CHECK(word == 2);
  CHECK(text == "first");
  CHECK(rest == StringList{"second", "third"});
  CHECK(taken(program, {"--turn", "1"}));
  CHECK(word == 1);
  CHECK_FALSE(taken(program, {"--turn", "none"}));
  CHECK_FALSE(taken(program, {"--port", "70000"}));
  CHECK_FALSE(taken(program, {"--whole", "many"}));
  CHECK_FALSE(taken(program, {"--other"}));
}

TEST_CASE("values are checked before anything runs", "[base][command-line]") {
  std::string format = "text", even;
  int64_t run_number = 0;
  double wait = 0;
  int ran = 0;
  Verb program("a program");
  program.add_option("--format", &format).one_of({"text", "json"});
  program.add_option("--run", &run_number).positive();
  program.add_option("--wait", &wait).between(0, 600);
  program.add_option("--even", &even).check([](const std::string& given) {
    return given.size() % 2 == 0 ? "" : "odd";
  });
  program.runs([&] { ++ran; });
  for (const StringList& bad : {StringList{"--format", "pdf"},
                                {"--run", "0"},
                                {"--run", "-1"},
                                {"--wait", "601"},
                                {"--wait", "-0.1"},
                                {"--even", "abc"}})
    CHECK_FALSE(taken(program, bad));
  CHECK(ran == 0);
  CHECK(taken(program, {"--format", "json", "--run", "1", "--wait", "600", "--even", "ab"}));
  CHECK(ran == 1);
}

TEST_CASE("arguments may require, or exclude, each other", "[base][command-line]") {
  bool with = false, without = false, reimage = false, through = false;
  std::string save, since, name;
  Verb program("a program");
  program.add_flag("--with", &with);
  program.add_flag("--without", &without).excludes("--with");
  program.add_flag("--through-ram", &through).needs("--reimage");  // which is added after it
  program.add_flag("--reimage", &reimage);
  Verb& counters = program.add_verb("counters", "");
  Verb& what = counters.add_group("what", 1, 1);
  what.add_option("--save", &save);
  what.add_option("--since", &since);
  program.add_verb("show", "").add_option("NAME", &name).required();
  CHECK(taken(program, {}));
  CHECK_FALSE(taken(program, {"--with", "--without"}));
  CHECK_FALSE(taken(program, {"--through-ram"}));
  CHECK(taken(program, {"--through-ram", "--reimage"}));
  CHECK_FALSE(taken(program, {"counters"}));
  CHECK(taken(program, {"counters", "--save", "a"}));
  CHECK_FALSE(taken(program, {"counters", "--save", "a", "--since", "b"}));
  CHECK_FALSE(taken(program, {"show"}));
}

TEST_CASE("the last verb that was given runs, with what it was given", "[base][command-line]") {
  bool json = false, user = false;
  std::string name, ran;
  Given given;
  Verb program("a program");
  program.needs_verb().falls_through();
  program.add_flag("--json", &json);
  Verb& report = program.add_verb("report", "");
  report.add_option("--name", &name);
  report.add_flag("--user", &user);
  report.runs([&](const Given& what) { ran = "report", given = what; });
  report.add_verb("key", "").runs([&] { ran = "key"; });

  CHECK_FALSE(taken(program, {}));
  CHECK(ran.empty());
  const Ran whole = run(program, {"report", "--user", "--name", "n", "--json"});
  CHECK(whole.parsed.verb == "report");
  CHECK(ran == "report");
  CHECK(json);
  CHECK(given.arguments == StringList{"--name", "--user"});
  CHECK(given.rest.empty());
  CHECK(run(program, {"report", "key"}).parsed.verb == "report");
  CHECK(ran == "key");

  // Where options may follow the verb, an unknown one is looked for above it.
  Verb plain("a program");
  plain.add_verb("exec", "").takes_rest().runs([&](const Given& what) { ran = "exec", given = what; });
  CHECK(taken(plain, {"exec", "ls", "-l", "report"}));
  CHECK(ran == "exec");
  CHECK(given.rest == StringList{"ls", "-l", "report"});
  CHECK(given.arguments.empty());
}

TEST_CASE("a variable gives what the command line does not", "[base][command-line]") {
  std::string socket = "/run/default";
  Verb program("a program");
  program.add_option("--socket", &socket).environment("MUSTER_TEST_SOCKET");
  ::setenv("MUSTER_TEST_SOCKET", "/run/other", 1);
  CHECK(taken(program, {}));
  CHECK(socket == "/run/other");
  CHECK(taken(program, {"--socket", "/run/named"}));
  CHECK(socket == "/run/named");
  ::unsetenv("MUSTER_TEST_SOCKET");
}

TEST_CASE("help shows verbs, defaults and footers; what is hidden works all the same",
          "[base][command-line]") {
  std::string report = "muster-report";
  bool ran = false;
  Verb program("a program");
  program.add_version("prog 1.2");
  program.footer("First steps");
  Verb& plain = program.add_verb("plain", "do it plainly");
  Verb& own = program.add_verb("own", "do it otherwise");
  own.footer("Own words");
  own.example("prog own --report here");
  own.add_option("--report", &report, "folder for the report").shows_default();
  program.add_verb("serve", "for programs").hidden().runs([&] { ran = true; });
  (void)plain;

  const Ran help = run(program, {"--help"});
  CHECK(help.parsed.ended);
  CHECK(help.parsed.status == 0);
  CHECK(shows(help.out, "do it plainly"));
  CHECK(shows(help.out, "First steps"));
  CHECK_FALSE(shows(help.out, "serve"));
  // The words of the program are its own.
  CHECK_FALSE(shows(run(program, {"plain", "--help"}).out, "First steps"));
  const std::string of_own = run(program, {"own", "--help"}).out;
  CHECK(shows(of_own, "Own words"));
  CHECK(shows(of_own, "prog own --report here"));
  CHECK_FALSE(shows(of_own, "First steps"));
  CHECK(shows(of_own, "muster-report"));
  CHECK(run(program, {"--version"}).out == "prog 1.2\n");
  CHECK(taken(program, {"serve"}));
  CHECK(ran);
}

TEST_CASE("the manual is printed without a verb", "[base][command-line]") {
  Verb program("prog: a program");
  program.needs_verb();
  program.add_verb("plain", "do it plainly");
  CHECK_FALSE(taken(program, {"--manual"}));
  program.add_manual(8);
  const Ran manual = run(program, {"--manual"});
  CHECK(manual.parsed.ended);
  CHECK(manual.parsed.status == 0);
  CHECK(manual.out.starts_with(".TH PROG 8 "));
  CHECK(shows(manual.out, "prog plain"));
}

TEST_CASE("a command line can be parsed without running its verb", "[base][command-line]") {
  bool ran = false;
  Verb program("a program");
  program.add_verb("plain", "").runs([&] { ran = true; });
  const char* argv[] = {"prog", "plain"};
  CHECK_FALSE(parse_command_line(program, 2, argv, false).ended);
  CHECK_FALSE(ran);
  CHECK_FALSE(parse_command_line(program, 2, argv).ended);
  CHECK(ran);
}
