#include "controller/options/options.h"

#include <arpa/inet.h>

#include <filesystem>

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
  return options;
}

std::string wrong_metrics_address(const std::string& address) {
  in6_addr binary = {};
  if (address == "0.0.0.0" || address == "::")
    return "'" + address +
           "' is every network of this machine: give one of its addresses, such as 127.0.0.1, or the one in "
           "the cluster's network";
  if (address.empty() || ::inet_pton(AF_INET, address.c_str(), &binary) == 1 ||
      ::inet_pton(AF_INET6, address.c_str(), &binary) == 1)
    return "";
  return "'" + address + "' is not a numeric address without a port, such as 127.0.0.1";
}

}  // namespace muster
