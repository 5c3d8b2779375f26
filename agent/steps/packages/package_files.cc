#include "agent/steps/packages/package_files.h"

#include <algorithm>
#include <map>

#include "agent/steps/files/own_file.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

constexpr const char* kFileRecord = "/var/lib/muster/package-files.json";
constexpr const char* kFetched = "/var/cache/muster/packages/";

struct RecordedFile {
  std::string version, sha256;
};
MUSTER_RECORD(RecordedFile, version, sha256)

struct FileRecord {
  std::map<std::string, RecordedFile> packages;
};
MUSTER_RECORD(FileRecord, packages)

// Empty if there is none, or none that can be read: the files are then installed again.
FileRecord read_file_record(const Files& files) {
  const auto json = parse_json(files.read(kFileRecord).value_or(""));
  if (!json.ok()) return {};
  return read_record<FileRecord>(*json, kFileRecord).value_or({});
}

// Of the file's own description; dpkg-deb writes "Package: NAME" and "Version: VERSION".
Result<NamedPackage> read_package(StepContext& context, const std::string& path) {
  TRY(const std::string text, run_tool(context, {"dpkg-deb", "-f", path, "Package", "Version"}));
  NamedPackage out;
  for (const auto& line : split_lines(text)) {
    if (line.starts_with("Package: ")) out.name = trim(line.substr(9));
    if (line.starts_with("Version: ")) out.version = trim(line.substr(9));
  }
  if (out.name.empty() || out.version.empty())
    return fail(Code::corrupt, "the file has no package name or no version");
  return out;
}

}  // namespace

Status complete_files(std::vector<PackageFile>& files) {
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const PackageFile& file) { return file.url.empty() && file.sha256.empty(); }),
              files.end());
  for (auto& [url, digest] : files) {
    TRY_(check_source_url(url, "package"));
    TRY(digest, digest_of(digest, "sha256"));
  }
  return Ok{};
}

std::optional<NamedPackage> package_of(const Files& files, const PackageFile& file) {
  for (const auto& [name, recorded] : read_file_record(files).packages)
    if (recorded.sha256 == file.sha256) return NamedPackage{name, recorded.version};
  return std::nullopt;
}

FetchedFiles::~FetchedFiles() {
  for (const auto& one : fetched_) (void)files_.remove(one.path).ok();
}

Status FetchedFiles::add(StepContext& context, const PackageFile& file) {
  // apt reads a package from a file only if its name ends so.
  const std::string path = kFetched + file.sha256.substr(file.sha256.find(':') + 1) + ".deb";
  TRY_(fetch(context, file.url, file.sha256, path));
  fetched_.push_back({path, file.sha256});
  auto package = read_package(context, path);
  if (!package.ok()) return std::move(package).error().with(file.url);
  fetched_.back().package = std::move(*package);
  return Ok{};
}

std::vector<std::string> FetchedFiles::paths() const {
  std::vector<std::string> out;
  for (const auto& one : fetched_) out.push_back(one.path);
  return out;
}

Status FetchedFiles::write_record() const {
  if (fetched_.empty()) return Ok{};
  FileRecord all = read_file_record(files_);
  for (const auto& [path, digest, package] : fetched_) all.packages[package.name] = {package.version, digest};
  return files_.write(kFileRecord, dump_json(record_json(all), 2) + "\n");
}

}  // namespace muster::steps
