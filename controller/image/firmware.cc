#include "controller/image/firmware.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "controller/image/cpio.h"
#include "controller/image/ram_modules.h"
#include "sys/os.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirmware = "/usr/lib/firmware/";
// Folder of the package -> name under which the kernel looks for it (Documentation/arch/x86/microcode.rst).
constexpr const char* kMicrocode[][2] = {{"amd-ucode", "AuthenticAMD.bin"},
                                         {"intel-ucode", "GenuineIntel.bin"}};

Status copy_file(const std::string& from, const std::string& to) {
  std::error_code ec;
  fs::create_directories(fs::path(to).parent_path(), ec);
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, ec);  // follows links
  if (ec) return fail(Code::failed, fmt::format("{} -> {}: {}", from, to, ec.message()));
  fs::permissions(to, fs::perms(0644), ec);
  return Ok{};
}

bool is_microcode(const std::string& folder, const std::string& name) {
  // AMD's folder also contains signatures and a README.
  return folder == "amd-ucode" ? name.size() > 4 && name.compare(name.size() - 4, 4, ".bin") == 0
                               : std::count(name.begin(), name.end(), '-') == 2;
}

// Sorted by name, so that equal trees give equal archives.
std::vector<std::string> microcode_files(const Files& tree, const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& name : tree.list(kFirmware + folder))
    if (is_microcode(folder, name) && !tree.is_directory(kFirmware + folder + "/" + name))
      out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<std::string> firmware_named_by(const std::string& module) {
  std::vector<std::string> out;
  const std::string mark("\0firmware=", 10);
  for (size_t at = 0; (at = module.find(mark, at)) != std::string::npos;) {
    at += mark.size();
    const std::string name = module.substr(at, module.find('\0', at) - at);
    // A path that leads out of the firmware folder is not accepted.
    const bool plain =
        !name.empty() && name.size() < 256 && name[0] != '/' && name.find("..") == std::string::npos;
    if (plain && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    --at;  // the NUL that ends one entry begins the next
  }
  return out;
}

namespace {

// Finds a firmware file in the tree, compressed or not; returns its name with the suffix of the compression,
// and its path. Links within the tree are followed; links that lead out of it are not.
std::map<std::string, fs::path> found_in(const std::string& tree, const std::string& name) {
  std::map<std::string, fs::path> out;
  for (const char* packed : {"", ".xz", ".zst"}) {
    std::error_code ec;
    const fs::path real = fs::canonical(tree + kFirmware + name + packed, ec);
    if (ec || !fs::is_regular_file(real, ec)) continue;
    const std::string root = fs::canonical(tree, ec).string() + "/";
    if (real.string().compare(0, root.size(), root) == 0) out[name + packed] = real;
  }
  return out;
}

}  // namespace

Result<FirmwareTaken> collect_firmware(const std::string& tree, const std::string& out,
                                       const std::string& folder, const std::vector<std::string>& modules,
                                       uint64_t most) {
  FirmwareTaken taken;
  std::map<std::string, fs::path> wanted;
  for (const auto& path : modules) {
    TRY(const std::string bytes, Files(out).read(folder + "/" + path));
    const auto names = firmware_named_by(bytes);
    bool any = names.empty();
    for (const auto& name : names)
      for (const auto& [file, real] : found_in(tree, name)) wanted[file] = real, any = true;
    if (!any) taken.lacking.push_back(module_name(path));
  }
  std::multimap<uint64_t, std::string> by_size;
  for (const auto& [file, real] : wanted) {
    std::error_code ec;
    by_size.emplace(fs::file_size(real, ec), file);
  }
  for (const auto& [size, file] : by_size) {
    if (taken.bytes + size > most) {
      taken.too_large.push_back(file);
      continue;
    }
    TRY_(copy_file(wanted.at(file).string(), out + kFirmware + file));
    ++taken.files;
    taken.bytes += size;
  }
  return taken;
}

Status collect_microcode(const std::string& tree, const std::string& out) {
  for (const auto& [folder, target] : kMicrocode)
    for (const auto& name : microcode_files(Files(tree), folder)) {
      const std::string file = std::string(kFirmware) + folder + "/" + name;
      TRY_(copy_file(tree + file, out + file));
    }
  return Ok{};
}

Result<std::string> early_microcode(const std::string& tree) {
  CpioWriter cpio;
  bool any = false;
  for (const auto& [folder, target] : kMicrocode) {
    std::string all;
    for (const auto& name : microcode_files(Files(tree), folder)) {
      TRY(const std::string content, Files(tree).read(std::string(kFirmware) + folder + "/" + name));
      all += content;
    }
    if (all.empty()) continue;
    if (!any)
      for (const char* parent : {"kernel", "kernel/x86", "kernel/x86/microcode"}) cpio.directory(parent);
    any = true;
    cpio.file(std::string("kernel/x86/microcode/") + target, all);
  }
  return any ? cpio.finish() : std::string();
}

}  // namespace muster
