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

void take(const Words& types, const Words& uris, const Words& suites, const Words& components,
          DistributionSource& into) {
  if (!has(types, "deb") || !has(suites, into.suite) || !has(components, "main")) return;
  for (const auto& uri : uris)
    if (!has(into.uris, uri)) into.uris.push_back(uri);
}

// deb [options] URI SUITE COMPONENT...
void read_lines(const std::string& text, DistributionSource& into) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    line = line.substr(0, line.find('#'));
    if (const auto open = line.find('['), close = line.find(']');
        open != std::string::npos && close != std::string::npos && open < close)
      line.erase(open, close - open + 1);
    const Words words = words_of(line);
    if (words.size() > 3)
      take({words[0]}, {words[1]}, {words[2]}, Words(words.begin() + 3, words.end()), into);
  }
}

// deb822: stanzas of "Field: values", a line that begins with a blank goes on with the field above.
void read_stanzas(const std::string& text, DistributionSource& into) {
  std::map<std::string, std::string> fields;
  std::string last;
  const auto close = [&] {
    const auto words = [&](const char* name) { return words_of(fields[name]); };
    if (fields["Enabled"] != "no")
      take(words("Types"), words("URIs"), words("Suites"), words("Components"), into);
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
  read_lines(files.read("/etc/apt/sources.list").value_or(""), out);
  const std::string folder = "/etc/apt/sources.list.d/";
  std::vector<std::string> names = files.list(folder);
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    if (name.rfind("muster-", 0) == 0) continue;  // what this very module wrote
    const std::string text = files.read(folder + name).value_or("");
    if (ends_with(name, ".list")) read_lines(text, out);
    if (ends_with(name, ".sources")) read_stanzas(text, out);
  }
  if (out.uris.empty())
    return fail(Code::not_found, "no apt source of this system has " + out.suite + " main");
  return out;
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
