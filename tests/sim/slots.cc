// SimNode's two root slots: what the boot loader starts, what the image in it does then, and the trial timer.
#include "tests/sim/node.h"

namespace muster::sim {
namespace {
constexpr DurationMs kTrial = 40 * kMinute;
}  // namespace

std::string fate_of(const std::string& image) {
  for (const char* fate : {"panic", "hang", "emergency", "mute", "broken", "slow"})
    if (image.find(fate) != std::string::npos) return fate;
  return "good";
}

std::string SimNode::slot_word() const {
  if (!world_.options.in_place || system_ != System::installed) return "";
  return running_ == 0 ? "a" : "b";
}

void SimNode::preinstall(const std::string& image) {
  slots_[0] = image_ = image;
  ours_ = powered_ = true;
  boot();
}

void SimNode::set_running(int slot) {
  applied_in_[running_] = applied_;
  running_ = slot;
  applied_ = applied_in_[running_];
  image_ = slots_[running_];
}

void SimNode::start_slot() {
  set_running(once_ >= 0 ? std::exchange(once_, -1) : standing_);
  const bool trial = running_ != standing_;
  const std::string fate = fate_of(image_);
  world_.trace(name_,
               fmt::format("slot {}, {}{}", running_ == 0 ? "a" : "b", fate, trial ? ", on trial" : ""));
  if (image_.empty() || (!trial && fate != "good"))
    return world_.violated("I2", name_ + " stands on a slot that does not boot: '" + image_ + "'");
  if (fate == "hang") return;  // before its timer runs; its BMC ends it
  const auto takes_itself_back = [this](DurationMs after) {
    world_.reactor.after(after, [this, boot = boot_id_] {
      if (boot != boot_id_ || !powered_ || running_ == standing_) return;
      world_.trace(name_, "the trial is over");
      reset();
    });
  };
  if (fate == "panic") return takes_itself_back(30 * kSecond);
  if (fate == "emergency") return takes_itself_back(kMinute);
  if (trial) takes_itself_back(kTrial);
  if (fate != "mute") start_system(System::installed);
}

void SimNode::power_off(std::function<void(Status)> done) {
  const Options& o = world_.options;
  const DurationMs takes = world_.random.range(500, 4000);
  const auto reply = [this, done](DurationMs after, Status status) {
    world_.reactor.after(after, [done, status] { done(status); });
  };
  if (world_.chance(o.bmc_busy)) return reply(takes, fail(Code::unavailable, "503 service unavailable"));
  world_.reactor.after(takes, [this] { lose_power(); });
  if (world_.chance(o.bmc_silent)) return reply(60 * kSecond, fail(Code::timeout, "no answer from the BMC"));
  reply(takes + 100, Ok{});
}

}  // namespace muster::sim
