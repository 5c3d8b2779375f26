// docker_settings: sets keys of /etc/docker/daemon.json, and leaves all others to the site.
//
// dockerd reads this one file, without a drop-in folder, and the site's own settings are in it as well. A
// record beside it has what muster wrote: such a value may change and go. A value that the site set is not
// replaced; where the node depends on that key, the step fails and names it. Of lists, elements count.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/packages/dpkg_status.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

constexpr const char* kDaemonFile = "/etc/docker/daemon.json";
constexpr const char* kDaemonRecord = "/etc/docker/daemon.json.muster";
// Of the distributions and of Docker's own archive.
constexpr const char* kDockers[] = {"docker.io", "docker-ce"};

// What muster wrote before it had a record, as the whole file.
const Json& unrecorded() {
  static const Json settings = {{"iptables", false},
                                {"ip6tables", false},
                                {"bridge", "none"},
                                {"live-restore", true},
                                {"log-driver", "local"}};
  return settings;
}

struct WantedDockerSettings {
  Json settings = Json::object(), lists = Json::object();
  std::map<std::string, Json> from_version;
  Texts required;
  Json all = Json::object();
};
MUSTER_PARAMETERS(
    WantedDockerSettings,
    required(settings,
             "keys of daemon.json and their values; objects are merged, lists appended; null or an empty "
             "text: the key must be absent"),
    optional(lists, "more keys whose values are lists: {KEY: list, or one text with blanks in between}"),
    optional(from_version, "more settings for a Docker of at least this major version: {VERSION: settings}"),
    optional(required, "keys that the site must not set otherwise (`features.cdi` within an object)"))

// The major version of the installed Docker ("5:27.3.1-1~debian.12" is 27); 0 if there is none.
Result<int64_t> docker_version(const Files& files) {
  TRY(const auto have, installed_packages(files));
  for (const char* name : kDockers)
    if (const auto it = have.find(name); it != have.end())
      return int64_t{std::atoi(it->second.version.substr(it->second.version.find(':') + 1).c_str())};
  return int64_t{0};
}

Status complete_docker_settings(const StepContext& context, WantedDockerSettings& want) {
  if (!want.settings.is_object() || !want.lists.is_object())
    return fail(Code::invalid, "docker_settings: 'settings' and 'lists' must be objects");
  want.all = want.settings;
  for (const auto& [key, value] : want.lists.items()) {
    if (!value.is_string() && !value.is_array())
      return fail(Code::invalid, "docker_settings: '" + key + "' in 'lists' must be a list or a text");
    want.all[key] = value.is_array() ? value : Json(split_words(value.get<std::string>()));
  }
  if (want.from_version.empty()) return Ok{};
  TRY(const int64_t version, docker_version(context.files));
  for (const auto& [from, settings] : want.from_version) {
    if (from.empty() || from.find_first_not_of("0123456789") != std::string::npos || !settings.is_object())
      return fail(Code::invalid, "docker_settings: 'from_version' must be {MAJOR VERSION: settings}");
    if (version >= std::atoi(from.c_str())) want.all.merge_patch(settings);
  }
  return Ok{};
}

// ---- merging

// One key: its value in the file, the wanted one, and those that muster wrote. Null: absent.
struct DaemonSetting {
  std::string name;  // "log-opts.max-size"
  Json have;
  const Json* want = nullptr;  // none: no longer declared
  std::vector<Json> written = {};
};
// The value that the file gets, and what of it is muster's.
struct SettledSetting {
  Json file, ours;
};
struct MergeNotes {
  std::vector<std::string> changes;
  std::map<std::string, std::string> kept;  // name -> how the site's value differs
};

SettledSetting settle_setting(const DaemonSetting& s, MergeNotes& notes);

std::string shown_setting(const Json& value) { return value.is_null() ? "none" : dump_json(value); }

const Json& member_of(const Json& object, const std::string& key) {
  static const Json none;
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it == object.end() ? none : *it;
}

bool has_element(const Json& list, const Json& element) {
  return std::find(list.begin(), list.end(), element) != list.end();
}

