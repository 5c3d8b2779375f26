#include "controller/doctor/service/doctor_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/at_most.h"
#include "base/cuda_driver.h"
#include "base/ports.h"
#include "base/version.h"
#include "controller/boot/dnsmasq.h"
#include "controller/boot/service/dhcp_service.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/current_problems.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/image/service/image_request.h"
#include "controller/image/service/image_service.h"
#include "controller/power/describe/driver_description.h"
#include "controller/spec/gpu_software.h"
#include "controller/trust/authority.h"
#include "sys/os.h"

namespace muster {

struct DoctorService::Round : std::enable_shared_from_this<Round> {
  std::shared_ptr<const Spec> spec;
  Done done;
  std::map<doctor::Check, doctor::Checked> checked = {};
  std::vector<doctor::BmcLogin> logins = {};
  AtMost turns{kLoginsAtOnce};
  std::vector<std::shared_ptr<std::atomic<bool>>> wanted = {};  // the logins that may still begin
  size_t without_bmc = 0;
  bool logins_began = false;
  int pending = 1;  // looks that have not ended; one for run() itself
  bool answered = false;
  Reactor::TimerId timer = 0;
};

DoctorService::DoctorService(Parts parts)
    : parts_(std::move(parts)), looks_(doctor::looks_at_this_machine(parts_.options)) {}

void DoctorService::run(std::shared_ptr<const Spec> spec, Done done) {
  if (round_)
    return parts_.reactor.post([done = std::move(done)] {
      done(fail(Code::unavailable, "another `muster doctor` is under way: try again in a minute"));
    });
  const RoundPtr round = round_ = std::make_shared<Round>();
  round->spec = std::move(spec);
  round->done = std::move(done);
  const std::string why =
      round->spec ? fmt::format("it did not end within {}, or musterd's log has the reason", to_human(kTotal))
                  : "there is no spec yet: name its file, as in muster doctor cluster.yaml";
  for (const auto& kind : doctor::check_kinds())
    round->checked[kind.check] = {.check = kind.check, .not_looked = {why}};
  round->timer = parts_.reactor.after(kTotal, alive_.wrap([this, round] { answer(round); }));
  const Spec* known = round->spec.get();
  std::string address = parts_.options.listen;
  if (address.empty() && known) address = controller_address(*known);
  look_at_clock();
  look_at_ports(known, address);
  look_at_certificates();
  if (known) {
    look_at_gpu_program(*known);
    look_for_dhcp(*known, address);
    look_for_due_images();
  } else {
    look_at_disk(nullptr, {});
    look_at_packages(nullptr, false);
  }
  ended(round);
}

// What a worker throws leaves the check not made.
void DoctorService::look(std::function<doctor::Checked()> work) {
  ++round_->pending;
  auto result = std::make_shared<std::optional<doctor::Checked>>();
  parts_.reactor.offload([result, work = std::move(work)] { *result = work(); },
                         alive_.wrap([this, round = round_, result] {
                           if (*result) put(round, std::move(**result));
                           ended(round);
                         }));
}

void DoctorService::put(const RoundPtr& round, doctor::Checked checked) {
  const doctor::Check check = checked.check;
  round->checked[check] = std::move(checked);
}

void DoctorService::ended(const RoundPtr& round) {
  if (--round->pending > 0) return;
  answer(round);
  round_.reset();
}

// Looks that have not ended keep the round, so that none of the same kind begins beside them.
void DoctorService::answer(const RoundPtr& round) {
  if (round->answered) return;
  round->answered = true;
  parts_.reactor.cancel(round->timer);
  round->turns.drop();
  for (const auto& login : round->wanted) *login = false;
  if (round->logins_began) put(round, doctor::judge_bmcs(round->logins, round->without_bmc));
  std::vector<doctor::Checked> all;
  for (const auto& [check, checked] : round->checked) all.push_back(checked);
  round->done(doctor::to_json(all));
}

void DoctorService::look_at_bmcs(const Spec& spec) {
  round_->logins_began = true;
  for (const NodeSpec& node : spec.nodes) {
    if (!is_switched(node)) {
      ++round_->without_bmc;
      continue;
    }
    const auto where = parts_.bmc_of(spec, node);
    round_->logins.push_back({.node = node.name, .secret = node.power.secret});
    if (where.ok()) {
      round_->logins.back().address = where->target.address;
      round_->turns.add([this, round = round_.get(), at = round_->logins.size() - 1, where = *where] {
        return try_login(round->shared_from_this(), at, where);
      });
      continue;
    }
    doctor::BmcLogin& login = round_->logins.back();
    login.looked = true;
    login.usable = false;
    login.outcome = where.error();
  }
}

// False: it is left out.
bool DoctorService::try_login(const RoundPtr& round, size_t at, const PowerService::Where& where) {
  doctor::BmcLogin& login = round->logins[at];
  if (parts_.bringup.executor().active()) {
    login.not_looked = "a run is under way, whose calls to BMCs go first: once more after it (muster watch)";
    return false;
  }
  ++round->pending;
  round->wanted.push_back(parts_.power.try_login(
      login.node, where, kLogin, alive_.wrap([this, round, at](const Status& tried, bool rejected) {
        doctor::BmcLogin& own = round->logins[at];
        own.looked = tried.ok() || tried.error().code != Code::cancelled;
        own.outcome = tried;
        own.rejected = rejected;
        round->turns.ended();
        ended(round);
      })));
  return true;
}

bool DoctorService::serves_dhcp(const Spec* spec) const {
  return parts_.options.dhcp && (!spec || spec->network.dhcp != "external");
}

void DoctorService::look_for_dhcp(const Spec& spec, const std::string& address) {
  const bool ours = serves_dhcp(&spec);
  const bool needed = std::any_of(spec.nodes.begin(), spec.nodes.end(), [](const NodeSpec& node) {
    return !node.power.driver.empty() && can_netboot(switched_by(node));
  });
  if (!ours && !needed)
    return put(round_, {.check = doctor::Check::dhcp_rival,
                        .looked_at = "not needed: no node boots from the network"});
  look([dhcp = looks_.dhcp, open_ports = looks_.open_ports, address, ours] {
    auto seen = dhcp(address);
    if (seen.ok() && !ours)
      for (const doctor::OpenPort& port : open_ports().value_or({}))
        if (port.protocol == "udp" && port.port == kDhcpPort) seen->server_here = true;
    return doctor::judge_dhcp(seen, ours);
  });
}

// What depends on the images that `muster up` would build. Logins come after it: workers may be busy with
// silent BMCs for long.
void DoctorService::look_for_due_images() {
  ++round_->pending;
  auto found = std::make_shared<std::optional<std::vector<DueImage>>>();
  const auto playbooks = parts_.bringup.playbooks(round_->spec.get());
  const auto find = [spec = round_->spec, playbooks, found, options = &parts_.options] {
    const std::set<std::string> needed = images_needed_by(*spec);
    std::vector<DueImage> due;
    if (playbooks.ok()) due = due_images(*options, *spec, (*playbooks)->all, needed);
    for (const std::string& name : needed)
      if (!playbooks.ok()) due.push_back({name, "", playbooks.error().message});
    *found = std::move(due);
  };
  parts_.reactor.offload(find, alive_.wrap([this, round = round_, found] {
    if (*found && !round->answered) {
      look_at_disk(round->spec.get(), **found);
      look_at_packages(round->spec.get(), !(*found)->empty());
      look_at_mirrors(*round->spec, **found);
    }
    if (!round->answered) look_at_bmcs(*round->spec);
    ended(round);
  }));
}

void DoctorService::look_at_mirrors(const Spec& spec, const std::vector<DueImage>& due) {
  const size_t built = images_needed_by(spec).size() - due.size();
  std::vector<ImageRequest> requests;
  std::map<std::string, Result<std::string>> wrong;  // cannot be built from any mirror
  for (const DueImage& image : due)
    if (image.request)
      requests.push_back(*image.request);
    else
      wrong.emplace(image.name, image.error);
  look([mirrors = looks_.mirrors, requests, wrong, built] {
    auto all = requests.empty() ? wrong : mirrors(requests);
    all.insert(wrong.begin(), wrong.end());
    return doctor::judge_mirrors(all, built);
  });
}

void DoctorService::look_at_disk(const Spec* spec, const std::vector<DueImage>& due) {
  doctor::DiskSpace space{.folder = parts_.options.state};
  for (const DueImage& one : due) {
    const auto image = spec->images.find(one.name);
    const bool gpu = image != spec->images.end() &&
                     std::any_of(image->second.bake.begin(), image->second.bake.end(), installs_gpu_driver);
    ++(gpu ? space.gpu_images : space.images);
  }
  look([free_bytes = looks_.free_bytes, space]() mutable {
    const auto free = free_bytes();
    if (!free.ok()) return doctor::judge_disk(free.error());
    space.free_bytes = *free;
    return doctor::judge_disk(space);
  });
}

void DoctorService::look_at_clock() {
  if (parts_.options.lab)
    return put(round_,
               {.check = doctor::Check::clock, .looked_at = "not needed: machines of a lab have this one's"});
  look([synchronized = looks_.synchronized] { return doctor::judge_clock(synchronized()); });
}

void DoctorService::look_at_ports(const Spec* spec, const std::string& address) {
  const DaemonOptions& options = parts_.options;
  std::vector<doctor::WantedPort> wanted = {{"tcp", options.tls_port, address, "the API over TLS"},
                                            {"tcp", options.boot_port, address, "HTTP for booting machines"}};
  if (serves_dhcp(spec)) {
    wanted.push_back({"udp", kDhcpPort, address, "DHCP"});
    wanted.push_back({"udp", kTftpPort, address, "TFTP"});
  }
  if (!options.metrics.empty()) wanted.push_back({"tcp", options.metrics_port, options.metrics, "--metrics"});
  look([open_ports = looks_.open_ports, wanted, address, state = options.state] {
    const std::string child = Files("/").read_line(dhcp_folder(state) + "/dnsmasq.pid", "0");
    return doctor::judge_ports(wanted, open_ports(), {::getpid(), std::atoi(child.c_str())},
                               interface_of(address).value_or(""));
  });
}

void DoctorService::look_at_certificates() {
  const auto ends = parts_.authority.certificate_ends();
  doctor::Checked out{.check = doctor::Check::certificate,
                      .looked_at = fmt::format("{} of musterd", ends.size())};
  for (const Problem& problem : certificate_problems(ends, parts_.reactor.now()))
    out.findings.push_back({problem.part, problem.reason, problem.next});
  put(round_, std::move(out));
}

void DoctorService::look_at_gpu_program(const Spec& spec) {
  std::vector<doctor::GpuWanted> wanted;
  for (const NodeSpec& node : spec.nodes) {
    // A lab's GPUs are simulated.
    if (spec.lab || node.hardware.gpus.value_or(0) == 0) continue;
    wanted.push_back({node.name, std::atoi(declared_variable(spec, &node, "nvidia_cuda_major").c_str()),
                      cuda_of_driver(declared_variable(spec, &node, "nvidia_driver"))});
  }
  look([gpu_cuda = looks_.gpu_cuda, wanted] { return doctor::judge_gpu_program(wanted, gpu_cuda()); });
}

void DoctorService::look_at_packages(const Spec* spec, bool builds) {
  doctor::PackagesSeen seen;
  if (serves_dhcp(spec))
    seen.needed = {{"dnsmasq-base", "DHCP and TFTP"}, {"ipxe", "booting machines over the network"}};
  if (builds)
    for (const char* name : {"mmdebstrap", "e2fsprogs", "xz-utils"}) seen.needed[name] = "building images";
  // Of a build folder the packages say nothing. Of a replaced program the link ends in " (deleted)".
  const auto own = Files("/").read_link("/proc/self/exe");
  if (own.ok() && own->starts_with("/usr/sbin/")) seen.running = kProgramVersion;
  look([packages = looks_.packages, seen]() mutable {
    const auto installed = packages();
    if (!installed.ok()) return doctor::judge_packages(installed.error());
    seen.installed = *installed;
    return doctor::judge_packages(seen);
  });
}

}  // namespace muster
