#include "agent/steps/packages/apt_sources.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace muster::steps {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  Words out;
  std::istringstream in(text);
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// One source, of either form of file.
struct Entry {
  Words types, uris, suites, components;
  std::string signed_by = {};
};

// deb [options] URI SUITE COMPONENT...
void read_lines(const std::string& text, std::vector<Entry>& into) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    line = line.substr(0, line.find('#'));
    Entry entry;
    if (const auto open = line.find('['), close = line.find(']');
        open != std::string::npos && close != std::string::npos && open < close) {
      for (const auto& option : words_of(line.substr(open + 1, close - open - 1)))
        if (option.rfind("signed-by=", 0) == 0) entry.signed_by = option.substr(10);
      line.erase(open, close - open + 1);
    }
    const Words words = words_of(line);
    if (words.size() < 3) continue;
    entry.types = {words[0]}, entry.uris = {words[1]}, entry.suites = {words[2]};
    entry.components = Words(words.begin() + 3, words.end());
    into.push_back(entry);
  }
}

// deb822: stanzas of "Field: values", a line that begins with a blank goes on with the field above.
void read_stanzas(const std::string& text, std::vector<Entry>& into) {
  std::map<std::string, std::string> fields;
  std::string last;
  const auto close = [&] {
    const auto words = [&](const char* name) { return words_of(fields[name]); };
    if (fields["Enabled"] != "no" && !fields["URIs"].empty())
      into.push_back({words("Types"), words("URIs"), words("Suites"), words("Components"),
                      words("Signed-By").size() == 1 ? words("Signed-By")[0] : ""});
    fields.clear();
  };
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] == '#') continue;
    const auto colon = line.find(':');
    if (words_of(line).empty())
      close();
    else if (line[0] == ' ' || line[0] == '\t')
      fields[last] += " " + line;
    else if (colon != std::string::npos) {
      const Words values = words_of(line.substr(colon + 1));
      last = line.substr(0, colon);
      fields[last] = "";
      for (const auto& value : values) fields[last] += (fields[last].empty() ? "" : " ") + value;
    }
  }
  close();
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

constexpr const char* kParts = "/etc/apt/sources.list.d/";

bool is_source_file(const std::string& name) {
  return ends_with(name, ".list") || ends_with(name, ".sources");
}

// Of all files but those that muster's own steps wrote.
std::vector<Entry> entries(const Files& files) {
  std::vector<Entry> out;
  read_lines(files.read("/etc/apt/sources.list").value_or(""), out);
  std::vector<std::string> names = files.list(kParts);
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    if (name.rfind("muster-", 0) == 0) continue;
    const std::string text = files.read(kParts + name).value_or("");
    if (ends_with(name, ".list")) read_lines(text, out);
    if (ends_with(name, ".sources")) read_stanzas(text, out);
  }
  return out;
}

std::string without_slash(std::string uri) {
  while (!uri.empty() && uri.back() == '/') uri.pop_back();
  return uri;
}

}  // namespace

std::string release_codename(const Files& files) {
  std::istringstream release(
      files.read("/etc/os-release").value_or(files.read("/usr/lib/os-release").value_or("")));
  for (std::string line; std::getline(release, line);)
    if (line.rfind("VERSION_CODENAME=", 0) == 0) return line.substr(17);
  return "";
}

Result<DistributionSource> distribution_source(const Files& files) {
  DistributionSource out;
  out.suite = release_codename(files);
  if (out.suite.empty()) return fail(Code::not_found, "/etc/os-release names no VERSION_CODENAME");
  for (const auto& entry : entries(files)) {
    if (!has(entry.types, "deb") || !has(entry.suites, out.suite) || !has(entry.components, "main")) continue;
    for (const auto& uri : entry.uris)
      if (!has(out.uris, uri)) out.uris.push_back(uri);
  }
  if (out.uris.empty())
    return fail(Code::not_found, "no apt source of this system has " + out.suite + " main");
  return out;
}

std::string keyring_as_named(const Files& files, const std::vector<std::string>& uris,
                             const std::string& keyring) {
  const std::string keys = files.read(keyring).value_or("");
  Words own;
  for (const auto& uri : uris) own.push_back(without_slash(uri));
  for (const auto& entry : entries(files)) {
    if (entry.signed_by.empty() || entry.signed_by == keyring) continue;
    const bool same_place = std::any_of(entry.uris.begin(), entry.uris.end(),
                                        [&](const auto& uri) { return has(own, without_slash(uri)); });
    if (same_place && !keys.empty() && files.read(entry.signed_by).value_or("") == keys)
      return entry.signed_by;
  }
  return keyring;
}

Status read_together(StepContext& context, const std::string& candidate, const std::string& replaces) {
  const Files& files = context.files;
  const std::string folder = "/var/lib/muster/apt/together/", main = "/etc/apt/sources.list";
  const auto clear = [&] {
    for (const auto& name : files.list(folder)) (void)files.remove(folder + name).ok();
  };
  clear();
  TRY(const std::string text, files.read(candidate));
  for (const auto& name : files.list(kParts))
    if (is_source_file(name) && kParts + name != replaces)
      TRY_(files.write(folder + name, files.read(kParts + name).value_or("")));
  if (replaces != main) TRY_(files.write(folder + replaces.substr(replaces.rfind('/') + 1), text));
  Command command;
  command.argv = {"apt-get", "indextargets",
                  "-o",      "Dir::Etc::sourcelist=" + (replaces == main ? candidate : main),
                  "-o",      "Dir::Etc::sourceparts=" + folder};
  command.env = {{"LC_ALL", "C.UTF-8"}};
  command.deadline = kMinute;
  const auto out = run_ok(context.process, command);
  clear();
  if (out.ok()) return Ok{};
  return fail(Code::conflict, "beside this system's other package sources: " + out.error().message);
}

Status try_sources(StepContext& context, const std::string& candidate) {
  Command command;
  command.argv = {"apt-get", "-q",
                  "update",  "--error-on=any",
                  "-o",      "Dir::Etc::sourcelist=" + candidate,
                  "-o",      "Dir::Etc::sourceparts=/dev/null",
                  "-o",      "APT::Get::List-Cleanup=false",
                  "-o",      "DPkg::Lock::Timeout=300"};
  command.env = {{"LC_ALL", "C.UTF-8"}};
  command.deadline = 10 * kMinute;
  auto out = run_ok(context.process, command);
  if (!out.ok()) return std::move(out).error();
  return Ok{};
}

}  // namespace muster::steps
