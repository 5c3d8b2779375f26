#include "controller/image/cpio.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

#include "sys/os.h"

namespace muster {

void CpioWriter::entry(const std::string& path, unsigned mode, std::string_view content, unsigned links,
                       unsigned major, unsigned minor) {
  const auto pad = [this] { out_.append((4 - out_.size() % 4) % 4, '\0'); };
  fmt::format_to(std::back_inserter(out_),
                 "070701{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
                 inode_++, mode, 0, 0, links, 0, content.size(), 0, 0, major, minor, path.size() + 1, 0);
  out_ += path;
  out_ += '\0';
  pad();
  out_ += content;
  pad();
}

void CpioWriter::directory(const std::string& path, unsigned mode) {
  entry(path, S_IFDIR | mode, "", 2, 0, 0);
}
void CpioWriter::file(const std::string& path, std::string_view content, unsigned mode) {
  entry(path, S_IFREG | mode, content, 1, 0, 0);
}
void CpioWriter::symlink(const std::string& path, const std::string& target) {
  entry(path, S_IFLNK | 0777, target, 1, 0, 0);
}
void CpioWriter::device(const std::string& path, unsigned mode, unsigned major, unsigned minor) {
  entry(path, S_IFCHR | mode, "", 1, major, minor);
}

Status CpioWriter::tree(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::error_code ec;
  for (auto it = fs::recursive_directory_iterator(folder, ec); it != fs::recursive_directory_iterator();
       it.increment(ec)) {
    if (ec) break;
    paths.push_back(it->path().string());
  }
  if (ec) return fail(Code::failed, folder + ": " + ec.message());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    const std::string name = path.substr(folder.size() + 1);
    const auto status = fs::symlink_status(path, ec);
    const auto mode = static_cast<unsigned>(status.permissions()) & 07777;
    if (fs::is_symlink(status)) {
      symlink(name, fs::read_symlink(path, ec).string());
    } else if (fs::is_directory(status)) {
      directory(name, mode);
    } else {
      TRY(const std::string content, Files("/").read(path));
      file(name, content, mode);
    }
  }
  return Ok{};
}

std::string CpioWriter::finish() {
  entry("TRAILER!!!", 0, "", 1, 0, 0);
  out_.append((512 - out_.size() % 512) % 512, '\0');
  inode_ = 1;
  return std::move(out_);
}

Result<std::string> compress_initramfs(const std::string& archive, int level) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> ctx(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(ctx.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(ctx.get(), ZSTD_c_windowLog, 23);
  ZSTD_CCtx_setParameter(ctx.get(), ZSTD_c_nbWorkers, 2);  // ignored by a libzstd built without threads
  std::string out(ZSTD_compressBound(archive.size()), '\0');
  const size_t n = ZSTD_compress2(ctx.get(), out.data(), out.size(), archive.data(), archive.size());
  if (ZSTD_isError(n)) return fail(Code::failed, std::string("zstd: ") + ZSTD_getErrorName(n));
  out.resize(n);
  return out;
}

}  // namespace muster
