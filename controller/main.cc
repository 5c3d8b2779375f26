// musterd: the controller.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/command_line.h"
#include "base/kernel_line.h"
#include "base/ports.h"
#include "base/version.h"
#include "controller/daemon.h"
#include "controller/options/options.h"
#include "sys/core_files.h"
#include "sys/log.h"
#include "sys/path_kind.h"
#include "sys/reactor.h"

namespace {

// Image builds occupy workers for minutes; requests to BMCs must not wait for them.
constexpr int kWorkers = 12;

int complain(const muster::Error& error) {
  fmt::print(stderr, "musterd: {}\n", error.message);
  return error.code == muster::Code::failed ? 1 : 2;
}

// For systemd's Type=notify: `systemctl start musterd` returns once the controller responds to operators.
void notify_service_manager(const char* state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un to = {};
  if (!path || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof to.sun_path) return;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path, std::strlen(path));
  if (path[0] == '@') to.sun_path[0] = '\0';
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  (void)::sendto(fd, state, std::strlen(state), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), length);
  ::close(fd);
}

void add_options(muster::Verb& app, muster::DaemonOptions& options) {
  const auto folder = [](const std::string& given) {
    return muster::wrong_path(given, {muster::PathKind::folder});
  };
  const auto new_folder = [](const std::string& given) {
    return muster::wrong_path(given, {muster::PathKind::folder, muster::PathKind::nothing});
  };
  const auto file = [](const std::string& given) {
    return muster::wrong_path(given, {muster::PathKind::file});
  };
  app.add_option("--state", &options.state, "folder for the database, keys and images")
      .check(new_folder)
      .environment("MUSTER_STATE")
      .shows_default();
  app.add_option("--socket", &options.socket, "Unix socket for operators")
      .environment("MUSTER_SOCKET")
      .shows_default();
  app.add_option("--listen", &options.listen,
                 "address in the provisioning network to listen on (default: from the spec)");
  app.add_option(
         "--metrics", &options.metrics,
         fmt::format("address on which every client that reaches it may read /metrics, for Prometheus; "
                     "port {} (default: none)",
                     muster::kMetricsPort))
      .environment("MUSTER_METRICS")
      .check([](const std::string& given) { return muster::wrong_metrics_address(given); });
  app.add_option("--images", &options.images, "folder of image recipes").check(folder);
  app.add_option("--image-cache", &options.image_cache,
                 "folder through which several controllers share built images (default: none)")
      .check(new_folder)
      .environment("MUSTER_IMAGE_CACHE");
  app.add_option("--playbooks", &options.playbooks, "folder of playbooks").check(folder);
  app.add_option("--agent-binary", &options.agent_binary,
                 "path of the static muster-agent for the RAM system")
      .check(file);
  app.add_option("--accept-binary", &options.accept_binary, "path of muster-accept for the nodes")
      .check(file);
  app.add_option("--kernel-options", &options.kernel_options,
                 "extra kernel arguments for the RAM system and for systems installed from now on; they "
                 "precede the arguments in the spec")
      .environment("MUSTER_KERNEL_OPTIONS")
      .check([](const std::string& given) { return muster::wrong_kernel_options(given); });
  app.add_flag("!--no-dhcp", &options.dhcp, "never start dnsmasq");
  app.add_flag("--lab", &options.lab,
               "accept specs with a `lab:` section or the profile `lab`, for virtual machines only. Set by "
               "`muster lab up`; never use it on a controller of real servers");
}

}  // namespace

int main(int argc, char** argv) {
  muster::forbid_core_files();
  muster::DaemonOptions options;
  muster::Verb app("musterd: installs, tests and maintains a GPU cluster; to operate it, use muster(1)");
  add_options(app, options);
  app.add_version(std::string("musterd ") + muster::kProgramVersion);
  app.add_manual(8);
  if (const auto parsed = muster::parse_command_line(app, argc, argv); parsed.ended) return parsed.status;

  // The lab's proxy for packages in its network namespace: apt and mmdebstrap read it from the environment.
  if (const char* proxy = std::getenv("MUSTER_APT_PROXY")) ::setenv("http_proxy", proxy, 1);
  const auto reactor = muster::make_reactor(kWorkers);
  auto daemon = muster::Daemon::create(*reactor, muster::with_defaults(options, argv[0]));
  if (!daemon.ok()) return complain(daemon.error());
  reactor->on_stop_signal([&] {
    muster::log::info("stopping");
    notify_service_manager("STOPPING=1");
    (*daemon)->stop();
    reactor->stop();
  });
  if (const auto started = (*daemon)->start(); !started.ok()) return complain(started.error());
  notify_service_manager("READY=1");
  reactor->run();
  daemon->reset();  // closes the store
  // Workers may block in a build or a BMC call for minutes; their results are no longer needed.
  std::fflush(nullptr);
  std::_Exit(0);
}
