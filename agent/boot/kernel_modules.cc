#include "agent/boot/kernel_modules.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/split.h"

namespace muster {
namespace {

std::string plain_name(std::string path) {
  path = path.substr(path.find_last_of('/') + 1);
  path = path.substr(0, path.find('.'));
  std::replace(path.begin(), path.end(), '-', '_');
  return path;
}

}  // namespace

Status insert_module(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(Code::not_found, path + ": " + strerror(errno));
  const long rc = ::syscall(SYS_finit_module, fd, "", 0);
  const int error = errno;
  ::close(fd);
  if (rc == 0 || error == EEXIST) return Ok{};
  return fail(Code::failed, path + ": " + strerror(error));
}

ModuleLoader::ModuleLoader(const Files& files, std::string folder, Insert insert)
    : files_(files), folder_(std::move(folder)), insert_(std::move(insert)) {
  for (const std::string& line : split_lines(files_.read(folder_ + "/modules.dep").value_or(""))) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string path = line.substr(0, colon);
    path_of_[plain_name(path)] = path;
    for (const std::string& need : split_words(line.substr(colon + 1))) needs_[path].push_back(need);
  }
  for (const std::string& line : split_lines(files_.read(folder_ + "/modules.softdep").value_or(""))) {
    std::istringstream words(line);
    std::string keyword, name, when, word;
    if (!(words >> keyword >> name) || keyword != "softdep") continue;
    while (words >> word)
      if (word == "pre:" || word == "post:")
        when = word;
      else if (!when.empty())
        (when == "pre:" ? before_ : after_)[plain_name(name)].push_back(word);
  }
  std::istringstream alias(files_.read(folder_ + "/modules.alias").value_or(""));
  for (std::string keyword, pattern, name; alias >> keyword >> pattern >> name;)
    if (keyword == "alias") aliases_.emplace_back(pattern, name);
}

// A soft dependency that cannot be loaded is not an error.
void ModuleLoader::load_soft(const Soft& soft, const std::string& path) {
  const auto found = soft.find(plain_name(path));
  if (found == soft.end()) return;
  for (const auto& name : found->second) (void)load(name);
}

Status ModuleLoader::load_path(const std::string& path) {
  if (!begun_.insert(path).second) return Ok{};
  load_soft(before_, path);
  if (const auto needs = needs_.find(path); needs != needs_.end())
    for (auto need = needs->second.rbegin(); need != needs->second.rend(); ++need) TRY_(load_path(*need));
  TRY_(insert_(files_.real(folder_ + "/" + path)));
  load_soft(after_, path);
  return Ok{};
}

Status ModuleLoader::load(const std::string& name) {
  const auto it = path_of_.find(plain_name(name));
  return it == path_of_.end() ? Status(Ok{}) : load_path(it->second);
}

std::vector<std::string> ModuleLoader::aliases_of_devices() const {
  std::set<std::string> out;
  for (const auto& bus : files_.list("/sys/bus"))
    for (const auto& device : files_.list("/sys/bus/" + bus + "/devices"))
      if (auto text = files_.read_line("/sys/bus/" + bus + "/devices/" + device + "/modalias"); !text.empty())
        out.insert(std::move(text));
  return {out.begin(), out.end()};
}

std::vector<std::string> ModuleLoader::load_for_devices() {
  std::vector<std::string> problems;
  std::set<std::string> seen;
  for (bool more = true; more;) {
    more = false;
    for (const auto& device : aliases_of_devices()) {
      if (!seen.insert(device).second) continue;
      for (const auto& [pattern, module] : aliases_) {
        if (::fnmatch(pattern.c_str(), device.c_str(), 0) != 0) continue;
        more = true;
        if (auto s = load(module); !s) problems.push_back(s.error().message);
      }
    }
  }
  return problems;
}

}  // namespace muster