void set_member(Json& object, const std::string& key, const Json& value) {
  if (value.is_null())
    object.erase(key);
  else
    object[key] = value;
}

SettledSetting settle_object(const DaemonSetting& s, MergeNotes& notes) {
  std::set<std::string> keys;
  const auto add_keys = [&keys](const Json& object) {
    if (!object.is_object()) return;
    for (const auto& [key, value] : object.items()) keys.insert(key);
  };
  if (s.want) add_keys(*s.want);
  for (const Json& earlier : s.written) add_keys(earlier);
  SettledSetting out{s.have.is_object() ? s.have : Json::object(), Json::object()};
  for (const auto& key : keys) {
    DaemonSetting inner{s.name.empty() ? key : s.name + "." + key, member_of(s.have, key)};
    if (s.want && s.want->is_object() && s.want->contains(key)) inner.want = &s.want->at(key);
    for (const Json& earlier : s.written)
      if (const Json& value = member_of(earlier, key); !value.is_null()) inner.written.push_back(value);
    const SettledSetting settled = settle_setting(inner, notes);
    set_member(out.file, key, settled.file);
    set_member(out.ours, key, settled.ours);
  }
  if (out.file.empty() && s.have != out.file) out.file = nullptr;
  if (out.ours.empty()) out.ours = nullptr;
  return out;
}

SettledSetting settle_list(const DaemonSetting& s, MergeNotes& notes) {
  const Json wanted = s.want && s.want->is_array() ? *s.want : Json::array();
  Json earlier = Json::array();
  for (const Json& list : s.written)
    if (list.is_array())
      for (const Json& one : list) earlier.push_back(one);
  SettledSetting out{Json::array(), Json::array()};
  for (const Json& one : s.have) {
    const bool is_ours = has_element(earlier, one);
    if (has_element(wanted, one) || !is_ours) out.file.push_back(one);
    if (has_element(wanted, one) && is_ours) out.ours.push_back(one);
  }
  for (const Json& one : wanted) {
    if (has_element(s.have, one)) continue;
    out.file.push_back(one);
    out.ours.push_back(one);
  }
  if (out.file.empty() && s.have != out.file) out.file = nullptr;
  if (out.ours.empty()) out.ours = nullptr;
  if (out.file != s.have)
    notes.changes.push_back(
        fmt::format("{}: {} -> {}", s.name, shown_setting(s.have), shown_setting(out.file)));
  return out;
}

SettledSetting settle_setting(const DaemonSetting& s, MergeNotes& notes) {
  const Json want = s.want && *s.want != "" ? *s.want : Json();
  const auto is = [&](bool (Json::*kind)() const) {
    return (want.is_null() || (want.*kind)()) && (s.have.is_null() || (s.have.*kind)()) &&
           ((want.*kind)() || std::any_of(s.written.begin(), s.written.end(),
                                          [kind](const Json& value) { return (value.*kind)(); }));
  };
  if (is(&Json::is_object)) return settle_object(s, notes);
  if (is(&Json::is_array)) return settle_list(s, notes);
  const bool ours = std::find(s.written.begin(), s.written.end(), s.have) != s.written.end();
  if (s.have == want) return {s.have, ours ? s.have : Json()};
  if (s.have.is_null() || ours) {
    notes.changes.push_back(fmt::format("{}: {} -> {}", s.name, shown_setting(s.have), shown_setting(want)));
    return {want, want};
  }
  if (s.want)
    notes.kept[s.name] = fmt::format("{} instead of {}", shown_setting(s.have), shown_setting(want));
  return {s.have, nullptr};
}

// ---- the files

struct DaemonEdit {
  std::string before, after;  // text of daemon.json
  std::vector<Json> written;  // of the record; two after an interrupted run, else one or none
  Json ours;
  OwnFile record;
  MergeNotes notes;
};

std::string record_text(const std::vector<Json>& written) { return dump_json(Json(written), 2) + "\n"; }

