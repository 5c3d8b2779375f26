#include "controller/image/image.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/digest.h"
#include "base/json.h"
#include "base/json_dump.h"
#include "base/split.h"
#include "base/utf8.h"
#include "controller/image/customize.h"
#include "controller/image/folder.h"
#include "controller/image/inputs.h"
#include "controller/image/package_list.h"
#include "controller/image/package_sources.h"
#include "controller/image/ram.h"
#include "controller/image/recipe_tree.h"
#include "controller/image/shared_cache.h"
#include "sys/clock.h"
#include "sys/os_release.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// Must be increased whenever this code makes a different image from the same recipe.
constexpr int kBuilder = 5;
constexpr const char* kDpkgStatus = "/dpkg-status";  // in the staging folder, until the packages are recorded
constexpr const char* kFsUuid = "6d757374-6572-4f53-8000-000000000001";
constexpr const char* kHashSeed = "6d757374-6572-4f53-8000-000000000002";

struct Build {
  const ImageRequest& request;
  Process& process;
  const ImageProgress& progress;
  ImageRecipe recipe = {};
  Json inputs = {};
  ImageSources sources = {};
  std::string folder = {};  // <state>/images/<name>
  std::string stage = {};   // <folder>/.build-...
  std::string tree() const { return stage + "/tree"; }
};

void report(const Build& b, const std::string& what, double fraction) {
  if (b.progress) b.progress(what, fraction);
}

// Makes `argv` work on a tree of other owners: root runs it as it is, others in mmdebstrap's user namespace.
std::vector<std::string> as_root(std::vector<std::string> argv) {
  if (::geteuid() == 0) return argv;
  argv.insert(argv.begin(), {"mmdebstrap", "--unshare-helper"});
  return argv;
}

// The shared cache's key: includes the name (in the manifest) and the mirrors (versions of packages differ).
std::string cache_key(const Build& b) {
  return sha256(dump_json(Json{{"inputs", b.inputs}, {"name", b.request.name}, {"sources", b.sources.text}}));
}

Status make_tree(const Build& b) {
  return make_recipe_tree({b.recipe, b.sources, kBuilder, b.folder, b.stage, b.request.shared_cache,
                           b.request.rebuild, b.process,
                           [&](const std::string& what, double fraction) { report(b, what, fraction); }});
}

// Returns the size of the files of `tree` in KiB, and their number.
std::pair<uint64_t, uint64_t> measure(const std::string& tree) {
  uint64_t kib = 0, count = 0;
  std::error_code ec;
  for (auto it = fs::recursive_directory_iterator(tree, fs::directory_options::skip_permission_denied, ec);
       it != fs::recursive_directory_iterator(); it.increment(ec)) {
    ++count;
    if (it->is_regular_file(ec) && !it->is_symlink(ec))
      kib += (it->file_size(ec) + 4095) / 4096 * 4;
    else if (it->is_directory(ec))
      kib += 4;
  }
  return {kib, count};
}

