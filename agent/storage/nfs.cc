// NFS: the smallest engine. One node, named in the spec, serves one file system of its own over NFSv4; the others mount it.
//
// The server's array, file system and mount, and the clients' mounts, are steps of the ordinary modules; this file holds the server
// itself. A folder is exported only while it is a mount point (`mountpoint`): else clients would fill the server's root disk.
// Only the cluster's network may mount. Root of a client is root on the server, as with the other engines: all nodes are managed.
// No redundancy: while the server is away the clients wait.
#include <fmt/format.h>

#include "agent/steps/stack_modules.h"
#include "agent/storage/parts.h"

namespace muster::steps {
namespace {

constexpr const char* kHead = "# Written by muster.\n";
constexpr const char* kOptions = "rw,sync,no_subtree_check,no_root_squash,mountpoint";

struct Export {
  std::string name, path, network;
};

Result<Export> wanted(const Json& params) {
  Export out{text_of(params, "name"), text_of(params, "path"), text_of(params, "network")};
  if (out.network.find('/') == std::string::npos || out.network == "0.0.0.0/0")
    return fail(Code::invalid, "nfs_server: 'network' must be the cluster's own network");
  if (out.path.size() < 2 || out.path[0] != '/' || out.path.find_first_of(" \t\n\"") != std::string::npos)
    return fail(Code::invalid, "nfs_server: 'path' must be an absolute path");
  if (out.name.empty() || out.name.find_first_of("/ .") != std::string::npos)
    return fail(Code::invalid, "nfs_server: '" + out.name + "' is not a name");
  return out;
}

// Version 4 only: one port for the firewall, no port mapper, no lock daemon.
std::vector<Part> parts_of(const Export& want) {
  const std::string settings = "/etc/nfs.conf.d/muster.conf";
  return {file_part(settings, fmt::format("{}[nfsd]\nvers3=n\nvers4=y\n", kHead)),
          file_part("/etc/exports.d/muster-" + want.name + ".exports",
                    fmt::format("{}{} {}({})\n", kHead, want.path, want.network, kOptions)),
          service_part("nfs-server", {settings})};
}

// How what the server really exports differs: the table of the running system, not a file of ours. Somebody else's line for the
// same path counts too.
Result<CheckResult> exported(StepContext& context, const Export& want) {
  TRY(const std::string table, run_tool(context, {"exportfs", "-s"}));
  Diff diff;
  bool found = false;
  for (const auto& line : lines_of(table)) {
    const auto words = split(line, ' ');
    if (words.size() < 2 || words[0] != want.path) continue;
    const std::string client = words[1].substr(0, words[1].find('('));
    const auto option = [&](const char* name) {
      const std::string list = "," + words[1].substr(words[1].find('(') + 1);
      return list.find(std::string(",") + name + ",") != std::string::npos;
    };
    if (client != want.network)
      diff.add(want.path + " is exported to " + client + " too");
    else if (!option("rw") || !option("mountpoint"))
      diff.add(want.path + " is exported with other options");
    else
      found = true;
  }
  if (!found && diff.empty()) diff.add(want.path + " is not exported to " + want.network);
  return diff.result();
}

Result<CheckResult> check(StepContext& context, const Json& params) {
  TRY(const Export want, wanted(params));
  TRY(const CheckResult parts, check_parts(context, parts_of(want)));
  if (parts.holds == Holds::no) return parts;
  return exported(context, want);
}

Status apply(StepContext& context, const Json& params) {
  TRY(const Export want, wanted(params));
  TRY_(apply_parts(context, parts_of(want)));
  TRY(auto out, run_tool(context, {"exportfs", "-ra"}));
  (void)out;
  TRY(const CheckResult now, exported(context, want));
  return now.holds == Holds::yes ? Status(Ok{}) : Status(fail(Code::failed, now.diff));
}

}  // namespace

StepModule nfs_server_module() {
  StepModule m;
  m.name = "nfs_server";
  m.help =
      "A mounted file system is exported over NFSv4 to one network and to nobody else, only while it is mounted. Checked "
      "against what the server exports now.";
  m.parameters = Json::array({parameter("name", "string", true, "of the storage"),
                              parameter("path", "string", true, "mount point to export"),
                              parameter("network", "string", true, "who may mount: the cluster's network")});
  m.check = check;
  m.apply = apply;
  return m;
}

}  // namespace muster::steps
