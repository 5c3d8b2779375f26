#include "sys/account_files.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/split.h"

namespace muster {
namespace {

std::vector<std::vector<std::string>> lines_of(const Files& files, const std::string& path, size_t fields) {
  std::vector<std::vector<std::string>> out;
  for (const std::string& line : split_lines(files.read(path).value_or("")))
    if (auto parts = account_fields(line); parts.size() >= fields && !parts[0].empty())
      out.push_back(std::move(parts));
  return out;
}

template <typename Entry>
std::optional<Entry> named(const std::vector<Entry>& entries, const std::string& name) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.name == name; });
  return found == entries.end() ? std::nullopt : std::optional<Entry>(*found);
}

}  // namespace

std::vector<std::string> account_fields(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (c == ':')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

int64_t account_id(const std::string& text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? int64_t{value} : -1;
}

std::vector<PasswdEntry> users_of(const Files& files) {
  std::vector<PasswdEntry> out;
  for (auto& fields : lines_of(files, "/etc/passwd", 4)) {
    fields.resize(std::max<size_t>(fields.size(), 7));
    out.push_back({fields[0], account_id(fields[2]), account_id(fields[3]), fields[5], fields[6]});
  }
  return out;
}

std::vector<GroupEntry> groups_of(const Files& files) {
  std::vector<GroupEntry> out;
  for (auto& fields : lines_of(files, "/etc/group", 3)) {
    fields.resize(std::max<size_t>(fields.size(), 4));
    GroupEntry entry{fields[0], account_id(fields[2]), {}};
    for (const std::string& name : split(fields[3], ','))
      if (const std::string member = trim(name); !member.empty()) entry.members.push_back(member);
    out.push_back(std::move(entry));
  }
  return out;
}

std::optional<PasswdEntry> find_user(const Files& files, const std::string& name) {
  return named(users_of(files), name);
}

std::string user_of_id(const Files& files, uint32_t uid) {
  for (const PasswdEntry& user : users_of(files))
    if (user.uid == uid) return user.name;
  return "";
}

std::optional<GroupEntry> find_group(const Files& files, const std::string& name) {
  return named(groups_of(files), name);
}

}  // namespace muster
