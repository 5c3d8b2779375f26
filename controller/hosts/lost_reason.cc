#include "controller/hosts/lost_reason.h"

#include <array>

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

}  // namespace muster
