// ImageService: the images the spec needs, built on request, and their RAM systems.
//
// Building takes minutes and runs in the worker pool; everything else is quick. An image is defined by its
// recipe, its kernel variant and its baked playbooks; it is stored under the spec's name for it. Thread: the
// reactor's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/time.h"
#include "controller/image/image.h"
#include "controller/image/programs.h"
#include "controller/image/service/image_request.h"
#include "controller/options/options.h"
#include "controller/plan/planner_input.h"
#include "controller/spec/playbook.h"
#include "controller/spec/spec.h"
#include "sys/reactor.h"

namespace muster {

// The names of the images that nodes of this spec get.
std::set<std::string> images_needed_by(const Spec& spec);

class ImageService {
 public:
  struct Image {
    std::string digest;
    bool reused = false;  // it existed already; nothing was built or imported
  };
  // Called on the reactor's thread. Fraction 0: not a phase but the reason for the build ("packages: +htop").
  using Progress = std::function<void(const std::string& what, double fraction)>;
  using Built = std::function<void(Result<Image>)>;

  ImageService(RealReactor& reactor, const DaemonOptions& options)
      : reactor_(reactor),
        options_(options),
        programs_(ProgramPaths{options.agent_binary, options.accept_binary}) {}

  // The recipes that there are, also those that cannot be read.
  std::vector<KnownRecipe> recipes() const;
  // [{name, needed, built, digest, os, kernel, stored_bytes, raw_bytes}]
  Json list(const Spec* spec) const;
  std::map<std::string, PlannerImage> built(const Spec& spec) const;
  // PlannerImage::slurm and ::gpu_driver of any image that is stored here.
  std::string slurm_of(const std::string& digest) const;
  std::string gpu_driver_of(const std::string& digest) const;
  using Order = BuildOrder;
  // Builds an image unless the current one was built from the same inputs; also packs its RAM system.
  // `playbooks`: all that exist. If the image is already being built, waits for that build and checks again.
  // Code::conflict: the order contradicts the spec.
  void build(const Spec* spec, const std::map<std::string, Playbook>& playbooks, const Order& order,
             Progress progress, Built done);
  // Imports an exported image, with its RAM system; see controller/image/transfer.h.
  void bring_in(const std::string& path, Progress progress, Built done);
  void write_out(const std::string& name, const std::string& path, Progress progress, Built done);
  // Ensures that these RAM systems contain the current agent; one being packed is checked afterwards.
  void prepare_ram(const std::set<std::string>& images, std::function<void(Status)> done);
  // True if images/NAME/DIGEST/FILE is published: the manifest, the frames, or a file that the manifest
  // names. All else there stays private: records of the build, trees with files of every mode, logs.
  bool publishes(const std::string& image, const std::string& digest, const std::string& file);
  Programs& programs() { return programs_; }
  // True if the image was built or imported.
  bool has(const std::string& image) const;
  // Digest of what the current image was built from (recipe, kernel variant, all baked in); "" if unknown.
  std::string built_from(const std::string& image) const;
  // When the current image was built, here or where it was exported; 0: there is none.
  TimeMs built_at(const std::string& image) const;
  // True if it failed in this process and was not built since.
  bool last_build_failed(const std::string& image) const { return failed_builds_.count(image) > 0; }
  // Returns the folder with ram-vmlinuz and ram-initrd.
  std::string folder(const std::string& image) const;

 private:
  // What the planner needs of an image's packages.
  struct Brought {
    std::string slurm, gpu_driver;
  };
  const Brought& brought_by(const std::string& digest) const;
  void in_pool(Progress progress, Built done, std::function<Result<Image>(const Progress& report)> work);
  struct Job {
    ImageRequest request;
    std::optional<std::set<std::string>> used;
  };
  void start(const Job& job, Progress progress, Built done);
  using Packed = std::function<void(const Status&)>;
  void pack(const std::string& folder, std::vector<Packed> requested);
  void pack_all(std::vector<std::string> folders, const Status& so_far, std::function<void(Status)> done);

  RealReactor& reactor_;
  const DaemonOptions& options_;
  Programs programs_;

  // "NAME/DIGEST" -> files; never changes for a digest
  std::map<std::string, std::set<std::string>> published_;
  mutable std::map<std::string, Brought> brought_;  // by digest
  std::map<std::string, std::vector<std::function<void()>>>
      building_;                                        // name -> callers waiting for the end of that build
  std::set<std::string> failed_builds_;                 // names
  std::map<std::string, std::vector<Packed>> packing_;  // by folder: callers since packing began
};

}  // namespace muster
