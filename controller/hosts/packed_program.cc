#include "controller/hosts/packed_program.h"

#include <utility>

#include "base/gzip.h"
#include "sys/contain.h"

namespace muster {

Result<PackedProgram> pack(std::string_view content) {
  TRY(std::string bytes, gzip(content));
  return PackedProgram{std::make_shared<const std::string>(std::move(bytes)), content.size()};
}

Result<PackedProgram> packed_program(const Files& files, const std::string& path) {
  TRY(const std::string content, files.read(path));
  auto beside = files.read(path + ".gz");
  if (!beside.ok()) return pack(content);
  const auto unpacked = gunzip(*beside, content.size());
  if (!unpacked.ok() || *unpacked != content) return pack(content);
  return PackedProgram{std::make_shared<const std::string>(std::move(*beside)), content.size()};
}

Result<PackedProgram> PackCache::get(const std::string& key,
                                     const std::function<Result<PackedProgram>()>& make) {
  std::promise<Result<PackedProgram>> mine;
  std::shared_future<Result<PackedProgram>> others;
  {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = packed_.try_emplace(key);
    if (fresh)
      at->second = mine.get_future().share();
    else
      others = at->second;
  }
  if (others.valid()) return others.get();
  Result<PackedProgram> result = fail(Code::failed, "a program could not be packed");
  contain_exceptions("packing a program", [&] { result = make(); });
  mine.set_value(result);
  if (!result.ok()) {
    const std::lock_guard lock(mutex_);
    packed_.erase(key);
  }
  return result;
}

PackCache& process_pack_cache() {
  static PackCache cache;
  return cache;
}

}  // namespace muster
