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

#include <optional>
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

// One line of `exportfs -s`: "/path  client(option,option=value)".
struct Exported {
  std::string path, client;
  std::set<std::string> options;
};
std::optional<Exported> exported_line(const std::string& line) {
  const auto words = split(line, ' ');
  const size_t open = words.size() < 2 ? std::string::npos : words[1].find('(');
  if (open == std::string::npos) return std::nullopt;
  Exported out{words[0], words[1].substr(0, open), {}};
  while (out.path.size() > 1 && out.path.back() == '/') out.path.pop_back();
  std::string list = words[1].substr(open + 1);
  if (!list.empty() && list.back() == ')') list.pop_back();
  for (const auto& option : split(list, ',')) out.options.insert(option);
  return out;
}

bool is_below(const std::string& path, const std::string& folder) {
  return folder == "/" || path.rfind(folder + "/", 0) == 0;
}

// All of ours, and none that takes them back: `all_squash` makes every user the same, `async` confirms what is
// on no disk yet, another `sec` shuts clients out.
bool has_our_options(const Exported& line) {
  for (const char* option : {"rw", "sync", "root_squash", "mountpoint"})
    if (!line.options.count(option)) return false;
  for (const auto& option : line.options)
    if (option == "all_squash" || option == "async" || (option.rfind("sec=", 0) == 0 && option != "sec=sys"))
      return false;
  return true;
}

// A line for another path that reaches into ours: a folder below it, or one above that takes along what is
// mounted in it.
bool reaches_in(const Exported& line, const Export& want) {
  if (is_below(line.path, want.path)) return true;
  return is_below(want.path, line.path) && (line.options.count("crossmnt") || line.options.count("nohide"));
}

// How what the server really exports differs: the table of the running system, not a file of ours. Lines that
// muster did not write count too.
Result<CheckResult> exported(StepContext& context, const Export& want) {
  TRY(const std::string table, run_tool(context, {"exportfs", "-s"}));
  Diff diff;
  std::set<std::string> lacking = want.clients;
  for (const auto& text : lines_of(table)) {
    const auto line = exported_line(text);
    if (!line) continue;
    const bool ours = want.clients.count(line->client) > 0;
    if (line->path != want.path) {
      if (reaches_in(*line, want) && !(ours && has_our_options(*line)))
        diff.add(
            fmt::format("{} is exported to {} as part of {}: take that line out of /etc/exports or "
                        "/etc/exports.d",
                        is_below(line->path, want.path) ? line->path : want.path, line->client, line->path));
      continue;
    }
    if (!ours)
      diff.add(want.path + " is exported to " + line->client + " too");
    else if (!has_our_options(*line))
      diff.add(want.path + " is exported to " + line->client + " with other options");
    lacking.erase(line->client);
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
