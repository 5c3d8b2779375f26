#include "controller/power/manual.h"

namespace muster {
namespace {

class Manual : public Power {
 public:
  explicit Manual(PowerTarget target) : target_(std::move(target)) {}

  Result<PowerState> state(DurationMs) override { return PowerState::unknown; }
  Status on(DurationMs) override { return by_hand("power it on"); }
  Status off(DurationMs, bool) override { return by_hand("power it off"); }
  Status boot_once_network(DurationMs) override { return by_hand("boot it from the network"); }
  Status can_boot_network(DurationMs) override { return by_hand("boot it from the network"); }
  Result<Json> describe(DurationMs) override {
    return Json{
        {"driver", "manual"},
        {"where", target_.address},
        {"switches", false},
        {"note",
         "an operator controls its power by hand; `muster status` lists what must be done, and by when"}};
  }

 private:
  Status by_hand(const std::string& what) const {
    return fail(Code::invalid, target_.node + " has no remote power control (driver `manual`): " + what +
                                   " yourself; `muster status` lists the tasks that a run waits for");
  }
  PowerTarget target_;
};

}  // namespace

PowerDriver manual_driver() {
  PowerDriver driver;
  driver.name = "manual";
  driver.help =
      "an operator controls the machine's power by hand when a run requires it; `address`: its location";
  driver.make = [](PowerTarget target) -> Result<std::unique_ptr<Power>> {
    return std::unique_ptr<Power>(std::make_unique<Manual>(std::move(target)));
  };
  return driver;
}

}  // namespace muster
