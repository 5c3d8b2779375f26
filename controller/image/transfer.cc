#include "controller/image/transfer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/digest.h"
#include "base/json.h"
#include "base/json_dump.h"
#include "base/record.h"
#include "base/version.h"
#include "controller/image/folder.h"
#include "controller/image/old_builds.h"
#include "controller/image/ram.h"
#include "sys/open_way.h"
#include "sys/path_kind.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead = "muster-image.json";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kFrames = "frames.zst";
constexpr const char* kArchive = "image";         // until it is complete
constexpr const char* kStage = ".build-import-";  // if left over, removed by the next build
constexpr uint64_t kRoom = 64 << 20;  // free space needed besides the archive, for the packed RAM system

struct Head {
  std::string name, digest;
  Json ram, build;
};

// Removes a temporary folder or file when the scope ends, unless it was renamed.
struct Scratch {
  std::string path;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

void report_progress(const ImageProgress& progress, const char* what, double fraction) {
  if (progress) progress(what, fraction);
}

Command tar(std::vector<std::string> arguments) {
  Command c;
  c.argv = {"tar", "--force-local"};
  c.argv.insert(c.argv.end(), arguments.begin(), arguments.end());
  c.env = {{"TAR_OPTIONS", ""}, {"LC_ALL", "C.UTF-8"}};
  c.deadline = 40 * kMinute;
  return c;
}

// ---- parts of an image

Result<Json> ram_entry(const fs::directory_entry& entry, const std::string& path) {
  std::error_code ec;
  const fs::file_status status = entry.symlink_status(ec);
  const unsigned mode = static_cast<unsigned>(status.permissions()) & 07777;
  switch (status.type()) {
    case fs::file_type::directory:
      return Json{{"path", path}, {"kind", "folder"}, {"mode", mode}};
    case fs::file_type::symlink:
      return Json{{"path", path}, {"kind", "link"}, {"target", fs::read_symlink(entry.path(), ec).string()}};
    case fs::file_type::regular: {
      TRY(const std::string digest, sha256_file(entry.path().string()));
      return Json{{"path", path}, {"kind", "file"}, {"mode", mode}, {"sha256", digest}};
    }
    default:
      return fail(Code::invalid, "ram/" + path + ": not a file, link or folder");
  }
}

// Returns every entry of the RAM system's tree, by its path. Links are not followed.
Result<Json> ram_entries(const std::string& folder) {
  std::error_code ec;
  Json out = Json::object();
  if (!fs::is_directory(fs::symlink_status(folder, ec)))
    return fail(Code::corrupt, "the tree of the RAM system is missing");
  for (auto it = fs::recursive_directory_iterator(folder, ec); it != fs::recursive_directory_iterator();
       it.increment(ec)) {
    const std::string path = it->path().string().substr(folder.size() + 1);
    TRY(out[path], ram_entry(*it, path));
  }
  if (ec) return fail(Code::failed, folder + ": " + ec.message());
  return out;
}

Status check_ram(const std::string& folder, const Json& wanted) {
  TRY(const Json found, ram_entries(folder));
  for (const auto& [path, entry] : wanted.items())
    if (!found.contains(path) || found[path] != entry)
      return fail(Code::corrupt,
                  "ram/" + path + (found.contains(path) ? ": differs from its digest" : ": missing"));
  for (const auto& [path, entry] : found.items())
    if (!wanted.contains(path)) return fail(Code::corrupt, "ram/" + path + ": does not belong to the image");
  return Ok{};
}

Status need_plain(const std::string& folder, const std::string& name) {
  std::error_code ec;
  if (fs::is_regular_file(fs::symlink_status(folder + "/" + name, ec))) return Ok{};
  return fail(Code::corrupt, name + ": missing, or not a plain file");
}

Status check_frames(const std::string& folder, const ImageManifest& m, const ImageProgress& progress) {
  TRY_(need_plain(folder, kFrames));
  std::ifstream in(folder + "/" + kFrames, std::ios::binary);
  std::string stored;
  for (const auto& frame : m.frames) {
    if (frame.zero) continue;
    stored.resize(frame.stored_bytes);
    in.read(stored.data(), static_cast<std::streamsize>(stored.size()));
    stored.resize(static_cast<size_t>(in.gcount()));
    TRY_(check_stored_frame(frame, stored));
    report_progress(progress, "verifying", 0.5 + 0.3 * frame.index / static_cast<double>(m.frames.size()));
  }
  if (in.peek() != std::ifstream::traits_type::eof())
    return fail(Code::corrupt, fmt::format("{}: contains data after the last frame", kFrames));
  return Ok{};
}

Status check_files(const std::string& folder, const ImageManifest& m) {
  for (const char* role : {"kernel", "bootloader"})
    if (!m.file(role)) return fail(Code::invalid, fmt::format("the image has no {}", role));
  for (const auto& file : m.files) {
    // File names become program arguments when the image is exported again.
    if (!valid_image_name(file.name)) return fail(Code::invalid, "not a file name: \"" + file.name + "\"");
    TRY_(need_plain(folder, file.name));
    TRY(const std::string digest, sha256_file(folder + "/" + file.name));
    if (digest != file.sha256) return fail(Code::corrupt, file.name + ": differs from its digest");
  }
  return Ok{};
}

// Verifies everything that the image's digest covers.
Result<ImageManifest> check_image(const std::string& folder, const ImageProgress& progress) {
  TRY_(need_plain(folder, kManifest));
  TRY(const std::string text, Files("/").read(folder + "/" + kManifest));
  TRY(ImageManifest m, manifest_from_text(text));
  TRY_(check_files(folder, m));
  TRY_(check_frames(folder, m, progress));
  return m;
}

// ---- muster-image.json

Json head_json(const ImageManifest& m, Json ram, const std::string& folder) {
  Json build = parse_json(Files("/").read(folder + "/build.json").value_or("{}")).value_or(Json::object());
  return {{"format", kTransferFormat}, {"muster", kProgramVersion},         {"name", m.name},
          {"digest", m.digest},        {"ram_version", ram_tree_version()}, {"ram", std::move(ram)},
          {"build", std::move(build)}};
}

// With what every version wrote: the format, and the version of muster.
struct HeadText {
  Json format = {};
  std::string muster = {};
  int ram_version = 0;
  Head head = {};
};
MUSTER_RECORD(Head, name, digest, ram, build)
MUSTER_RECORD(HeadText, format, muster, ram_version, flat(head))

Result<Head> parse_head(const std::string& text) {
  TRY(const Json json, parse_json(text));
  if (!json.is_object() || !json.contains("format")) return fail(Code::invalid, "it has no format version");
  if (json["format"] != kTransferFormat)
    return fail(Code::invalid, fmt::format("format {} is unknown; this muster reads format {}",
                                           dump_json(json["format"]), kTransferFormat));
  TRY(auto read, read_record<HeadText>(json, kHead));
  Head& head = read.head;
  if (!valid_image_name(head.name)) return fail(Code::invalid, "not an image name: \"" + head.name + "\"");
  // It becomes a folder's name.
  if (head.digest.size() != 71 || head.digest.compare(0, 7, "sha256:") != 0 ||
      head.digest.find_first_not_of("0123456789abcdef", 7) != std::string::npos)
    return fail(Code::invalid, "its digest is not a SHA-256");
  if (!head.ram.is_object()) return fail(Code::invalid, "the RAM system's tree must be a map");
  if (head.build.is_null()) return fail(Code::invalid, "`build` is missing");
  if (read.ram_version != ram_tree_version())
    return fail(Code::invalid, fmt::format("its RAM system has version {} (from muster {}), but this muster "
                                           "needs version {}: rebuild the image",
                                           read.ram_version, read.muster, ram_tree_version()));
  return std::move(head);
}

Result<Head> read_head(const std::string& path, Process& process) {
  std::error_code ec;
  if (!fs::exists(path, ec)) return fail(Code::not_found, path + ": no such file or folder");
  const std::string not_exported = path + ": not an image made by `muster image export`";
  Result<std::string> text = fail(Code::invalid, "");
  if (fs::is_directory(path, ec))
    text = Files("/").read(path + "/" + kHead);
  else
    text = run_ok(process, tar({"--extract", "--to-stdout", "--occurrence=1", "--file=" + path, kHead}));
  if (!text) return fail(Code::invalid, fmt::format("{} ({})", not_exported, text.error().message));
  auto head = parse_head(*text);
  if (!head) return std::move(head).error().with(path);
  return head;
}

// ---- import

Status unpack(const std::string& path, const std::string& stage, Process& process) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    fs::copy(path, stage, fs::copy_options::recursive | fs::copy_options::copy_symlinks, ec);
    if (ec) return fail(Code::failed, fmt::format("copying {}: {}", path, ec.message()));
    return Ok{};
  }
  auto out = run_ok(process, tar({"--extract", "--file=" + path, "--directory=" + stage, "--no-same-owner",
                                  "--same-permissions"}));
  if (!out) return std::move(out).error().with("unpacking " + path);
  return Ok{};
}

