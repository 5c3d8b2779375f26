#include "agent/steps/packages/dpkg_status.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr const char* kStatus = "/var/lib/dpkg/status";
constexpr const char* kUpdates = "/var/lib/dpkg/updates";

struct Record {
  std::string name, architecture;
  InstalledPackage package;
  bool installed = false;
};
// By name and architecture: a library that is installed for two architectures has two records.
using Records = std::map<std::pair<std::string, std::string>, Record>;

// "libssl3 (= 3.5.1-1), other-name"
std::map<std::string, std::string> provides_of(const std::string& text) {
  std::map<std::string, std::string> out;
  for (const auto& one : split(text, ',')) {
    const auto words = split(one, ' ');
    if (words.empty()) continue;
    const bool versioned = words.size() == 3 && words[1] == "(=" && words[2].back() == ')';
    out[words[0].substr(0, words[0].find(':'))] =
        versioned ? words[2].substr(0, words[2].size() - 1) : std::string();
  }
  return out;
}

void take_line(const std::string_view line, Record& record) {
  const auto value = [&](std::string_view field) {
    return line.substr(0, field.size()) == field ? std::string(line.substr(field.size())) : std::string();
  };
  if (auto name = value("Package: "); !name.empty()) record.name = std::move(name);
  if (auto text = value("Architecture: "); !text.empty()) record.architecture = std::move(text);
  if (auto text = value("Version: "); !text.empty()) record.package.version = std::move(text);
  if (const auto text = value("Provides: "); !text.empty()) record.package.provides = provides_of(text);
  if (const auto text = value("Status: "); !text.empty()) {
    record.installed = text.size() > 10 && text.substr(text.size() - 10) == " installed";
    record.package.held = text.starts_with("hold ");
  }
}

// A later record of a package replaces an earlier one.
void take_records(const std::string& text, Records& records) {
  Record record;
  const auto close = [&] {
    if (!record.name.empty()) records[{record.name, record.architecture}] = record;
    record = {};
  };
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    if (line.empty())
      close();
    else
      take_line(line, record);
  }
  close();
}

// Returns the journal's files in the order in which dpkg wrote them. dpkg's temporary files in that folder
// have different names.
std::vector<std::string> journal(const Files& files) {
  std::vector<std::string> out;
  for (const auto& name : files.list(kUpdates))
    if (name.find_first_not_of("0123456789") == std::string::npos)
      out.push_back(std::string(kUpdates) + "/" + name);
  return out;
}

}  // namespace

bool has_journal(const Files& files) { return !journal(files).empty(); }

Result<Packages> installed_packages(const Files& files) {
  Records records;
  TRY(const std::string status, files.read(kStatus));
  take_records(status, records);
  for (const auto& path : journal(files)) take_records(files.read(path).value_or(""), records);
  Packages out;
  for (auto& [key, record] : records)
    if (record.installed) out.insert_or_assign(key.first, std::move(record.package));
  return out;
}

}  // namespace muster::steps
