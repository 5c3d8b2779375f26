#include "agent/measuring/tied_process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/split.h"

namespace muster {
namespace {

constexpr int kNotStarted = 127;

// Returns the path where execvp() would find it; "" if it is not found.
std::string path_of(const std::string& name, const Command& command) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* inherited = command.clean_env ? nullptr : ::getenv("PATH");
  const auto own = command.env.find("PATH");
  const std::string places = own != command.env.end() ? own->second
                             : inherited              ? inherited
                                                      : "/usr/sbin:/usr/bin:/sbin:/bin";
  for (const std::string& place : split(places, ':'))
    if (!place.empty() && ::access((place + "/" + name).c_str(), X_OK) == 0) return place + "/" + name;
  return "";
}

std::string with_name(std::string text, const std::string& self, const std::string& name) {
  if (const size_t at = text.find(self); at != std::string::npos) text.replace(at, self.size(), name);
  return text;
}

}  // namespace

Result<Output> TiedProcess::run(const Command& command) {
  if (command.argv.empty() || command.argv[0].empty())
    return fail(Code::invalid, "empty command: no program given");
  const std::string& name = command.argv[0];
  const std::string path = path_of(name, command);
  if (path.empty()) return fail(Code::not_found, "starting " + name + ": program not found");
  Command tied = command;
  tied.argv = {self_, "tied", std::to_string(::getpid()), path};
  tied.argv.insert(tied.argv.end(), command.argv.begin() + 1, command.argv.end());
  auto output = inner_.run(tied);
  if (output.ok()) return output;
  return fail(output.error().code, with_name(output.error().message, self_, name));
}

int become_tied(const std::vector<std::string>& words) {
  if (words.size() < 2) return 2;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != std::atoi(words[0].c_str())) return kNotStarted;  // it has ended already
  std::vector<char*> argv;
  for (size_t i = 1; i < words.size(); ++i) argv.push_back(const_cast<char*>(words[i].c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  std::fprintf(stderr, "starting %s: %s\n", argv[0], strerror(errno));
  return kNotStarted;
}

}  // namespace muster