Result<DaemonEdit> edit_of(const StepContext& context, const WantedDockerSettings& want) {
  DaemonEdit out;
  const auto text = context.files.read(kDaemonFile);
  if (!text.ok() && text.error().code != Code::not_found) return text.error();
  out.before = text.value_or("");
  const auto have = parse_json(trim(out.before).empty() ? "{}" : out.before);
  if (!have.ok() || !have->is_object())
    return fail(Code::conflict,
                fmt::format("{} was left as it is, because it is not a JSON object: {}", kDaemonFile,
                            have.ok() ? have->type_name() : have.error().message));
  const auto record = parse_json(context.files.read(kDaemonRecord).value_or("null"));
  if (record.ok() && record->is_array())
    out.written.assign(record->begin(), record->end());
  else if (*have == unrecorded())
    out.written = {unrecorded()};
  const auto [file, ours] = settle_object({"", *have, &want.all, out.written}, out.notes);
  out.after =
      out.notes.changes.empty() ? out.before : dump_json(file.is_null() ? Json::object() : file, 2) + "\n";
  out.ours = ours;
  out.record = {kDaemonRecord, ours.is_null() ? "" : record_text({ours})};
  return out;
}

// Names the keys on which the node depends and which the site set otherwise; "" if there is none.
std::string site_conflict(const DaemonEdit& edit, const WantedDockerSettings& want) {
  std::vector<std::string> out;
  for (const auto& name : want.required)
    if (const auto it = edit.notes.kept.find(name); it != edit.notes.kept.end())
      out.push_back(fmt::format("`{}` is {}", name, it->second));
  if (out.empty()) return "";
  return fmt::format("{}: {}; muster did not write this: correct it, or remove the key", kDaemonFile,
                     join(out, ", "));
}

Result<CheckResult> check_docker_settings(StepContext& context, const WantedDockerSettings& want) {
  TRY(const DaemonEdit edit, edit_of(context, want));
  Diff diff;
  if (const auto conflict = site_conflict(edit, want); !conflict.empty()) diff.add(conflict);
  for (const auto& change : edit.notes.changes) diff.add(change);
  if (edit.notes.changes.empty() && differs_from(context.files, edit.record))
    diff.add(std::string(kDaemonRecord) + " differs");
  CheckResult out = diff.result();
  std::vector<std::string> names;
  for (const auto& [name, text] : edit.notes.kept) names.push_back(name);
  if (!names.empty()) out.note = fmt::format("{}: set by the site: {}", kDaemonFile, join(names, ", "));
  return out;
}

Status apply_docker_settings(StepContext& context, const WantedDockerSettings& want) {
  TRY(DaemonEdit edit, edit_of(context, want));
  if (const auto conflict = site_conflict(edit, want); !conflict.empty())
    return fail(Code::conflict, conflict);
  if (edit.before != edit.after) {
    const FileState state = look(context.files, kDaemonFile);
    if (state.exists && !state.regular)
      return fail(Code::conflict, std::string(kDaemonFile) + " is not a regular file");
    // First what is about to be written: after a power cut, either value is known as muster's.
    edit.written.push_back(edit.ours);
    TRY_(context.files.write(kDaemonRecord, record_text(edit.written)));
    TRY_(context.files.write(kDaemonFile, edit.after, state.exists ? state.mode : 0644,
                             {state.uid, state.gid}));
  }
  return put(context.files, edit.record);
}

}  // namespace

StepModule docker_settings_module() {
  return step_module<WantedDockerSettings>({
      .name = "docker_settings",
      .help =
          "Sets keys of /etc/docker/daemon.json and leaves the site's keys as they are. What muster wrote "
          "is recorded in /etc/docker/daemon.json.muster: these values, and elements of lists, are "
          "changed, and removed once they are no longer declared. A key that the site set otherwise is "
          "kept and noted; if it is in `required`, the step fails and names it. A file that is not JSON is "
          "not changed. Docker is restarted by the module `service` (`restart_for`).",
      .check = check_docker_settings,
      .apply = apply_docker_settings,
      .complete = complete_docker_settings,
  });
}

}  // namespace muster::steps
