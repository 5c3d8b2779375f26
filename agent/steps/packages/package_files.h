// .deb files that the module `package` installs by URL and digest.
//
// A file does not stay on the system. Once apt has installed it, a record has the digest and the version of
// its package, so a check needs only the record and dpkg's status. A file that the record does not have
// counts as not installed: a package of that version may have been made from a file with another digest. Of
// each package the record has the last file. Thread safety: stateless functions; a FetchedFiles belongs to
// one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/steps/packages/package_names.h"
#include "base/record.h"

namespace muster::steps {

struct PackageFile {
  std::string url, sha256;
};
MUSTER_RECORD(PackageFile, url, sha256)

// Drops entries without URL and digest, which a playbook has for a variable that is not set, and writes
// digests as "sha256:<hex>". invalid: half an entry, no digest, or another scheme.
Status complete_files(std::vector<PackageFile>& files);

// The package and its exact version, if the record has this file.
std::optional<NamedPackage> package_of(const Files& files, const PackageFile& file);

// Files on their way into apt. They are removed from the disk when this object ends.
class FetchedFiles {
 public:
  explicit FetchedFiles(const Files& files) : files_(files) {}
  ~FetchedFiles();
  FetchedFiles(const FetchedFiles&) = delete;
  FetchedFiles& operator=(const FetchedFiles&) = delete;

  // Downloads a file and reads its package. An error names the URL, also that of another digest.
  Status add(StepContext& context, const PackageFile& file);
  std::vector<std::string> paths() const;
  // To be called once they are installed.
  Status write_record() const;

 private:
  struct One {
    std::string path, sha256;
    NamedPackage package = {};
  };
  const Files& files_;
  std::vector<One> fetched_;
};

}  // namespace muster::steps
