#include "controller/bringup/playbook_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "controller/spec/reader/own_playbooks.h"
#include "sys/os.h"

namespace muster {
namespace {

const std::string kSuffix = ".yaml";
const std::string kProfiles = "/acceptance";
// Two writes within one tick of the file system's clock give the same mtime, so files that were modified just
// before they were read are read again the next time.
constexpr DurationMs kSettles = 2 * kSecond;

bool is_playbook(const std::string& entry) {
  return entry.size() > kSuffix.size() &&
         entry.compare(entry.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
}

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

bool same(const std::vector<OwnPlaybook>& a, const std::vector<OwnPlaybook>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const OwnPlaybook& x, const OwnPlaybook& y) {
    return x.file == y.file && x.text == y.text;
  });
}

}  // namespace

PlaybookCache::PlaybookCache(std::string folder, std::function<TimeMs()> now)
    : folder_(std::move(folder)), now_(std::move(now)) {}

PlaybookCache::Listing PlaybookCache::look() const {
  Listing out;
  const Files files;
  for (const std::string& below : {std::string(), kProfiles})
    for (const auto& entry : files.list(folder_ + below)) {
      if (!is_playbook(entry)) continue;
      const std::string name = below + "/" + entry;
      struct stat info {};
      if (::stat((folder_ + name).c_str(), &info) != 0) info = {};
      out.emplace_back(name, info.st_size, nanoseconds(info.st_mtim), nanoseconds(info.st_ctim), info.st_ino);
    }
  return out;
}

Status PlaybookCache::load(const std::string& below, const std::string& prefix, Playbooks& into) const {
  const Files files;
  for (const auto& entry : files.list(folder_ + below)) {
    if (!is_playbook(entry)) continue;
    const std::string path = folder_ + below + "/" + entry;
    TRY(const auto text, files.read(path));
    auto parsed = parse_own_playbook({prefix + entry, text});
    if (!parsed.errors.empty()) {
      parsed.errors.front().file = path;
      return fail(Code::invalid, to_string(parsed.errors.front(), path));
    }
    if (parsed.playbook.overlay)
      return fail(Code::invalid, path + ": only a spec's own playbook can be an overlay");
    const std::string name = prefix + entry.substr(0, entry.size() - kSuffix.size());
    into.all[name] = std::move(parsed.playbook);
    into.digests[name] = sha256(text);
  }
  return Ok{};
}

Result<PlaybookCache::Shared> PlaybookCache::shipped() {
  if (folder_.empty()) return fail(Code::not_found, "no playbooks found: start musterd with --playbooks DIR");
  Listing now = look();
  if (shipped_ && settled_ && now == seen_) return shipped_;
  const int64_t settled_before = (now_() - kSettles) * 1'000'000;
  auto read = std::make_shared<Playbooks>();
  shipped_.reset();
  TRY_(load("", "", *read));
  TRY_(load(kProfiles, "acceptance/", *read));
  // Keep the listing from before the files were read, so that a change in the meantime is noticed next time.
  seen_ = std::move(now);
  settled_ = std::all_of(seen_.begin(), seen_.end(), [&](const FileState& file) {
    return std::get<2>(file) < settled_before && std::get<3>(file) < settled_before;
  });
  shipped_ = std::move(read);
  return shipped_;
}

Result<PlaybookCache::Shared> PlaybookCache::with(const std::vector<OwnPlaybook>& own) {
  TRY(const Shared below, shipped());
  if (own.empty()) return below;
  if (with_own_ && below_own_ == below && same(own_, own)) return with_own_;
  auto made = std::make_shared<Playbooks>(*below);
  const auto errors = add_own_playbooks(own, made->all);
  if (!errors.empty()) return fail(Code::invalid, to_string(errors.front(), "cluster.yaml"));
  // The digest of an overlaid playbook covers both texts.
  for (const auto& one : own) {
    std::string& digest = made->digests[key_of_file(one.file)];
    digest = sha256(digest + "\n" + one.file + "\n" + one.text);
  }
  own_ = own;
  below_own_ = below;
  with_own_ = std::move(made);
  return with_own_;
}

}  // namespace muster
