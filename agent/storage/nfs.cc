// NFS: the smallest engine. One node, named in the spec, serves one file system of its own over NFSv4; the
// others mount it.
//
// The server's array, file system and mount, and the clients' mounts, are steps of the ordinary modules; this
// file contains the server itself. A folder is exported only while it is a mount point (`mountpoint`),
// because otherwise clients would fill the server's root disk. Only the nodes of the spec may mount, each
// listed by its address, because other machines share their network. A client's root is `nobody` on the
// server, so that no client can place a program there that runs as root elsewhere; the top folder is prepared
// for that (open_top). No redundancy: while the server is away the clients wait.
#include <fmt/format.h>

#include <map>
#include <set>

#include "agent/steps/disk/mounts.h"
#include "agent/steps/step_modules.h"
#include "agent/storage/parts.h"

namespace muster::steps {
namespace {

constexpr const char* kOptions = "rw,sync,no_subtree_check,root_squash,mountpoint";

struct Export {
  std::string name, path;
  std::vector<StorageClient> clients;
  std::set<std::string> addresses;
};
MUSTER_PARAMETERS(Export, required(name, "name of the storage"), required(path, "mount point to export"),
                  required(clients, "clients that may mount: [{name, address}]"))

Status complete_export(const StepContext&, Export& want) {
  TRY(const auto addresses, client_addresses(want.clients, "nfs_server"));
  want.addresses.insert(addresses.begin(), addresses.end());
  if (want.path.size() < 2 || want.path[0] != '/' || want.path.find_first_of(" \t\n\"") != std::string::npos)
    return fail(Code::invalid, "nfs_server: 'path' must be an absolute path");
  if (want.name.empty() || want.name.find_first_of("/ .") != std::string::npos)
    return fail(Code::invalid, "nfs_server: '" + want.name + "' is not a valid name");
  return Ok{};
}

// A line with a path and no client would admit all machines, so without clients there is no line.
std::string export_line(const Export& want) {
  std::string line = want.addresses.empty() ? "" : want.path;
  for (const auto& client : want.addresses) line += fmt::format(" {}({})", client, kOptions);
  return line.empty() ? "" : line + "\n";
}

// Version 4 only: one port for the firewall, no port mapper, no lock daemon.
std::vector<Part> parts_of(const Export& want) {
  const std::string settings = "/etc/nfs.conf.d/muster.conf";
  return {file_part(settings, fmt::format("{}[nfsd]\nvers3=n\nvers4=y\n", kHead)),
          file_part("/etc/exports.d/muster-" + want.name + ".exports", kHead + export_line(want)),
          service_part("nfs-server", {settings})};
}

// "/shared  10.20.0.11(sync,wdelay,...)", a line of `exportfs -s`.
struct Entry {
  std::string path, client;
  std::set<std::string> options;
  bool has(const std::string& option) const { return options.count(option) > 0; }
};

std::vector<Entry> table_of(const std::string& text) {
  std::vector<Entry> out;
  for (const auto& line : split_lines(text)) {
    const auto words = split(line, ' ');
    const size_t open = words.size() < 2 ? std::string::npos : words[1].find('(');
    if (open == std::string::npos) continue;
    std::string list = words[1].substr(open + 1);
    if (!list.empty() && list.back() == ')') list.pop_back();
    const auto options = split(list, ',');
    out.push_back({words[0], words[1].substr(0, open), {options.begin(), options.end()}});
  }
  return out;
}

// Options that are neither those of our line as the server shows them, nor added by the server itself. Any
// other option grants a client more or less than declared, or may do so (no_root_squash, all_squash, async,
// insecure, crossmnt, a different `sec`, anonuid, ...).
std::string odd_options(const Entry& entry, bool mountpoint) {
  static const std::set<std::string> kUsual = {"rw",
                                               "sync",
                                               "wdelay",
                                               "no_wdelay",
                                               "hide",
                                               "no_subtree_check",
                                               "subtree_check",
                                               "mountpoint",
                                               "mp",
                                               "sec=sys",
                                               "secure",
                                               "acl",
                                               "no_all_squash",
                                               "root_squash",
                                               "secure_locks",
                                               "auth_nlm",
                                               "xprtsec=none:tls:mtls"};
  std::vector<std::string> odd;
  for (const auto& option : entry.options)
    if (!kUsual.count(option)) odd.push_back(option);
  for (const char* option : {"rw", "sync", "root_squash"})
    if (!entry.has(option)) odd.push_back(std::string("without ") + option);
  if (mountpoint && !entry.has("mountpoint") && !entry.has("mp")) odd.push_back("without mountpoint");
  return join(odd, " ");
}

bool is_within(const std::string& path, const std::string& folder) {
  return path.starts_with(folder == "/" ? folder : folder + "/");
}

std::string device_of(const std::map<std::string, MountEntry>& mounts, const std::string& path) {
  std::string device;
  size_t longest = 0;
  for (const auto& [target, mount] : mounts)
    if ((target == path || is_within(path, target)) && target.size() >= longest)
      longest = target.size(), device = mount.device;
  return device;
}

// How the exports in the running system's table, not in our file, differ. Exports of other paths count if
// they lead to the same data: folders below ours, a different path to the same file system, and a folder
// above ours whose export includes what is mounted below it (crossmnt).
Result<CheckResult> exported(StepContext& context, const Export& want) {
  TRY(const std::string table, run_tool(context, {"exportfs", "-s"}));
  const auto mounts = all_mounts(context.files);
  const std::string own = device_of(mounts, want.path);
  Diff diff;
  std::set<std::string> lacking = want.addresses;
  for (const auto& entry : table_of(table)) {
    const bool same = entry.path == want.path;
    const bool inside = own.empty() ? is_within(entry.path, want.path) : device_of(mounts, entry.path) == own;
    const bool across = is_within(want.path, entry.path) && entry.has("crossmnt");
    if (!same && !inside && !across) continue;
    const bool declared = want.addresses.count(entry.client) > 0;
    // A declared client that reaches our path through an export above it has the access that our line grants.
    const std::string odd = declared && !same && !inside ? "" : odd_options(entry, same);
    if (!declared)
      diff.add(entry.path + " is also exported to " + entry.client);
    else if (!odd.empty())
      diff.add(entry.path + " is exported to " + entry.client + " with different options: " + odd);
    if (same) lacking.erase(entry.client);
  }
  if (!diff.empty()) diff.add("remove these entries from /etc/exports and /etc/exports.d");
  for (const auto& client : lacking) diff.add(want.path + " is not exported to " + client);
  return diff.result();
}

std::string not_mounted(const StepContext& context, const Export& want) {
  return find_mount(context.files, want.path) ? "" : want.path + " is not mounted";
}

Result<CheckResult> check_nfs(StepContext& context, const Export& want) {
  TRY(const CheckResult parts, check_parts(context, parts_of(want)));
  if (parts.holds == Holds::no) return parts;
  if (const auto problem = not_mounted(context, want); !problem.empty()) return differs(problem);
  TRY(const CheckResult top, check_parts(context, open_top(want.path)));
  if (top.holds == Holds::no) return top;
  return exported(context, want);
}

Status apply_nfs(StepContext& context, const Export& want) {
  if (const auto problem = not_mounted(context, want); !problem.empty()) return fail(Code::conflict, problem);
  TRY_(apply_parts(context, open_top(want.path)));
  TRY_(apply_parts(context, parts_of(want)));
  TRY_(run_tool(context, {"exportfs", "-ra"}));
  TRY(const CheckResult now, exported(context, want));
  return now.holds == Holds::yes ? Status(Ok{}) : Status(fail(Code::failed, now.diff));
}

}  // namespace

StepModule nfs_server_module() {
  return step_module<Export>({
      .name = "nfs_server",
      .help =
          "Exports a mounted file system over NFSv4 to the given clients only, and only while it is mounted; "
          "a client's root user becomes `nobody`. The result is checked against the server's current "
          "exports.",
      .check = check_nfs,
      .apply = apply_nfs,
      .complete = complete_export,
  });
}

}  // namespace muster::steps
