#include "agent/steps/accounts.h"

#include <charconv>

#include <fmt/format.h>

#include "agent/steps/step_modules.h"

namespace muster::steps {
std::string password_field(const Files& files, const std::string& name) {
  for (const std::string& line : split_lines(files.read("/etc/shadow").value_or("")))
    if (const auto fields = account_fields(line); fields.size() > 1 && fields[0] == name) return fields[1];
  return "";
}

FileState look(const Files& files, const std::string& path) { return files.look(path).value_or({}); }

Result<unsigned> parse_mode(const std::string& text) {
  unsigned mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc() || end != text.data() + text.size() || text.size() < 3 || text.size() > 4 ||
      mode > 07777)
    return fail(Code::invalid, "mode '" + text + "' must be three or four octal digits");
  return mode;
}

Result<int64_t> uid_of(const Files& files, const std::string& owner) {
  if (owner.empty()) return int64_t{-1};
  if (const int64_t id = account_id(owner); id >= 0) return id;
  if (const auto user = find_user(files, owner); user && user->uid >= 0) return user->uid;
  return fail(Code::not_found, "user '" + owner + "' does not exist");
}

Result<int64_t> gid_of(const Files& files, const std::string& group) {
  if (group.empty()) return int64_t{-1};
  if (const int64_t id = account_id(group); id >= 0) return id;
  if (const auto entry = find_group(files, group); entry && entry->gid >= 0) return entry->gid;
  return fail(Code::not_found, "group '" + group + "' does not exist");
}

Result<Access> access_of(const Files& files, const std::string& mode, const std::string& owner,
                         const std::string& group) {
  Access out;
  TRY(out.mode, parse_mode(mode));
  const auto uid = uid_of(files, owner), gid = gid_of(files, group);
  if (!uid.ok() || !gid.ok()) out.lacks = (uid.ok() ? gid : uid).error().message;
  out.uid = uid.value_or(-1);
  out.gid = gid.value_or(-1);
  return out;
}

std::string permission_diff(const FileState& state, unsigned mode, int64_t uid, int64_t gid) {
  std::vector<std::string> out;
  if (state.mode != mode) out.push_back(fmt::format("mode {:04o} -> {:04o}", state.mode, mode));
  if (uid >= 0 && state.uid != uid) out.push_back(fmt::format("owner {} -> {}", state.uid, uid));
  if (gid >= 0 && state.gid != gid) out.push_back(fmt::format("group {} -> {}", state.gid, gid));
  return join(out, ", ");
}

}  // namespace muster::steps