Status check_room(const std::string& path, const std::string& folder) {
  std::error_code ec;
  uint64_t need = kRoom;
  if (fs::is_regular_file(path, ec)) need += fs::file_size(path, ec);
  const auto space = fs::space(folder, ec);
  if (ec || space.available >= need) return Ok{};
  return fail(Code::unavailable, fmt::format("{} has {} MiB free, but the image needs {} MiB", folder,
                                             space.available >> 20, need >> 20));
}

// Files below STATE/images are served to machines that boot: the image must name each of them.
Status check_names(const std::string& stage, const ImageManifest& m) {
  std::set<std::string> known = {kHead, kManifest, kFrames, "ram"};
  for (const auto& file : m.files) known.insert(file.name);
  for (const auto& name : Files("/").list(stage))
    if (!known.count(name)) return fail(Code::corrupt, name + ": does not belong to the image");
  return Ok{};
}

Result<ImageManifest> check_stage(const std::string& stage, const Head& head, const ImageProgress& progress) {
  TRY(ImageManifest m, check_image(stage, progress));
  if (m.digest != head.digest || m.name != head.name)
    return fail(Code::corrupt, fmt::format("the manifest belongs to {} {}, not to {} {}", m.name, m.digest,
                                           head.name, head.digest));
  TRY_(check_names(stage, m));
  report_progress(progress, "verifying the RAM system", 0.8);
  TRY_(check_ram(stage + "/ram", head.ram));
  return m;
}

