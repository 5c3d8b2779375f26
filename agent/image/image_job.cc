#include "agent/image/image_job.h"

#include <fmt/format.h>

#include "agent/core/identity.h"
#include "agent/disk/disk.h"
#include "sys/clock.h"

namespace muster {
namespace {

// Sends at most one progress event per second, and always the last one.
class Progress {
 public:
  explicit Progress(const WorkRunner::Emit& emit) : emit_(emit) {}
  void operator()(uint64_t done, uint64_t total) {
    const int64_t now = monotonic_ms();
    if (started_ == 0) started_ = now;
    if (done < total && now - last_ < 1000) return;
    last_ = now;
    const double rate =
        now > started_ ? static_cast<double>(done) / 1048.576 / static_cast<double>(now - started_) : 0;
    emit_("progress", {{"done", done},
                       {"total", total},
                       {"unit", "bytes"},
                       {"text", fmt::format("writing the image, {:.0f} MB/s", rate)}});
  }

 private:
  const WorkRunner::Emit& emit_;
  int64_t started_ = 0, last_ = 0;
};

// Measures how long seeding took, and reports progress.
class TimedSeeder : public Seeder {
 public:
  TimedSeeder(std::unique_ptr<Seeder> inner, const WorkRunner::Emit& emit)
      : inner_(std::move(inner)), emit_(emit) {}
  std::string standing(const std::string& disk) override { return inner_->standing(disk); }
  std::optional<EspRoom> room(const std::string& disk, const std::string& slot) override {
    return inner_->room(disk, slot);
  }
  Status drop_overrides() override { return inner_->drop_overrides(); }
  Status seed(const SeedRequest& r) override {
    started = monotonic_ms();
    emit_("progress", {{"text", "writing the identity and network settings of the new system"}});
    return inner_->seed(r);
  }
  Status install_loader(const SeedRequest& r) override { return inner_->install_loader(r); }
  int64_t started = 0;

 private:
  std::unique_ptr<Seeder> inner_;
  const WorkRunner::Emit& emit_;
};

}  // namespace

std::string work_of(const std::string& order) { return order.substr(0, order.rfind('#')); }

Result<Json> run_image_job(const Files& files, Process& process, const wire::WorkOrder& order,
                           const WorkRunner::Emit& emit, const std::function<bool()>& cancelled) {
  TRY(const wire::ImageJob job, wire::image_job_from_json(order.params));
  Progress progress(emit);
  TimedSeeder seeder(make_linux_seeder(files, process, kRamIdentity), emit);
  WriteDeps deps;
  deps.order = work_of(order.id);
  deps.disks = [&files] { return scan_identities(files); };
  deps.device = [&files](const std::string& name) { return files.real("/dev/" + name); };
  deps.source = [&job] { return http_source(job.base_url); };
  deps.seeder = &seeder;
  deps.progress = [&progress](uint64_t done, uint64_t total) { progress(done, total); };
  deps.cancelled = cancelled;
  const int64_t start = monotonic_ms();
  TRY(const WriteResult r, write_image(job, deps));
  const int64_t end = monotonic_ms(), seeded = seeder.started ? seeder.started : end;
  return Json{{"slot", r.slot},
              {"digest", job.digest},
              {"disk", job.disk.serial},
              {"frames", r.frames},
              {"fetched", r.fetched},
              {"kept", r.kept},
              {"zero", r.zero},
              {"fetched_bytes", r.fetched_bytes},
              {"resumed", r.resumed},
              {"fresh_layout", r.fresh_layout},
              {"finished_before", r.finished_before},
              {"write_ms", seeded - start},
              {"seed_ms", end - seeded}};
}

}  // namespace muster
