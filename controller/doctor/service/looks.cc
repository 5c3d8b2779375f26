#include "controller/doctor/service/looks.h"

#include <filesystem>

#include "base/split.h"
#include "controller/doctor/service/dhcp_probe.h"
#include "controller/image/mirror_look.h"
#include "controller/image/programs.h"
#include "sys/clock.h"
#include "sys/os.h"

namespace muster::doctor {
namespace {

constexpr DurationMs kMirrors = kMinute;  // all of them
constexpr DurationMs kTool = 10 * kSecond;

Result<std::string> printed_by(const std::vector<std::string>& argv) {
  const auto process = make_process();
  Command command;
  command.argv = argv;
  command.env = {{"LC_ALL", "C.UTF-8"}};
  command.deadline = kTool;
  return run_ok(*process, command);
}

Result<bool> is_synchronized() {
  TRY(const std::string text, printed_by({"timedatectl", "show", "--property=NTPSynchronized", "--value"}));
  return trim(text) == "yes";
}

Result<std::vector<OpenPort>> open_ports() {
  TRY(const std::string text,
      printed_by({"ss", "--no-header", "--listening", "--numeric", "--tcp", "--udp", "--processes"}));
  return read_open_ports(text);
}

Result<uint64_t> free_bytes_in(const std::string& folder) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) return fail(Code::failed, folder + ": " + error.message());
  return uint64_t{space.available};
}

}  // namespace

Looks looks_at_this_machine(const DaemonOptions& options) {
  Looks looks;
  looks.dhcp = [](const std::string& address) { return find_dhcp_servers(address); };
  looks.mirrors = [&options](const std::vector<ImageRequest>& images) {
    const Files host("/");
    const auto process = make_process();
    return look_at_mirrors(images, {options.state + "/doctor", host, *process, steady_now}, kMirrors);
  };
  looks.free_bytes = [&options] { return free_bytes_in(options.state); };
  looks.synchronized = is_synchronized;
  looks.open_ports = open_ports;
  looks.packages = []() -> Result<PackageList> {
    TRY(const std::string status, Files("/").read("/var/lib/dpkg/status"));
    return installed_packages(status);
  };
  looks.gpu_cuda = [&options]() -> Result<int> {
    const std::string path = gpu_program_beside(options.accept_binary);
    if (path.empty()) return fail(Code::not_found, "musterd has no --accept-binary");
    return cuda_of_gpu_program(path);
  };
  return looks;
}

}  // namespace muster::doctor