Status make_file_system(const Build& b, const std::string& raw) {
  const auto [kib, count] = measure(b.tree());
  // Adds little free space, because the agent grows the file system to the size of its slot: 64 MiB journal,
  // inode tables, and 8 % for extent trees and reserve.
  const uint64_t size = (kib * 108 / 100 + 112 * 1024 + 4095) / 4096 * 4096;
  const uint64_t inodes = std::max<uint64_t>(count * 3 / 2, size / 16);
  Command c;
  c.argv = as_root({"mke2fs",
                    "-q",
                    "-F",
                    "-t",
                    "ext4",
                    "-b",
                    "4096",
                    "-m",
                    "1",
                    "-L",
                    "muster-root",
                    "-U",
                    kFsUuid,
                    "-N",
                    std::to_string(inodes),
                    "-J",
                    "size=64",
                    "-O",
                    "metadata_csum_seed",
                    "-E",
                    fmt::format("hash_seed={},lazy_itable_init=1,lazy_journal_init=1", kHashSeed),
                    "-d",
                    b.tree(),
                    raw,
                    fmt::format("{}k", size)});
  // The release's own settings: those of a newer builder have features that its e2fsck does not know.
  c.env = {{"MKE2FS_CONFIG", b.tree() + "/etc/mke2fs.conf"},
           {"E2FSPROGS_FAKE_TIME", kBuildEpoch},
           {"SOURCE_DATE_EPOCH", kBuildEpoch},
           {"LC_ALL", "C.UTF-8"},
           {"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}};
  c.deadline = 20 * kMinute;
  auto out = run_ok(b.process, c);
  // Those of a newer release have features that this builder's mke2fs does not know; that e2fsck knows the
  // builder's.
  if (!out && has(out.error().message, "Invalid filesystem option set")) {
    c.env.erase("MKE2FS_CONFIG");
    out = run_ok(b.process, c);
  }
  if (!out) return std::move(out).error().with("making the file system");
  return Ok{};
}

Status add_file(ImageManifest& m, const std::string& folder, const std::string& role,
                const std::string& name) {
  const std::string path = folder + "/" + name;
  TRY(std::string digest, sha256_file(path));
  m.files.push_back({role, name, std::move(digest), fs::file_size(path)});
  return Ok{};
}

Status copy(const std::string& from, const std::string& to) {
  std::error_code ec;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, ec);
  if (ec) return fail(Code::failed, from + ": " + ec.message());
  fs::permissions(to, fs::perms(0644), ec);
  return Ok{};
}

// The program is where the release has it; older ones have it in another package than later ones.
Status copy_loader(const Build& b) {
  const std::string path = "/usr/lib/systemd/boot/efi/systemd-bootx64.efi";
  const Release* release = find_release(b.recipe.suite);
  if (!Files(b.tree()).exists(path))
    return fail(Code::not_found, fmt::format("the image has no boot loader {}{}", path,
                                             release ? ", which " + release->codename +
                                                           " has in the package " + release->loader_package
                                                     : ""));
  return copy(b.tree() + path, b.stage + "/BOOTX64.EFI");
}

// Makes everything except the file system: kernel, boot loader, initrd, and the tree of the RAM system.
Status collect_files(const Build& b, ImageManifest& m) {
  TRY(m.kernel, kernel_release(b.tree()));
  m.os = os_release(Files(b.tree())).pretty_name;
  m.trial = Files(b.tree()).exists(kTrialGenerator);
  TRY_(copy(b.tree() + "/boot/vmlinuz-" + m.kernel, b.stage + "/vmlinuz"));
  TRY_(copy_loader(b));
  TRY_(add_file(m, b.stage, "kernel", "vmlinuz"));
  TRY_(add_file(m, b.stage, "bootloader", "BOOTX64.EFI"));
  if (needs_initrd(b.tree(), m.kernel)) {
    TRY_(make_boot_initrd(b.tree(), m.kernel, b.stage + "/initrd"));
    TRY_(add_file(m, b.stage, "initrd", "initrd"));
  }
  TRY(const RamContents ram, collect_ram_tree(b.tree(), m.kernel, b.stage + "/ram"));
  report(b, "RAM system: " + to_text(ram), 0.7);
  std::error_code ec;
  fs::copy_file(b.tree() + "/var/lib/dpkg/status", b.stage + kDpkgStatus,
                fs::copy_options::overwrite_existing,
                ec);  // needed later to list the packages that changed
  return Ok{};
}

Status write_records(const Build& b, ImageManifest& m) {
  m.name = b.request.name;
  m.digest = manifest_digest(m);
  const Files files("/");
  TRY_(files.write(b.stage + "/manifest.json", to_text(m)));
  const Json packages = installed_packages(files.read(b.stage + kDpkgStatus).value_or(""));
  std::error_code ec;
  fs::remove(b.stage + kDpkgStatus, ec);
  return files.write(b.stage + "/build.json", dump_json(Json{{"inputs", b.inputs},
                                                             {"sources", b.sources.text},
                                                             {"packages", packages},
                                                             {kBuiltAt, wall_clock()}}));
}

bool complete(const ImageInfo& info) {
  std::error_code ec;
  if (fs::file_size(info.folder + "/frames.zst", ec) != info.manifest.stored_size() || ec) return false;
  for (const auto& f : info.manifest.files)
    if (fs::file_size(info.folder + "/" + f.name, ec) != f.size || ec) return false;
  return fs::is_directory(info.folder + "/ram", ec);
}

Result<ImageInfo> publish(const Build& b) {
  const Files files("/");
  TRY(const std::string text, files.read(b.stage + "/manifest.json"));
  TRY(ImageManifest m, manifest_from_text(text));
  const std::string name = m.digest.substr(7);
  const std::string folder = b.folder + "/" + name;
  ImageInfo info{m.name, m.digest, folder, std::move(m), false};
  std::error_code ec;
  if (complete(info)) {
    // An identical image was built before, from different inputs. Files that its digest does not cover may
    // differ: replace the RAM system's tree, and delete its record so that it is packed again.
    fs::remove_all(folder + "/ram", ec);
    fs::remove(folder + "/ram.json", ec);
    for (const char* part : {"/ram", "/build.json"})
      if (!ec) fs::rename(b.stage + part, folder + part, ec);
    if (!ec) fs::remove_all(b.stage, ec);
  } else {
    fs::remove_all(folder, ec);  // it is damaged
    fs::rename(b.stage, folder, ec);
  }
  if (ec) return fail(Code::failed, folder + ": " + ec.message());
  TRY_(make_current(b.folder, name));
  return info;
}

void remove_tree(const Build& b, const std::string& path) {
  (void)b.process.run({.argv = as_root({"rm", "-rf", "--one-file-system", path}), .deadline = 5 * kMinute});
}

// Reuses the kept layers and builds the missing ones above them; the tree is mounted at b.tree().
Status stack_layers(const Build& b, const Layers& layers, const std::vector<std::string>& keys) {
  if (!layers.kept(keys[0])) {
    TRY_(make_tree(b));
    TRY_(layers.keep(keys[0], b.tree(), ""));
  }
  std::vector<std::string> below = {keys[0]};
  for (size_t i = 0; i < b.request.layers.size(); ++i) {
    const ImageLayer& layer = b.request.layers[i];
    const double fraction =
        0.2 + 0.45 * static_cast<double>(i) / static_cast<double>(b.request.layers.size());
    if (layers.kept(keys[i + 1]))
      report(b, "layer " + layer.name + ": reused from the last build", fraction);
    else {
      report(b, "layer " + layer.name, fraction);
      TRY_(layers.mount(below, b.tree()));
      TRY_(layers.run(layer, b.request.agent, b.tree(),
                      [&](const std::string& line) { report(b, layer.name + ": " + line, fraction); }));
      TRY_(layers.unmount(b.tree()));
      TRY_(layers.keep_upper(keys[i + 1], b.stage + "/log"));
    }
    below.push_back(keys[i + 1]);
  }
  TRY_(layers.mount(below, b.tree()));
  const std::string script = b.stage + "/finish.sh";
  std::vector<std::vector<std::string>> units;
  for (const auto& layer : b.request.layers)
    units.insert(units.end(), layer.units.begin(), layer.units.end());
  TRY_(Files("/").write(script, finish_script(b.recipe, units), 0755));
  auto out = run_ok(b.process, {.argv = {script, b.tree()}, .deadline = 10 * kMinute});
  if (!out) return std::move(out).error().with("finishing the tree");
  return Ok{};
}

// Makes the parts that need the complete tree: kernel, boot loader, RAM system, and <stage>/root.ext4.
Status pack(const Build& b, ImageManifest& files) {
  report(b, "kernel and RAM system", 0.65);
  TRY_(collect_files(b, files));
  report(b, "file system", 0.72);
  return make_file_system(b, b.stage + "/root.ext4");
}

Status build_tree(const Build& b, ImageManifest& files) {
  if (b.request.layers.empty()) {
    TRY_(make_tree(b));
    TRY_(pack(b, files));
    remove_tree(b, b.tree());
    return Ok{};
  }
  const Layers layers(b.folder, b.stage, b.process);
  const auto keys = layer_keys(build_inputs(b.recipe, b.request.variant, kBuilder), b.request.layers);
  if (b.request.rebuild) layers.prune({});
  auto packed = in_private_mounts([&]() -> Status {
    TRY_(stack_layers(b, layers, keys));
    return pack(b, files);
  });
  if (!packed.ok() && packed.error().code == Code::denied)
    return std::move(packed).error().with("building image layers requires root");
  TRY_(std::move(packed));
  remove_tree(b, b.stage + "/upper");
  layers.prune(keys);
  return Ok{};
}

Status build(const Build& b) {
  ImageManifest files;
  TRY_(build_tree(b, files));
  report(b, "frames", 0.8);
  const std::string raw = b.stage + "/root.ext4";
  TRY(ImageManifest m, write_frames(raw, b.stage + "/frames.zst", b.request.level));
  m.kernel = files.kernel;
  m.os = files.os;
  m.trial = files.trial;
  m.files = files.files;
  std::error_code ec;
  for (const char* leftover : {"/root.ext4", "/customize.sh", "/overlay", "/finish.sh", "/upper", "/work",
                               "/tree", "/ours", "/lists", "/log", "/mirror.asc"})
    fs::remove_all(b.stage + leftover, ec);
  return write_records(b, m);
}

// Returns why `present` is out of date; "" if it is up to date.
std::string why_not(const ImageInfo& present, const Json& inputs) {
  if (!complete(present)) return "files of the present image are missing or truncated";
  const auto text = Files("/").read(present.folder + "/build.json");
  const auto record = text ? parse_json(*text) : Result<Json>(text.error());
  if (!record || !record->is_object()) return "the inputs of the present image are not recorded";
  return input_changes(record->value("inputs", Json()), inputs);
}

// The same for an image that may not be there, as the request has it.
std::string why_due(const ImageRequest& request, const Result<ImageInfo>& present, const Json& inputs) {
  if (!present) return "not built yet";
  return request.rebuild ? "a rebuild was requested" : why_not(*present, inputs);
}

// Fetches the build from the shared cache, else builds it; afterwards it is complete in the staging folder.
Status fetch_or_build(const Build& b) {
  const std::string& cache = b.request.shared_cache;
  const std::string key = cache_key(b);
  if (!cache.empty() && !b.request.rebuild) {
    auto fetched = fetch_build(cache, key, b.stage);
    if (fetched) report(b, "taken from the shared cache", 0.95);
    if (fetched || fetched.error().code != Code::not_found) return fetched;
  }
  // If the builder is not root, a different user of the namespace writes to this folder.
  TRY_(Files("/").make_directories(b.stage, 0755));
  if (::geteuid() != 0) fs::permissions(b.stage, fs::perms(0777));
  TRY_(build(b));
  if (cache.empty()) return Ok{};
  auto kept = keep_build(cache, key, b.stage, b.request.rebuild);
  return kept ? std::move(kept) : Status(std::move(kept).error().with("the shared image cache"));
}

}  // namespace

