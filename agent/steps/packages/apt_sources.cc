#include "agent/steps/packages/apt_sources.h"

#include <algorithm>
#include <map>

#include "base/lower.h"
#include "base/release_sources.h"
#include "base/split.h"
#include "sys/os_release.h"

namespace muster::steps {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kParts = "/etc/apt/sources.list.d/";
constexpr const char* kTrial = "/var/lib/muster/apt/parts/";

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// One entry of a source file: a line or a stanza.
struct Source {
  std::string file;
  Words types, uris, suites, components;
  std::string signed_by;  // as written in the file; "" if it names no key
};

// Returns the value of an option between [ and ] in a line, such as "arch=amd64 signed-by=/k".
std::string option_of(const std::string& options, const std::string& name) {
  for (const auto& word : split_words(options))
    if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
  return "";
}

// deb [options] URI SUITE COMPONENT...
void read_lines(const std::string& file, const std::string& text, std::vector<Source>& out) {
  for (auto line : split_lines(text)) {
    line = line.substr(0, line.find('#'));
    std::string options;
    if (const auto open = line.find('['), close = line.find(']');
        open != std::string::npos && close != std::string::npos && open < close) {
      options = line.substr(open + 1, close - open - 1);
      line.erase(open, close - open + 1);
    }
    const Words words = split_words(line);
    if (words.size() > 2)
      out.push_back({file,
                     {words[0]},
                     {words[1]},
                     {words[2]},
                     Words(words.begin() + 3, words.end()),
                     option_of(options, "signed-by")});
  }
}

bool is_off(const std::string& enabled) {
  return has({"no", "false", "without", "off", "disable", "0"}, lower(enabled));
}

// Reads deb822: stanzas of "Field: values"; a line that begins with a blank continues the field above.
void read_stanzas(const std::string& file, const std::string& text, std::vector<Source>& out) {
  std::map<std::string, std::string> fields;
  std::string last;
  const auto close = [&] {
    const auto words = [&](const char* name) { return split_words(fields[name]); };
    if (!is_off(fields["enabled"]) && !words("uris").empty())
      out.push_back(
          {file, words("types"), words("uris"), words("suites"), words("components"), fields["signed-by"]});
    fields.clear();
  };
  for (auto line : split_lines(text)) {
    if (!line.empty() && line[0] == '#') continue;
    const auto colon = line.find(':');
    if (split_words(line).empty())
      close();
    else if (line[0] == ' ' || line[0] == '\t')
      fields[last] += " " + line;
    else if (colon != std::string::npos) {
      const Words values = split_words(line.substr(colon + 1));
      last = lower(line.substr(0, colon));
      fields[last] = "";
      for (const auto& value : values) fields[last] += (fields[last].empty() ? "" : " ") + value;
    }
  }
  close();
}

// In the order in which apt reads them.
std::vector<Source> sources_of(const Files& files) {
  std::vector<Source> out;
  read_lines(kSourcesList, files.read(kSourcesList).value_or(""), out);
  std::vector<std::string> names = files.list(kParts);
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    const std::string text = files.read(kParts + name).value_or("");
    if (name.ends_with(".list")) read_lines(kParts + name, text, out);
    if (name.ends_with(".sources")) read_stanzas(kParts + name, text, out);
  }
  return out;
}

bool is_ours(const std::string& file) { return file.starts_with(std::string(kParts) + "muster-"); }

// A release's own file in sources.list.d comes in place of the lines in sources.list.
bool replaces_list(const std::string& file) { return file != kSourcesList && !is_ours(file); }

// apt distinguishes repositories by host and path; `http` and `https` count as the same.
std::string place_of(std::string uri) {
  if (const auto scheme = uri.find("://"); scheme != std::string::npos) uri = uri.substr(scheme + 3);
  while (!uri.empty() && uri.back() == '/') uri.pop_back();
  return uri;
}

// True for "trixie" and "trixie-updates"; for every source if no release is given.
bool is_of_release(const Source& source, const std::string& codename) {
  return std::any_of(source.suites.begin(), source.suites.end(), [&](const std::string& suite) {
    return codename.empty() || suite == codename || suite.starts_with(codename + "-");
  });
}

bool shares(const Source& source, const Words& uris, const Words& suites) {
  const bool suite =
      std::any_of(suites.begin(), suites.end(), [&](const std::string& s) { return has(source.suites, s); });
  if (!suite) return false;
  for (const auto& one : source.uris)
    for (const auto& uri : uris)
      if (place_of(one) == place_of(uri)) return true;
  return false;
}

