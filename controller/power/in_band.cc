#include "controller/power/in_band.h"

namespace muster {
namespace {

class InBand : public Power {
 public:
  explicit InBand(std::string node) : node_(std::move(node)) {}

  // The agent's reports give more information and are handled elsewhere.
  Result<PowerState> state(DurationMs) override { return PowerState::unknown; }
  Status on(DurationMs) override { return impossible("powered on"); }
  Status off(DurationMs, bool) override {
    return impossible("powered off, because nothing could power it on again");
  }
  Status boot_once_network(DurationMs) override { return impossible("booted from the network"); }
  Result<Json> describe(DurationMs) override {
    return Json{
        {"driver", "ssh"},
        {"switches", false},
        {"note", "controlled through its running system; `muster reimage` starts the RAM system with kexec"}};
  }

 private:
  Status impossible(const std::string& what) const {
    return fail(Code::invalid, node_ + " has no BMC (driver ssh): it cannot be " + what +
                                   "; `muster reimage " + node_ + "` uses its running system instead");
  }
  std::string node_;
};

}  // namespace

PowerDriver in_band_driver() {
  PowerDriver driver;
  driver.name = "ssh";
  driver.help = "no BMC: the agent starts the RAM system from the running system";
  driver.make = [](PowerTarget target) -> Result<std::unique_ptr<Power>> {
    return std::unique_ptr<Power>(std::make_unique<InBand>(std::move(target.node)));
  };
  return driver;
}

}  // namespace muster
