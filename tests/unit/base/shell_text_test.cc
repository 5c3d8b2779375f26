// Words and first lines for shells, read by those of this machine.
#include "base/shell_text.h"

#include "sys/os.h"
#include "tests/catch.h"

using namespace muster;

namespace {

// What `shell` prints that reads `input`.
std::string printed_by(std::vector<std::string> shell, const std::string& input) {
  const auto out = make_process()->run({.argv = std::move(shell), .input = input});
  REQUIRE(out.ok());
  CHECK(out->exit_code == 0);
  return out->out;
}

}  // namespace

TEST_CASE("shell text: a word keeps every character", "[base]") {
  CHECK(shell_word("plain") == "'plain'");
  CHECK(shell_word("a b'c$d") == "'a b'\\''c$d'");
  CHECK(shell_word("") == "''");
}

TEST_CASE("shell text: the next line is a command of any lines, and nothing behind it is read", "[base]") {
  const std::string command =
      "printf '%s|' \"it's\" '\\n' 'a\tb' '%d'\nfor i in 1 2; do\n  echo $i\ndone\ncat\n";
  const std::string right = "it's|\\n|a\tb|%d|1\n2\nthe rest\n";
  const std::string input = as_next_line(command) + "the rest\n";
  CHECK(input.find('\n') == input.size() - std::string("the rest\n").size() - 1);
  for (const char* shell : {"dash", "bash", "busybox", "ksh", "zsh", "fish", "tcsh", "csh"}) {
    if (!Files().exists(std::string("/usr/bin/") + shell)) continue;
    CAPTURE(shell);
    std::vector<std::string> argv = {shell};
    if (argv[0] == "busybox") argv.push_back("sh");
    argv.insert(argv.end(), {"-c", run_next_line("sh", "")});
    CHECK(printed_by(argv, input) == right);
    argv.back() = run_next_line("/bin/sh", "echo; echo first; ");
    CHECK(printed_by(argv, input) == "\nfirst\n" + right);
  }
}
