#include "controller/hosts/ssh_command.h"

#include <optional>

namespace muster {
namespace {

constexpr std::string_view kHost = "{host}";
constexpr std::string_view kEnds = " \t\n";

// Reads one word from `at` on and moves `at` after it. nullopt: a quote is not closed.
std::optional<std::string> next_word(const std::string& text, size_t& at) {
  std::string word;
  char quote = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quote == 0 && kEnds.find(c) != std::string_view::npos) break;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'') {
      if (++at == text.size()) return {};
      // Between double quotes, a backslash is literal before most characters.
      if (quote == '"' && text[at] != '"' && text[at] != '\\') word += '\\';
      word += text[at];
    } else {
      word += c;
    }
  }
  if (quote != 0) return {};
  return word;
}

// Text inserted for {host} is not searched again.
size_t put_in_host(std::string& word, const std::string& host) {
  size_t count = 0;
  for (size_t at = 0; (at = word.find(kHost, at)) != std::string::npos; at += host.size(), ++count)
    word.replace(at, kHost.size(), host);
  return count;
}

}  // namespace

Result<std::vector<std::string>> ssh_command(const std::string& destination, const std::string& config) {
  if (destination.empty() || destination[0] == '-')
    return fail(Code::invalid, "'" + destination + "' is not a destination for ssh");
  // No terminal: none is required, and some hosts refuse it. No questions: nothing could answer them. If the
  // host stops responding, the connection ends within a minute. A connection that the user shares is used,
  // but none is left open for later. DEBUG1: lost_reason.h tells banners from reasons by its lines.
  std::vector<std::string> argv = {"ssh", "-T"};
  if (!config.empty()) argv.insert(argv.end(), {"-F", config});
  for (const char* option :
       {"BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15", "ServerAliveCountMax=4",
        "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "RequestTTY=no", "RemoteCommand=none",
        "ControlMaster=no", "PermitLocalCommand=no", "LogLevel=DEBUG1"})
    argv.insert(argv.end(), {"-o", option});
  argv.insert(argv.end(), {"--", destination, "/bin/sh"});
  return argv;
}

Result<std::vector<std::string>> via_command(const std::string& via, const std::string& host) {
  std::vector<std::string> argv;
  size_t hosts = 0;
  for (size_t at = via.find_first_not_of(kEnds); at < via.size(); at = via.find_first_not_of(kEnds, at)) {
    auto word = next_word(via, at);
    if (!word)
      return fail(Code::invalid, "--via: a quote is not closed, or the command ends with a backslash");
    hosts += put_in_host(*word, host);
    argv.push_back(std::move(*word));
  }
  if (argv.empty()) return fail(Code::invalid, "--via: the command is empty");
  if (hosts == 0)
    return fail(Code::invalid,
                "--via: the command does not contain {host}, so it would reach the same host every time");
  argv.push_back("/bin/sh");
  return argv;
}

}  // namespace muster