Result<ImageRecipe> effective_recipe(const ImageRequest& request) {
  ImageRecipe recipe = request.recipe;
  const auto kernel = recipe.kernel.find(request.variant);
  if (kernel == recipe.kernel.end())
    return fail(Code::invalid, fmt::format("the recipe of image {} has no kernel variant \"{}\"",
                                           request.name, request.variant));
  recipe.packages.push_back(kernel->second);
  recipe.packages.insert(recipe.packages.end(), recipe.firmware.begin(), recipe.firmware.end());
  recipe.packages.insert(recipe.packages.end(), request.packages.begin(), request.packages.end());
  std::sort(recipe.packages.begin(), recipe.packages.end());
  recipe.packages.erase(std::unique(recipe.packages.begin(), recipe.packages.end()), recipe.packages.end());
  // Later files replace earlier ones: first muster's own, then the recipe's, then those of baked steps.
  std::vector<RecipeFile> files = builtin_files();
  files.insert(files.end(), recipe.files.begin(), recipe.files.end());
  files.insert(files.end(), request.files.begin(), request.files.end());
  recipe.files = std::move(files);
  recipe.run.insert(recipe.run.end(), request.run.begin(), request.run.end());
  return recipe;
}

Result<ImageInfo> load_image(const std::string& state_dir, const std::string& name) {
  if (!valid_image_name(name)) return fail(Code::invalid, "not an image name: \"" + name + "\"");
  const std::string current = state_dir + "/images/" + name + "/current";
  std::error_code ec;
  const fs::path folder = fs::canonical(current, ec);
  if (ec) return fail(Code::not_found, "no image \"" + name + "\" has been built");
  TRY(const std::string text, Files("/").read(folder.string() + "/manifest.json"));
  auto manifest = manifest_from_text(text);
  if (!manifest) return std::move(manifest).error().with("image " + name);
  if (manifest->digest.substr(7) != folder.filename())
    return fail(Code::corrupt, "image " + name + ": its folder name differs from its digest");
  return ImageInfo{name, manifest->digest, folder.string(), std::move(manifest).value(), true};
}

