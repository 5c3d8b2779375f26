#include "controller/image/old_builds.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "controller/image/folder.h"
#include "sys/os.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kContent = "frames.zst";  // goes last: a build that has it is not empty

// Not when it was built: that is the exporter's time of an imported image, and earlier versions noted none.
fs::file_time_type arrived(const std::string& folder) {
  std::error_code ec;
  return fs::last_write_time(folder + "/build.json", ec);  // the earliest time on an error
}

Status drop_content(const std::string& folder) {
  std::vector<std::string> names = Files("/").list(folder);
  std::erase_if(names, [](const std::string& name) {
    return name == "build.json" || name == "manifest.json" || name == kContent;
  });
  names.push_back(kContent);
  for (const auto& name : names) {
    std::error_code ec;
    fs::remove_all(folder + "/" + name, ec);
    if (ec) return fail(Code::failed, folder + "/" + name + ": " + ec.message());
  }
  return Ok{};
}

}  // namespace

bool has_content(const std::string& folder) {
  std::error_code ec;
  return fs::exists(folder + "/" + kContent, ec);
}

Result<size_t> empty_old_builds(const std::string& state_dir, const std::string& image,
                                const std::set<std::string>& used) {
  if (!valid_image_name(image)) return fail(Code::invalid, "not an image name: \"" + image + "\"");
  const std::string folder = fs::absolute(state_dir).string() + "/images/" + image;
  TRY(const LockFile lock, lock_image(folder));
  std::error_code ec;
  const std::string current = fs::canonical(folder + "/current", ec).filename();
  if (ec) return fail(Code::not_found, "no image \"" + image + "\" has been built");
  std::vector<std::pair<fs::file_time_type, std::string>> old;
  for (const auto& name : Files("/").list(folder))
    if (is_build_name(name) && name != current && used.count("sha256:" + name) == 0 &&
        has_content(folder + "/" + name))
      old.emplace_back(arrived(folder + "/" + name), name);
  std::sort(old.begin(), old.end(), std::greater<>());
  size_t emptied = 0;
  for (size_t i = kKeptBuilds; i < old.size(); ++i, ++emptied)
    TRY_(drop_content(folder + "/" + old[i].second));
  return emptied;
}

}  // namespace muster
