// NFS: the smallest engine. One node, named in the spec, serves one file system of its own over NFSv4; the
// others mount it.
//
// The server's array, file system and mount, and the clients' mounts, are steps of the ordinary modules; this
// file holds the server itself. A folder is exported only while it is a mount point (`mountpoint`): else
// clients would fill the server's root disk. Only the nodes of the spec may mount, each named by its address:
// strangers share their network. Root of a client is nobody on the server, so that nobody plants a program
// that runs as root elsewhere; the top folder is made for that (open_top). No redundancy: while the server is
// away the clients wait.
#include <fmt/format.h>

#include <set>

#include "agent/steps/disk/mounts.h"
#include "agent/steps/stack_modules.h"
#include "agent/storage/parts.h"

namespace muster::steps {
namespace {

constexpr const char* kHead = "# Written by muster.\n";
constexpr const char* kOptions = "rw,sync,no_subtree_check,root_squash,mountpoint";

struct Export {
  std::string name, path;
  std::set<std::string> clients;
};

Result<Export> wanted(const Json& params) {
  Export out{text_of(params, "name"), text_of(params, "path"), {}};
  TRY(const auto clients, client_addresses(params.value("clients", Json()), "nfs_server"));
  out.clients.insert(clients.begin(), clients.end());
  if (out.path.size() < 2 || out.path[0] != '/' || out.path.find_first_of(" \t\n\"") != std::string::npos)
    return fail(Code::invalid, "nfs_server: 'path' must be an absolute path");
  if (out.name.empty() || out.name.find_first_of("/ .") != std::string::npos)
    return fail(Code::invalid, "nfs_server: '" + out.name + "' is not a name");
  return out;
}

// A path without a client would be everybody's: no client, no line.
std::string export_line(const Export& want) {
  std::string line = want.clients.empty() ? "" : want.path;
  for (const auto& client : want.clients) line += fmt::format(" {}({})", client, kOptions);
  return line.empty() ? "" : line + "\n";
}

// Version 4 only: one port for the firewall, no port mapper, no lock daemon.
std::vector<Part> parts_of(const Export& want) {
  const std::string settings = "/etc/nfs.conf.d/muster.conf";
  return {file_part(settings, fmt::format("{}[nfsd]\nvers3=n\nvers4=y\n", kHead)),
          file_part("/etc/exports.d/muster-" + want.name + ".exports", kHead + export_line(want)),
          service_part("nfs-server", {settings})};
}

// How what the server really exports differs: the table of the running system, not a file of ours. Somebody
// else's line for the same path counts too.
Result<CheckResult> exported(StepContext& context, const Export& want) {
  TRY(const std::string table, run_tool(context, {"exportfs", "-s"}));
  Diff diff;
  std::set<std::string> lacking = want.clients;
  for (const auto& line : lines_of(table)) {
    const auto words = split(line, ' ');
    if (words.size() < 2 || words[0] != want.path) continue;
    const std::string client = words[1].substr(0, words[1].find('('));
    std::string list = "," + words[1].substr(words[1].find('(') + 1);
    if (list.back() == ')') list.back() = ',';
    const auto option = [&](const char* name) {
      return list.find(std::string(",") + name + ",") != std::string::npos;
    };
    if (!want.clients.count(client))
      diff.add(want.path + " is exported to " + client + " too");
    else if (!option("rw") || !option("mountpoint") || !option("root_squash"))
      diff.add(want.path + " is exported to " + client + " with other options");
    lacking.erase(client);
  }
  for (const auto& client : lacking) diff.add(want.path + " is not exported to " + client);
  return diff.result();
}

std::string not_mounted(const StepContext& context, const Export& want) {
  return find_mount(context.files, want.path) ? "" : want.path + " is not mounted";
}

Result<CheckResult> check(StepContext& context, const Json& params) {
  TRY(const Export want, wanted(params));
  TRY(const CheckResult parts, check_parts(context, parts_of(want)));
  if (parts.holds == Holds::no) return parts;
  if (const auto problem = not_mounted(context, want); !problem.empty()) return differs(problem);
  TRY(const CheckResult top, check_parts(context, open_top(want.path)));
  if (top.holds == Holds::no) return top;
  return exported(context, want);
}

Status apply(StepContext& context, const Json& params) {
  TRY(const Export want, wanted(params));
  if (const auto problem = not_mounted(context, want); !problem.empty()) return fail(Code::conflict, problem);
  TRY_(apply_parts(context, open_top(want.path)));
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
      "A mounted file system is exported over NFSv4 to these nodes and to nobody else, only while it is "
      "mounted; root of a client is nobody. Checked against what the server exports now.";
  m.parameters = Json::array({parameter("name", "string", true, "of the storage"),
                              parameter("path", "string", true, "mount point to export"),
                              parameter("clients", "list", true, "who may mount: [{name, address}]")});
  m.check = check;
  m.apply = apply;
  return m;
}

}  // namespace muster::steps