std::vector<std::string> list_images(const std::string& state_dir) {
  std::vector<std::string> out;
  const Files files("/");
  for (const auto& name : files.list(state_dir + "/images"))
    if (valid_image_name(name) && files.exists(state_dir + "/images/" + name + "/current"))
      out.push_back(name);
  return out;
}

std::string too_large_to_replace(const ImageManifest& manifest) {
  const uint64_t twice = 2 * manifest.boot_size();
  if (twice <= kSmallEspBytes) return "";
  const bool all = twice > kEspBytes;
  return fmt::format(
      "kernel and initrd ({} MiB) fit only once on the EFI system partition of {} MiB{}: nodes with this "
      "image "
      "cannot be re-imaged",
      manifest.boot_size() >> 20, (all ? kEspBytes : kSmallEspBytes) >> 20,
      all ? "" : fmt::format(", which disks below {} GiB have", kSmallDiskBytes >> 30));
}

Result<std::string> why_build(const ImageRequest& request) {
  if (!valid_image_name(request.name))
    return fail(Code::invalid, "not an image name: \"" + request.name + "\"");
  TRY(const ImageRecipe recipe, effective_recipe(request));
  return why_due(request, load_image(request.state_dir, request.name),
                 build_inputs(recipe, request.variant, kBuilder, request.layers));
}

