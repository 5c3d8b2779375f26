#include "controller/image/shared_cache.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/digest.h"
#include "base/manifest.h"
#include "sys/os.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// Digest of the whole build, including files that the manifest does not cover. Written last and read first.
constexpr const char* kSeal = "/cache-seal";

Status copy_tree(const std::string& from, const std::string& to) {
  std::error_code ec;
  const auto links =
      fs::copy_options::recursive | fs::copy_options::copy_symlinks | fs::copy_options::create_hard_links;
  fs::copy(from, to, links, ec);
  if (ec) {  // another file system
    fs::remove_all(to, ec);
    fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks, ec);
  }
  if (ec) return fail(Code::failed, fmt::format("{} -> {}: {}", from, to, ec.message()));
  return Ok{};
}

// Returns one digest of the names, modes and contents of everything in a build.
Result<std::string> digest_of(const std::string& build) {
  std::map<std::string, std::string> parts;
  std::error_code ec;
  for (auto it = fs::recursive_directory_iterator(build, ec); !ec && it != fs::recursive_directory_iterator();
       it.increment(ec)) {
    const std::string name = it->path().string().substr(build.size());
    if (name == kSeal) continue;
    const auto status = it->symlink_status();
    std::string& part = parts[name];
    part = fmt::format("{:o} ", static_cast<unsigned>(status.permissions()));
    if (fs::is_symlink(status))
      part += fs::read_symlink(it->path()).string();
    else if (fs::is_regular_file(status)) {
      TRY(const std::string digest, sha256_file(it->path().string()));
      part += digest;
    }
  }
  if (ec) return fail(Code::failed, build + ": " + ec.message());
  std::string all;
  for (const auto& [name, part] : parts) all += name + " " + part + "\n";
  return sha256(all);
}

Status sealed_copy(const std::string& build, const std::string& to) {
  TRY_(copy_tree(build, to));
  TRY(const std::string digest, digest_of(to));
  return Files("/").write(to + kSeal, digest);
}

std::string place(const std::string& cache, const std::string& key) {
  const size_t colon = key.find(':');
  return fs::absolute(cache).string() + "/" + (colon == std::string::npos ? key : key.substr(colon + 1));
}

}  // namespace

Status fetch_build(const std::string& cache, const std::string& key, const std::string& into) {
  const std::string from = place(cache, key);
  const auto seal = Files("/").read(from + kSeal);
  if (!seal) return fail(Code::not_found, "not in the shared cache");
  TRY_(copy_tree(from, into));
  const auto digest = digest_of(into);
  std::error_code ec;
  fs::remove(into + kSeal, ec);
  if (digest && *digest == *seal) return Ok{};
  fs::remove_all(into, ec);
  return digest ? fail(Code::corrupt, from + " differs from what was stored") : Status(digest.error());
}

Status keep_build(const std::string& cache, const std::string& key, const std::string& build, bool replace) {
  const std::string to = place(cache, key);
  const Files files("/");
  if (files.exists(to) && !replace) return Ok{};
  // Random: controllers in containers may share a process id, and would remove each other's folders.
  const std::string stage = to + "." + random_hex(8);
  TRY_(files.make_directories(fs::path(to).parent_path(), 0700));
  std::error_code ec;
  if (auto made = sealed_copy(build, stage); !made.ok()) {
    fs::remove_all(stage, ec);
    return made;
  }
  if (replace) fs::remove_all(to, ec);
  fs::rename(stage, to, ec);
  if (!ec) return Ok{};
  std::error_code ignored;
  fs::remove_all(stage, ignored);
  if (files.exists(to)) return Ok{};  // another controller was faster
  return fail(Code::failed, to + ": " + ec.message());
}

}  // namespace muster
