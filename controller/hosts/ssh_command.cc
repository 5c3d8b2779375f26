#include "controller/hosts/ssh_command.h"

#include <array>
#include <optional>

#include "base/utf8.h"

namespace muster {
namespace {

constexpr size_t kLineBytes = 300;

// Checked in this order: a line from ssh may be followed by a less specific one.
struct ReasonWords {
  const char* part;
  Code code;
  const char* text;  // shown instead of the line that was found; empty: the line is shown
};
constexpr std::array<ReasonWords, 15> kWords = {{
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", Code::denied,
     "its host key differs from the one in known_hosts: a different machine answered, or the host was "
     "reinstalled"},
    {"host key is known for", Code::denied,
     "its host key is not in known_hosts: connect once by hand and confirm the key, or add the key to the "
     "file"},
    {"Host key verification failed", Code::denied,
     "its host key is missing from known_hosts, or differs from the one there"},
    {"Permission denied (", Code::denied, ""},
    {"Too many authentication failures", Code::denied, ""},
    {"No more authentication methods", Code::denied, ""},
    {"account is currently not available", Code::denied, ""},
    {"Could not resolve hostname", Code::not_found, ""},
    {"Can't open user config file", Code::invalid, ""},
    {"Bad configuration option", Code::invalid, ""},
    {"terminating, ", Code::invalid, ""},  // "FILE: terminating, 1 bad configuration options"
    {"Connection refused", Code::unavailable, ""},
    {"timed out", Code::unavailable, ""},
    {"No route to host", Code::unavailable, ""},
    {"Network is unreachable", Code::unavailable, ""},
}};
// Exit statuses of a shell: 126 found but not executable; 127 not found.
constexpr int kNotExecutable = 126, kNoCommand = 127;

std::string line_with(const std::string& text, const std::string& part) {
  const size_t at = text.find(part);
  if (at == std::string::npos) return "";
  const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
  return last_line(text.substr(begin, text.find('\n', at) - begin));
}

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

std::string last_line(const std::string& text) {
  size_t end = text.size();
  while (end > 0) {
    const size_t begin = text.rfind('\n', end - 1);
    const size_t from = begin == std::string::npos ? 0 : begin + 1;
    std::string line;
    for (const char c : text.substr(from, end - from))
      if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) line += c;
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (!line.empty()) return std::string(last_bytes(line, kLineBytes));
    if (begin == std::string::npos) break;
    end = begin;
  }
  return "";
}

Error lost_reason(const EndedCommand& ended) {
  std::string line = last_line(ended.err);
  if (ended.agent_ran)
    return fail(Code::unavailable, "the connection was lost" + (line.empty() ? "" : ": " + line));
  for (const ReasonWords& words : kWords) {
    const std::string found = line_with(ended.err + "\n" + ended.last_out, words.part);
    if (!found.empty()) return fail(words.code, *words.text ? words.text : found);
  }
  if (line.empty()) line = last_line(ended.last_out);
  if (line.empty())
    line = "the command that connects to the host ended with status " + std::to_string(ended.status);
  const bool no_shell = ended.status == kNotExecutable || ended.status == kNoCommand;
  return fail(no_shell ? Code::failed : Code::unavailable, line);
}

Result<std::vector<std::string>> ssh_command(const std::string& destination, const std::string& config) {
  if (destination.empty() || destination[0] == '-')
    return fail(Code::invalid, "'" + destination + "' is not a destination for ssh");
  // No terminal: none is required, and some hosts refuse it. No questions: nothing could answer them. If the
  // host stops responding, the connection ends within a minute. A connection that the user shares is used,
  // but none is left open for later. Banners are suppressed, errors are not.
  std::vector<std::string> argv = {"ssh", "-T"};
  if (!config.empty()) argv.insert(argv.end(), {"-F", config});
  for (const char* option :
       {"BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15", "ServerAliveCountMax=4",
        "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "RequestTTY=no", "RemoteCommand=none",
        "ControlMaster=no", "PermitLocalCommand=no", "LogLevel=ERROR"})
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