Result<ImageInfo> build_image(const ImageRequest& request, Process& process, const ImageProgress& progress) {
  if (!valid_image_name(request.name))
    return fail(Code::invalid, "not an image name: \"" + request.name + "\"");
  Build b{request, process, progress};
  TRY(b.recipe, effective_recipe(request));
  b.inputs = build_inputs(b.recipe, request.variant, kBuilder, request.layers);
  b.folder = fs::absolute(request.state_dir).string() + "/images/" + request.name;
  TRY(const LockFile lock, lock_image(b.folder));
  auto present = load_image(request.state_dir, request.name);
  const std::string why = why_due(request, present, b.inputs);
  if (why.empty()) return present;
  report(b, why, 0);
  b.stage = fmt::format("{}/.build-{}", b.folder, ::getpid());
  TRY(b.sources, find_sources(b.recipe, own_key(b.stage), Files(request.host_root), process));
  for (const auto& name : Files("/").list(b.folder))
    if (name.starts_with(".build-")) remove_tree(b, b.folder + "/" + name);
  const auto built = fetch_or_build(b);
  auto info = built ? publish(b) : Result<ImageInfo>(built.error());
  if (!info)
    remove_tree(b, b.stage);
  else
    report(b, "done", 1);
  return info;
}

}  // namespace muster
