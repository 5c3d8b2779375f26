#include "controller/hosts/pack_cache.h"

#include <utility>

#include "base/gzip.h"
#include "sys/contain.h"

namespace muster {
namespace {

Result<PackedProgram> packed(const std::function<Result<std::string>()>& read) {
  TRY(const std::string content, read());
  TRY(std::string bytes, gzip(content));
  return PackedProgram{std::make_shared<const std::string>(std::move(bytes)), content.size()};
}

}  // namespace

Result<PackedProgram> PackCache::get(const std::string& key,
                                     const std::function<Result<std::string>()>& read) {
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
  contain_exceptions("packing a program", [&] { result = packed(read); });
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
