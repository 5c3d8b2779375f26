// muster secret: sets, lists and removes secrets. Values can be stored but never read back.
#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <iostream>
#include <iterator>

#include "base/time.h"
#include "cli/cli_context.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

// Reads the value. From a pipe: all input without the final newline; from a terminal: one line, without echo.
std::string read_value() {
  std::string value;
  if (::isatty(STDIN_FILENO) == 1) {
    termios before{};
    ::tcgetattr(STDIN_FILENO, &before);
    termios silent = before;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    fmt::print(stderr, "value: ");
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    std::getline(std::cin, value);
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fmt::print(stderr, "\n");
    return value;
  }
  value.assign(std::istreambuf_iterator<char>(std::cin), {});
  if (!value.empty() && value.back() == '\n') value.pop_back();
  return value;
}

void set(Context& context, const std::string& name) {
  const std::string value = read_value();
  if (value.empty()) return complain(context, fail(Code::invalid, "no value on standard input"));
  const auto done = Api(context).put("/v1/secrets/" + url_encode(name), value);
  if (!done.ok()) return complain(context, done.error());
  show(context, *done, [&] { fmt::print("secret {} set\n", name); });
}

void list_secrets(Context& context) {
  const auto secrets = Api(context).get("/v1/secrets");
  if (!secrets.ok()) return complain(context, secrets.error());
  show(context, *secrets, [&] {
    const Json list = secrets->value("secrets", Json::array());
    if (list.empty()) fmt::print("no secrets yet: `muster secret set NAME`\n");
    for (const Json& s : list)
      fmt::print("{:<24} {}\n", s.value("name", ""), to_iso8601(s.value("time", int64_t{0})));
  });
}

void remove(Context& context, const std::string& name) {
  const auto done = Api(context).remove("/v1/secrets/" + url_encode(name));
  if (!done.ok()) return complain(context, done.error());
  show(context, *done, [&] { fmt::print("secret {} removed\n", name); });
}

}  // namespace

void add_secret(Verb& app, Context& context) {
  Verb& verb = app.add_verb("secret", "manage passwords and keys, which the controller stores encrypted");
  verb.needs_verb();
  auto name = std::make_shared<std::string>();
  Verb& set_verb = verb.add_verb("set", "read a value from standard input and store it");
  set_verb.add_option("NAME", name.get()).required();
  set_verb.example("muster secret set bmc");
  set_verb.example("muster secret set bmc < /run/bmc-login");
  set_verb.runs([name, &context] { set(context, *name); });
  verb.add_verb("list", "list the names of the secrets, never their values")
      .example("muster secret list")
      .runs([&context] { list_secrets(context); });
  Verb& rm = verb.add_verb("rm", "delete a secret");
  rm.add_option("NAME", name.get()).required();
  rm.example("muster secret rm bmc");
  rm.runs([name, &context] { remove(context, *name); });
  verb.footer(
      "The value is read from standard input, on a terminal without being shown. That of BMCs is "
      "USER:PASSWORD.");
  verb.example("muster secret set bmc").example("muster secret list");
}

}  // namespace muster::cli
