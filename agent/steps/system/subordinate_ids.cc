// subordinate_ids: /etc/subuid and /etc/subgid have a range for each declared user, which overlaps no other.
//
// Container engines trust these files: with a range that two accounts share, one reads the files in the
// other's containers, and podman starts nothing if a range contains the account's own id.
#include "agent/steps/system/subordinate_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/files/own_file.h"

namespace muster::steps {
namespace {

constexpr int64_t kFirstUid = 1000, kLastUid = 60000;  // UID_MIN and UID_MAX of Debian and Ubuntu
constexpr int64_t kFirstSubordinateId = 100000;        // SUB_UID_MIN
constexpr const char* kSubordinateUids = "/etc/subuid";
constexpr const char* kSubordinateGids = "/etc/subgid";

struct WantedSubordinateIds {
  std::vector<Json> users;
  std::set<std::string> names = {};
};
MUSTER_PARAMETERS(WantedSubordinateIds, required(users, "names of accounts, or objects with a `name`"))

Status complete_subordinate_ids(const StepContext&, WantedSubordinateIds& want) {
  for (const Json& user : want.users) {
    const std::string name = user.is_object()   ? text_of(user, "name")
                             : user.is_string() ? value_text(user)
                                                : "";
    if (name.empty()) return fail(Code::invalid, "subordinate_ids: 'users' must be names, or have a 'name'");
    want.names.insert(name);
  }
  return Ok{};
}

struct IdRange {
  int64_t first = 0, count = 0;
};
using IdRanges = std::vector<IdRange>;

bool overlaps_one_of(const IdRange& range, const IdRanges& others) {
  return std::any_of(others.begin(), others.end(), [&](const IdRange& other) {
    return range.first < other.first + other.count && other.first < range.first + range.count;
  });
}

// "alice:100000:65536"; the owner may be a UID. Other lines have no owner.
struct IdLine {
  std::string text, owner = "";
  IdRange range = {};
  bool clashes = false;
};

std::vector<IdLine> id_lines(const std::string& text) {
  std::vector<IdLine> out;
  for (const auto& line : split_lines(text)) {
    out.push_back({line});
    const auto fields = account_fields(line);
    if (fields.size() != 3 || account_id(fields[1]) < 0 || account_id(fields[2]) < 0) continue;
    out.back().owner = fields[0];
    out.back().range = {account_id(fields[1]), account_id(fields[2])};
  }
  return out;
}

bool is_owner(const IdLine& line, const PasswdEntry& user) {
  return line.owner == user.name || line.owner == std::to_string(user.uid);
}

// Behind the ranges that follow from UIDs, if the account's own is taken.
Result<IdRange> free_range(const PasswdEntry& user, const IdRanges& taken) {
  const auto own = subordinate_start(user.uid);
  if (!own)
    return fail(Code::invalid, fmt::format("{} has UID {}: only accounts with a UID from {} to {} can have "
                                           "subordinate ids",
                                           user.name, user.uid, kFirstUid, kLastUid));
  IdRange out{*own, kSubordinateIds};
  if (!overlaps_one_of(out, taken)) return out;
  out.first = *subordinate_start(kLastUid);
  while (overlaps_one_of(out, taken)) out.first += kSubordinateIds;
  if (out.first + out.count - 1 <= kLastSubordinateId) return out;
  return fail(Code::conflict, "no range of subordinate ids is free for " + user.name);
}

// The text that the file must have. `taken`: the ids of accounts themselves.
Result<std::string> with_ranges(const std::string& text, const std::vector<PasswdEntry>& users,
                                IdRanges taken) {
  std::vector<IdLine> lines = id_lines(text);
  for (const auto& line : lines)
    if (std::none_of(users.begin(), users.end(), [&](const auto& user) { return is_owner(line, user); }))
      taken.push_back(line.range);
  // What users have is kept before there are new ranges, which then lie elsewhere.
  std::vector<PasswdEntry> lacking;
  for (const auto& user : users) {
    bool enough = false;
    for (auto& line : lines) {
      if (!is_owner(line, user)) continue;
      line.clashes = overlaps_one_of(line.range, taken);
      if (line.clashes) continue;
      taken.push_back(line.range);
      enough = enough || line.range.count >= kSubordinateIds;
    }
    if (!enough) lacking.push_back(user);
  }
  for (const auto& user : lacking) {
    TRY(const IdRange range, free_range(user, taken));
    taken.push_back(range);
    lines.push_back({fmt::format("{}:{}:{}", user.name, range.first, range.count)});
  }
  std::string out;
  for (const auto& line : lines)
    if (!line.clashes) out += line.text + "\n";
  return out;
}

struct IdFile {
  std::string path, before, after;
};

Result<IdFile> id_file(const Files& files, const char* path, const std::vector<PasswdEntry>& users,
                       const IdRanges& taken) {
  const auto text = files.read(path);
  if (!text.ok() && text.error().code != Code::not_found) return text.error();
  IdFile out{path, text.value_or(""), ""};
  TRY(out.after, with_ranges(out.before, users, taken));
  return out;
}

// not_found: an account does not exist.
Result<std::vector<IdFile>> id_files(const Files& files, const WantedSubordinateIds& want) {
  std::vector<PasswdEntry> users;
  for (const auto& name : want.names) {
    const auto user = find_user(files, name);
    if (!user) return fail(Code::not_found, "user " + name + " does not exist");
    users.push_back(*user);
  }
  IdRanges uids, gids;
  for (const auto& user : users_of(files)) uids.push_back({user.uid, 1});
  for (const auto& group : groups_of(files)) gids.push_back({group.gid, 1});
  TRY(IdFile of_users, id_file(files, kSubordinateUids, users, uids));
  TRY(IdFile of_groups, id_file(files, kSubordinateGids, users, gids));
  return std::vector<IdFile>{std::move(of_users), std::move(of_groups)};
}

Result<CheckResult> check_subordinate_ids(StepContext& context, const WantedSubordinateIds& want) {
  const auto found = id_files(context.files, want);
  // An account may be created by an earlier step of the same order that has not been applied yet.
  if (!found.ok() && found.error().code == Code::not_found) return differs(found.error().message);
  if (!found.ok()) return found.error();
  Diff diff;
  for (const auto& [path, before, after] : *found)
    if (before != after) diff.add(path + " " + first_difference(before, after));
  return diff.result();
}

Status apply_subordinate_ids(StepContext& context, const WantedSubordinateIds& want) {
  TRY(const auto found, id_files(context.files, want));
  for (const auto& [path, before, after] : found) {
    if (before == after) continue;
    const FileState state = look(context.files, path);
    TRY_(context.files.write(path, after, state.exists ? state.mode : 0644));
  }
  return Ok{};
}

}  // namespace

std::optional<int64_t> subordinate_start(int64_t uid) {
  if (uid < kFirstUid || uid > kLastUid) return std::nullopt;
  return kFirstSubordinateId + (uid - kFirstUid) * kSubordinateIds;
}

StepModule subordinate_ids_module() {
  return step_module<WantedSubordinateIds>({
      .name = "subordinate_ids",
      .help =
          "Gives each listed account 65,536 subordinate UIDs and GIDs in /etc/subuid and /etc/subgid, "
          "which rootless containers need. The range follows from the UID, if it is free, and is the same "
          "on every node and after a re-image. Ranges that accounts have are kept; one of a listed account "
          "that overlaps another, or contains the id of an account, is replaced.",
      .check = check_subordinate_ids,
      .apply = apply_subordinate_ids,
      .complete = complete_subordinate_ids,
  });
}

}  // namespace muster::steps