bool same_key(const Files& files, const std::string& a, const std::string& b) {
  const auto first = files.read(a), second = files.read(b);
  return first.ok() && second.ok() && !first->empty() && *first == *second;
}

}  // namespace

std::vector<std::string> components_in(const Files& files, const std::string& file,
                                       const std::string& codename) {
  Words out;
  for (const auto& source : sources_of(files)) {
    if (source.file != file || !has(source.types, "deb") || !is_of_release(source, codename)) continue;
    for (const auto& component : source.components)
      if (!has(out, component)) out.push_back(component);
  }
  return out;
}

Result<DistributionSource> distribution_source(const Files& files) {
  DistributionSource out;
  out.suite = os_release(files).codename;
  if (out.suite.empty()) return fail(Code::not_found, "/etc/os-release has no VERSION_CODENAME");
  for (const auto& source : sources_of(files)) {
    if (is_ours(source.file)) continue;
    if (!has(source.types, "deb") || !has(source.suites, out.suite) || !has(source.components, "main"))
      continue;
    for (const auto& uri : source.uris)
      if (!has(out.uris, uri)) out.uris.push_back(uri);
    if (source.signed_by == kMirrorKey) out.key = kMirrorKey;
  }
  if (out.uris.empty())
    return fail(Code::not_found, "no apt source on this system provides " + out.suite + " main");
  return out;
}

Result<std::string> common_key(const Files& files, const std::vector<std::string>& uris,
                               const std::vector<std::string>& suites, const std::string& key,
                               const std::string& own_file) {
  std::string named, by;
  for (const auto& source : sources_of(files)) {
    if (source.file == own_file || is_ours(source.file) || !shares(source, uris, suites)) continue;
    if (source.file == kSourcesList && replaces_list(own_file)) continue;
    // apt accepts a source with a key after one without a key, but not the reverse.
    const bool later = source.file != kSourcesList && (own_file == kSourcesList || source.file > own_file);
    if (source.signed_by.empty() && !later) continue;
    if (source.signed_by == named && !by.empty()) continue;
    if (!by.empty() || (source.signed_by != key && !same_key(files, source.signed_by, key)))
      return fail(Code::conflict,
                  source.file + " lists the same repository with " +
                      (source.signed_by.empty() ? "no key" : "Signed-By " + source.signed_by) +
                      (by.empty() ? ", not " + key : ", and " + by + " with " + named) +
                      ", so apt would not read the package lists. Remove one of the two entries");
    named = source.signed_by;
    by = source.file;
  }
  return by.empty() ? key : named;
}

// Tests that apt can read `candidate` together with all other sources: if two sources contradict each other,
// apt reads none. Fetches nothing.
Status read_together(StepContext& context, const std::string& candidate, const std::string& in_place_of) {
  const Files& files = context.files;
  const auto clear = [&files]() -> Status {
    for (const auto& name : files.list(kTrial)) TRY_(files.remove(kTrial + name));
    return Ok{};
  };
  TRY_(clear());
  TRY(const std::string text, files.read(candidate));
  for (const auto& name : files.list(kParts))
    if (kParts + name != in_place_of && (name.ends_with(".list") || name.ends_with(".sources")))
      TRY_(files.write(kTrial + name, files.read(kParts + name).value_or("")));
  const bool list = in_place_of == kSourcesList;
  if (!list) TRY_(files.write(kTrial + in_place_of.substr(std::string(kParts).size()), text));
  Command command;
  command.argv = {"apt-get",
                  "-q",
                  "indextargets",
                  "-o",
                  "Dir::Etc::sourcelist=" + (list                         ? candidate
                                             : replaces_list(in_place_of) ? "/dev/null"
                                                                          : kSourcesList),
                  "-o",
                  std::string("Dir::Etc::sourceparts=") + kTrial};
  command.env = {{"LC_ALL", "C.UTF-8"}};
  auto out = run_ok(context.process, command);
  TRY_(clear());
  if (out.ok()) return Ok{};
  return fail(Code::conflict, out.error().message);
}

Status try_sources(StepContext& context, const std::string& candidate, const std::string& in_place_of) {
  TRY_(read_together(context, candidate, in_place_of));
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
