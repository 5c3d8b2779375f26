#include "controller/options/options.h"

#include <arpa/inet.h>

#include <cstring>
#include <filesystem>
#include <utility>

namespace muster {
namespace {

namespace fs = std::filesystem;

// As an absolute path; empty if none exists.
std::string first_existing(std::initializer_list<fs::path> candidates) {
  std::error_code ignored;
  for (const auto& path : candidates)
    if (fs::exists(path, ignored)) return fs::canonical(path, ignored).string();
  return "";
}

// True for 0.0.0.0 and ::, in any notation.
bool is_every_network(const std::string& address) {
  constexpr unsigned char kMapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
  constexpr unsigned char kNone[16] = {};
  unsigned char binary[16] = {};
  if (::inet_pton(AF_INET, address.c_str(), binary) == 1) return std::memcmp(binary, kNone, 4) == 0;
  return ::inet_pton(AF_INET6, address.c_str(), binary) == 1 &&
         (std::memcmp(binary, kNone, 16) == 0 || std::memcmp(binary, kMapped, 16) == 0);
}

}  // namespace

DaemonOptions with_defaults(DaemonOptions options, const std::string& program) {
  std::error_code ignored;
  fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  if (ignored) self = fs::absolute(program, ignored);
  const fs::path bin = self.parent_path();
  const fs::path source = bin.parent_path();  // build/musterd -> the source tree
  const fs::path share = bin.parent_path() / "share" / "muster";
  if (options.playbooks.empty())
    options.playbooks =
        first_existing({share / "playbooks", source / "playbooks", "/usr/share/muster/playbooks"});
  if (options.images.empty())
    options.images = first_existing({share / "images", source / "images", "/usr/share/muster/images"});
  // The controller's own copies first: this machine may also be a node, with another version of the agent.
  const fs::path own = bin.parent_path() / "lib" / "muster";
  if (options.agent_binary.empty())
    options.agent_binary =
        first_existing({own / "muster-agent", bin / "muster-agent", "/usr/lib/muster/muster-agent"});
  if (options.accept_binary.empty())
    options.accept_binary =
        first_existing({own / "muster-accept", bin / "muster-accept", "/usr/lib/muster/muster-accept"});
  if (is_every_network(options.metrics)) options.metrics_closed = std::exchange(options.metrics, "");
  return options;
}

std::string wrong_metrics_address(const std::string& address) {
  in6_addr binary = {};
  if (address.empty() || ::inet_pton(AF_INET, address.c_str(), &binary) == 1 ||
      ::inet_pton(AF_INET6, address.c_str(), &binary) == 1)
    return "";
  return "'" + address + "' is not a numeric address without a port, such as 127.0.0.1";
}

}  // namespace muster
