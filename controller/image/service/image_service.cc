#include "controller/image/service/image_service.h"

#include <filesystem>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/manifest.h"
#include "controller/image/folder.h"
#include "controller/image/old_builds.h"
#include "controller/image/package_list.h"
#include "controller/image/ram.h"
#include "controller/image/recipe.h"
#include "controller/image/transfer.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/thread_umask.h"

namespace muster {

// Of what is made in images and RAM systems (sys/thread_umask.h).
constexpr mode_t kImageUmask = 022;

namespace {

Json image_json(const std::string& state, const std::string& name, bool needed) {
  Json j = {{"name", name}, {"needed", needed}, {"built", false}};
  const auto info = load_image(state, name);
  if (!info.ok()) return j;
  j["built"] = true;
  j["digest"] = info->digest;
  j["os"] = info->manifest.os;
  j["kernel"] = info->manifest.kernel;
  j["stored_bytes"] = info->manifest.stored_size();
  j["raw_bytes"] = info->manifest.raw_size;
  return j;
}

RamRequest ram_request(const DaemonOptions& options, const std::string& folder) {
  RamRequest request;
  request.image_folder = folder;
  request.agent = options.agent_binary;
  request.payload = acceptance_programs(options.accept_binary);
  return request;
}

void warn(const ImageInfo& info, const ImageProgress& report) {
  const std::string why = too_large_to_replace(info.manifest);
  if (!why.empty()) report("warning: " + why, 0);
}

// The build succeeded all the same: what is left is tried again behind the next one.
void empty_old(const DaemonOptions& options, const std::string& image, const std::set<std::string>& used) {
  const auto emptied = empty_old_builds(options.state, image, used);
  if (!emptied.ok())
    log::warning("old builds of an image could not be emptied",
                 {{"image", image}, {"error", emptied.error().message}});
}

}  // namespace

std::set<std::string> images_needed_by(const Spec& spec) {
  std::set<std::string> names;
  for (const auto& node : spec.nodes)
    if (!node.image.empty()) names.insert(node.image);
  return names;
}

std::string ImageService::folder(const std::string& image) const {
  return options_.state + "/images/" + image + "/current";
}

bool ImageService::has(const std::string& image) const {
  std::error_code error;
  return std::filesystem::exists(folder(image), error);
}

std::string ImageService::built_from(const std::string& image) const {
  const Json inputs = build_record(folder(image)).value("inputs", Json());
  return inputs.is_null() ? "" : sha256(dump_json(inputs));
}

TimeMs ImageService::built_at(const std::string& image) const { return muster::built_at(folder(image)); }

bool ImageService::publishes(const std::string& image, const std::string& digest, const std::string& file) {
  if (!valid_image_name(image) || !is_build_name(digest)) return false;
  const std::string key = image + "/" + digest;
  auto found = published_.find(key);
  if (found == published_.end()) {
    const auto text = Files(options_.state).read("/images/" + key + "/manifest.json");
    const auto manifest = text.ok() ? manifest_from_text(*text) : Result<ImageManifest>(text.error());
    if (!manifest.ok() || manifest->digest != "sha256:" + digest) return false;
    std::set<std::string> files = {"manifest.json", "frames.zst"};
    for (const auto& one : manifest->files) files.insert(one.name);
    found = published_.emplace(key, std::move(files)).first;
  }
  return found->second.count(file) > 0;
}

std::vector<KnownRecipe> ImageService::recipes() const {
  if (options_.images.empty()) return {};
  return known_recipes(std::filesystem::absolute(options_.images).string());
}

Json ImageService::list(const Spec* spec) const {
  std::set<std::string> needed;
  if (spec) needed = images_needed_by(*spec);
  std::set<std::string> all = needed;
  for (const auto& name : list_images(options_.state)) all.insert(name);
  Json list = Json::array();
  for (const auto& name : all) list.push_back(image_json(options_.state, name, needed.count(name) > 0));
  return list;
}

std::map<std::string, PlannerImage> ImageService::built(const Spec& spec) const {
  std::map<std::string, PlannerImage> images;
  for (const auto& name : images_needed_by(spec)) {
    const auto info = load_image(options_.state, name);
    if (!info.ok()) continue;
    // The folder's name is the digest's hex part: images never change under a URL.
    const std::string leaf = std::filesystem::path(info->folder).filename().string();
    images[name] = {info->digest,           "/images/" + name + "/" + leaf + "/manifest.json",
                    info->manifest.trial,   info->manifest.boot_size(),
                    slurm_of(info->digest), gpu_driver_of(info->digest)};
  }
  return images;
}

const ImageService::Brought& ImageService::brought_by(const std::string& digest) const {
  const auto [known, fresh] = brought_.try_emplace(digest);
  if (fresh && !digest.empty())
    if (const auto packages = packages_of_image(options_.state, digest); packages.ok()) {
      if (const auto slurm = packages->find("slurmctld"); slurm != packages->end())
        known->second.slurm = slurm->second;
      known->second.gpu_driver = nvidia_driver_in(*packages);
    }
  return known->second;
}

std::string ImageService::slurm_of(const std::string& digest) const { return brought_by(digest).slurm; }
std::string ImageService::gpu_driver_of(const std::string& digest) const {
  return brought_by(digest).gpu_driver;
}

void ImageService::build(const Spec* spec, const std::map<std::string, Playbook>& playbooks,
                         const Order& order, Progress progress, Built done) {
  const auto request = image_request(options_, spec, playbooks, order);
  if (request.ok()) return start({*request, order.used}, std::move(progress), std::move(done));
  failed_builds_.insert(order.name);
  reactor_.post([done, error = request.error()] { done(error); });
}

void ImageService::start(const Job& job, Progress progress, Built done) {
  const std::string& name = job.request.name;
  if (const auto running = building_.find(name); running != building_.end()) {
    reactor_.post([progress] { progress("waiting for another build of this image", 0.01); });
    return running->second.push_back([this, job, progress, done] { start(job, progress, done); });
  }
  building_[name];
  const auto finished = [this, name, done](Result<Image> image) {
    const auto waiting = std::move(building_[name]);
    building_.erase(name);
    if (image.ok())
      failed_builds_.erase(name);
    else
      failed_builds_.insert(name);
    done(std::move(image));
    for (const auto& next : waiting) next();
  };
  in_pool(progress, finished, [job, options = &options_](const Progress& report) -> Result<Image> {
    const auto process = make_process();
    TRY(const auto info, build_image(job.request, *process, report));
    warn(info, report);
    TRY(const auto ram, build_ram_system(ram_request(*options, info.folder)));
    if (!ram.why.empty()) report("RAM system repacked: " + ram.why, 0);
    if (job.used) empty_old(*options, info.name, *job.used);
    return Image{info.digest, info.reused};
  });
}

void ImageService::in_pool(Progress progress, Built done,
                           std::function<Result<Image>(const Progress&)> work) {
  auto result = std::make_shared<Result<Image>>(
      fail(Code::failed, "the image could not be built or imported: see musterd's log"));
  const Progress report = [this, progress](const std::string& what, double fraction) {
    reactor_.post([progress, what, fraction] { progress(what, fraction); });
  };
  reactor_.offload(
      [work, report, result] {
        const ThreadUmask usual(kImageUmask);
        *result = work(report);
      },
      [this, result, done] {
        brought_.clear();  // an image that was not here before may be now
        done(std::move(*result));
      });
}

void ImageService::bring_in(const std::string& path, Progress progress, Built done) {
  in_pool(progress, done, [path, options = &options_](const Progress& report) -> Result<Image> {
    const auto process = make_process();
    TRY(const auto info, import_image(options->state, path, *process, report));
    warn(info, report);
    report("packing the RAM system", 0.95);
    TRY(const auto ram, build_ram_system(ram_request(*options, info.folder)));
    (void)ram;
    return Image{info.digest, info.reused};
  });
}

void ImageService::write_out(const std::string& name, const std::string& path, Progress progress,
                             Built done) {
  in_pool(progress, done, [name, path, options = &options_](const Progress& report) -> Result<Image> {
    const auto process = make_process();
    TRY(const auto info, export_image(options->state, name, path, *process, report));
    return Image{info.digest, false};
  });
}

void ImageService::prepare_ram(const std::set<std::string>& images, std::function<void(Status)> done) {
  std::vector<std::string> folders;
  for (const auto& name : images) folders.push_back(folder(name));
  pack_all(std::move(folders), Ok{}, std::move(done));
}

// Packs one RAM system after the other, because packing one uses all cores.
void ImageService::pack_all(std::vector<std::string> folders, const Status& so_far,
                            std::function<void(Status)> done) {
  if (folders.empty()) return done(so_far);
  const std::string next = folders.back();
  folders.pop_back();
  const auto go_on = [this, folders = std::move(folders), so_far, done = std::move(done)](
                         const Status& packed) { pack_all(folders, packed.ok() ? so_far : packed, done); };
  const auto at_work = packing_.find(next);
  if (at_work != packing_.end()) return at_work->second.push_back(go_on);
  pack(next, {go_on});
}

// Callers that came later may need a newer agent than the packed one: one more check for all of them.
void ImageService::pack(const std::string& folder, std::vector<Packed> requested) {
  packing_[folder];
  const auto result =
      std::make_shared<Status>(fail(Code::failed, "the RAM systems could not be packed: see musterd's log"));
  reactor_.offload(
      [request = ram_request(options_, folder), result] {
        const ThreadUmask usual(kImageUmask);
        const auto ram = build_ram_system(request);
        *result = ram.ok() ? Status(Ok{}) : Status(ram.error());
      },
      [this, folder, requested = std::move(requested), result] {
        auto meanwhile = std::move(packing_[folder]);
        packing_.erase(folder);
        if (!meanwhile.empty()) pack(folder, std::move(meanwhile));
        for (const auto& one : requested) one(*result);
      });
}

}  // namespace muster