// This version already exists: verifies that it is complete.
Result<ImageInfo> present_version(const std::string& folder, const std::string& version, const Head& head,
                                  const ImageProgress& progress) {
  const std::string path = folder + "/" + version;
  auto m = check_image(path, progress);
  const Status ram = m.ok() ? check_ram(path + "/ram", head.ram) : Status(Ok{});
  if (!m || !ram)
    return fail(Code::corrupt,
                fmt::format("{} exists but is damaged ({}): remove that folder and import again", path,
                            m ? ram.error().message : m.error().message));
  TRY_(make_current(folder, version));
  return ImageInfo{head.name, head.digest, path, std::move(m).value(), true};
}

Result<ImageInfo> bring_in(const std::string& path, const std::string& folder, const std::string& version,
                           const Head& head, Process& process, const ImageProgress& progress) {
  const Scratch stage{fmt::format("{}/{}{}", folder, kStage, ::getpid())};
  TRY_(Files("/").make_directories(stage.path));
  TRY_(check_room(path, folder));
  report_progress(progress, "unpacking", 0.05);
  TRY_(unpack(path, stage.path, process));
  auto m = check_stage(stage.path, head, progress);
  if (!m) return std::move(m).error().with(path);
  const Files files("/");
  TRY_(files.remove(stage.path + "/" + kHead));
  TRY_(files.write(stage.path + "/build.json", dump_json(head.build)));
  ::sync();  // the frames must be on disk before the folder gets its final name
  const std::string target = folder + "/" + version;
  std::error_code ec;
  fs::remove_all(target, ec);  // what is left of it after it was emptied
  if (!ec) fs::rename(stage.path, target, ec);
  if (ec) return fail(Code::failed, target + ": " + ec.message());
  TRY_(make_current(folder, version));
  return ImageInfo{head.name, head.digest, target, std::move(m).value(), false};
}

// The folder of `archive` also takes the head.
Status pack_image(const OpenWay& archive, const std::string& head, const ImageManifest& m,
                  const std::string& folder, Process& process) {
  TRY(const OpenWay head_file, archive.sibling(kHead));
  TRY_(head_file.write([&](int fd) { return write_bytes(fd, head, kHead); }, 0644));
  std::vector<std::string> arguments = {"--create",
                                        std::string("--file=") + kArchive,
                                        "--format=gnu",
                                        "--sort=name",
                                        "--owner=0",
                                        "--group=0",
                                        "--numeric-owner",
                                        kHead,
                                        "--directory=" + folder,
                                        kManifest,
                                        kFrames};
  for (const auto& file : m.files) arguments.push_back(file.name);
  arguments.push_back("ram");
  Command packing = tar(arguments);
  packing.folder = archive.folder();
  auto out = run_ok(process, packing);
  return out.ok() ? Status(Ok{}) : std::move(out).error().with("packing the image");
}

}  // namespace

Result<ImageInfo> export_image(const std::string& state_dir, const std::string& name, const std::string& path,
                               Process& process, const ImageProgress& progress) {
  TRY(const OpenWay target, OpenWay::to("/", path));
  TRY(const FileState there, target.look());
  if (there.exists) return fail(Code::conflict, path + " exists");
  TRY(ImageInfo info, load_image(state_dir, name));
  report_progress(progress, "verifying", 0.1);
  auto m = check_image(info.folder, progress);
  if (!m) return std::move(m).error().with(info.folder);
  TRY(Json ram, ram_entries(info.folder + "/ram"));
  const std::string head = dump_json(head_json(*m, std::move(ram), info.folder));
  report_progress(progress, "packing", 0.85);
  TRY_(target.in_private_folder(kArchive, [&](const OpenWay& archive) -> Status {
    TRY_(pack_image(archive, head, *m, info.folder, process));
    return archive.move_to(target);
  }));
  report_progress(progress, "done", 1);
  return info;
}

Result<ImageInfo> import_image(const std::string& state_dir, const std::string& path, Process& process,
                               const ImageProgress& progress) {
  TRY_(expect_at(path, {PathKind::file, PathKind::folder}));
  TRY(const Head head, read_head(path, process));
  const std::string folder = fs::absolute(state_dir).string() + "/images/" + head.name,
                    version = head.digest.substr(7);
  TRY(const LockFile lock, lock_image(folder));
  std::error_code ec;
  for (const auto& left : Files("/").list(folder))
    if (left.starts_with(kStage)) fs::remove_all(folder + "/" + left, ec);
  if (has_content(folder + "/" + version)) return present_version(folder, version, head, progress);
  TRY(ImageInfo info, bring_in(path, folder, version, head, process, progress));
  report_progress(progress, "done", 0.9);
  return info;
}

}  // namespace muster
