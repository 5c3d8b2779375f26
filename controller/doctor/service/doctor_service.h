// DoctorService: `muster doctor`. Looks at what would stop the first `muster up` of a spec, which need not be
// stored, and returns what is wrong and what could not be looked at (controller/doctor/doctor.h).
//
// All checks begin at once, on workers, logins eight at a time, and one deadline ends them: what was not
// looked at by then is named, and no login is begun any more, nor during a run, whose calls to BMCs go
// first. Switches nothing, stores nothing but what a login says about itself (controller/power/logins.h): a
// wrong password, tried once here, counts together with other tries. Thread: the reactor's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/alive.h"
#include "controller/doctor/service/looks.h"
#include "controller/power/service/power_service.h"
#include "controller/spec/spec.h"
#include "sys/reactor.h"

namespace muster {

class Authority;
class Bringup;
struct DueImage;

class DoctorService {
 public:
  using Done = std::function<void(Result<Json>)>;
  struct Parts {
    RealReactor& reactor;
    const DaemonOptions& options;
    const Authority& authority;
    PowerService& power;
    Bringup& bringup;
    std::function<Result<PowerService::Where>(const Spec&, const NodeSpec&)> bmc_of;
  };
  // References in `parts` must outlive it.
  explicit DoctorService(Parts parts);

  // `spec` null: there is none; what needs one is not looked at. unavailable: it is looking already.
  void run(std::shared_ptr<const Spec> spec, Done done);
  // For tests.
  void look_by(doctor::Looks looks) { looks_ = std::move(looks); }

  static constexpr DurationMs kTotal = 90 * kSecond, kLogin = 20 * kSecond;
  // Of musterd's workers, which agents, builds and `muster power` need as well.
  static constexpr int kLoginsAtOnce = 8;

 private:
  struct Round;
  using RoundPtr = std::shared_ptr<Round>;
  void look(std::function<doctor::Checked()> work);
  void look_at_bmcs(const Spec& spec);
  bool try_login(const RoundPtr& round, size_t at, const PowerService::Where& where);
  void look_for_dhcp(const Spec& spec, const std::string& address);
  void look_for_due_images();
  void look_at_mirrors(const Spec& spec, const std::vector<DueImage>& due);
  void look_at_disk(const Spec* spec, const std::vector<DueImage>& due);
  void look_at_clock();
  void look_at_ports(const Spec* spec, const std::string& address);
  void look_at_certificates();
  void look_at_gpu_program(const Spec& spec);
  void look_at_packages(const Spec* spec, bool builds);
  bool serves_dhcp(const Spec* spec) const;
  void put(const RoundPtr& round, doctor::Checked checked);
  void ended(const RoundPtr& round);
  void answer(const RoundPtr& round);

  Parts parts_;
  doctor::Looks looks_;
  Alive alive_;
  RoundPtr round_;  // null: not looking
};

}  // namespace muster
