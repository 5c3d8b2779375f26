// time_servers: makes chrony use only the servers in one file.
//
// Installers, cloud images and DHCP configure other servers: in chrony.conf and the files that it includes
// (in any spelling that chrony accepts), in its source folders, and in /run/chrony-dhcp, which every lease
// rewrites. Lines that name such servers become comments. A reference clock is a device and is kept.
#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/files/own_file.h"
#include "base/lower.h"

namespace muster::steps {
namespace {

constexpr const char* kMain = "/etc/chrony/chrony.conf";
constexpr const char* kDebt = "time-servers";
constexpr const char* kTakenOut = "# Removed by muster: ";
constexpr int kDeepest = 8;  // chrony itself allows ten levels of includes

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Splits a line into words as chrony does: at blanks and tabs, directives in any case. Empty for a comment,
// which begins with !, ;, # or %.
std::vector<std::string> line_words(const std::string& line) {
  auto out = split(line, " \t");
  if (out.empty() || std::string("!;#%").find(out[0][0]) != std::string::npos) return {};
  out[0] = lower(out[0]);
  return out;
}

bool names_servers(const std::string& directive) {
  return directive == "server" || directive == "pool" || directive == "peer" || directive == "initstepslew";
}

// True for folders that running programs write to: a removed file would be written again.
bool is_written_again(const std::string& folder) {
  return folder.starts_with("/run/") || folder.starts_with("/var/run/");
}

// Finds which of chrony's files must change, and the wanted text of each.
class Survey {
 public:
  Survey(const Files& files, std::string keep) : files_(files), keep_(std::move(keep)) {
    visit(kMain, 0);
    if (read_.count(folder_of(keep_))) return;
    std::string& main = edits_.emplace(kMain, files_.read(kMain).value_or("")).first->second;
    if (!main.empty() && main.back() != '\n') main += '\n';
    main += "sourcedir " + folder_of(keep_) + "\n";
  }
  const std::map<std::string, std::string>& edits() const { return edits_; }

 private:
  void visit(const std::string& path, int depth) {
    const auto text = files_.read(path);
    if (path == keep_ || depth > kDeepest || !text.ok()) return;
    std::string out;
    for (const auto& line : split_lines(*text)) out += edited(line, depth) + "\n";
    if (out != *text && out != *text + "\n") edits_[path] = out;
  }

  std::string edited(const std::string& line, int depth) {
    const auto words = line_words(line);
    if (words.empty()) return line;
    if (names_servers(words[0])) return kTakenOut + line;
    if (words[0] == "include" && words.size() == 2) visit_matching(words[1], depth);
    if (words[0] == "confdir")
      for (size_t i = 1; i < words.size(); ++i) visit_matching(words[i] + "/*.conf", depth);
    if (words[0] != "sourcedir") return line;
    std::string kept;
    for (size_t i = 1; i < words.size(); ++i) {
      if (is_written_again(words[i] + "/")) continue;
      kept += " " + words[i];
      read_[words[i].substr(0, words[i].find_last_not_of('/') + 1)] = true;
      visit_matching(words[i] + "/*.sources", depth);
    }
    if (kept.empty()) return kTakenOut + line;
    return std::count(kept.begin(), kept.end(), ' ') + 1 == static_cast<int64_t>(words.size())
               ? line
               : std::string(kTakenOut) + line + "\nsourcedir" + kept;
  }

  void visit_matching(const std::string& pattern, int depth) {
    const std::string folder = folder_of(pattern), name = pattern.substr(pattern.rfind('/') + 1);
    for (const auto& file : files_.list(folder))
      if (fnmatch(name.c_str(), file.c_str(), 0) == 0) visit(folder + "/" + file, depth + 1);
  }

  const Files& files_;
  const std::string keep_;
  std::map<std::string, std::string> edits_;
  std::map<std::string, bool> read_;  // source folders
};

struct WantedTimeServers {
  std::string file;
};
MUSTER_PARAMETERS(WantedTimeServers,
                  required(file, "file that lists the time servers; chrony reads only names in .sources"))

Status complete_time_servers(const StepContext&, WantedTimeServers& want) {
  if (want.file.starts_with('/') && want.file.rfind('/') != 0) return Ok{};
  return fail(Code::invalid, "time_servers: 'file' must be an absolute path");
}

std::map<std::string, std::string> edits(const StepContext& context, const WantedTimeServers& want) {
  if (!context.files.exists(kMain)) return {};
  return Survey(context.files, want.file).edits();
}

Result<CheckResult> check_time_servers(StepContext& context, const WantedTimeServers& want) {
  Diff diff;
  for (const auto& [path, text] : edits(context, want))
    add_difference(context.files, {path, text, look(context.files, path).mode}, diff);
  if (has_pending_reload(context.files, kDebt)) diff.add("chrony has not re-read its files");
  return diff.result();
}

Status apply_time_servers(StepContext& context, const WantedTimeServers& want) {
  const auto wrong = edits(context, want);
  if (!wrong.empty()) TRY_(mark_pending(context.files, kDebt));
  for (const auto& [path, text] : wrong) {
    const FileState state = look(context.files, path);
    TRY_(context.files.write(path, text, state.mode, {state.uid, state.gid}));
  }
  if (!has_pending_reload(context.files, kDebt)) return Ok{};
  if (is_booted(context.files)) TRY_(run_tool(context, {"systemctl", "try-restart", "chrony.service"}));
  return clear_pending(context.files, kDebt);
}

}  // namespace

StepModule time_servers_module() {
  return step_module<WantedTimeServers>({
      .name = "time_servers",
      .help = "Makes chrony use only the time servers in one file: `server`, `pool` and `peer` lines "
              "elsewhere in its configuration become comments, and servers from a DHCP lease are ignored. "
              "Reference clocks are kept. chrony is restarted if something changed.",
      .check = check_time_servers,
      .apply = apply_time_servers,
      .complete = complete_time_servers,
  });
}

}  // namespace muster::steps
