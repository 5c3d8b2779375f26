// Storage sections of engine external: served by the site, only mounted by muster. Source and options become
// words in a systemd unit: characters with a special meaning in it are rejected by these functions, and again
// by the agent.
#include <fmt/format.h>

#include <regex>

#include "controller/engines/engine.h"
#include "controller/engines/sections.h"
#include "controller/spec/reader/reader.h"

namespace muster {
namespace {

struct Form {
  const char *pattern, *words;
};

// Source formats must be those in which the kernel shows a mount: that is how the mount is recognised.
Form form_of(const std::string& fstype) {
  if (fstype == "nfs4")
    return {R"(^([A-Za-z0-9][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\]):/[A-Za-z0-9_./+@-]*$)",
            "SERVER:/PATH, such as 10.0.0.5:/export"};
  if (fstype == "ceph")
    return {
        R"(^[A-Za-z0-9][A-Za-z0-9_.-]*@[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[A-Za-z0-9_.-]+=/[A-Za-z0-9_./+@-]*$)",
        "USER@FSID.FILESYSTEM=/PATH"};
  return {R"(^[A-Za-z0-9][A-Za-z0-9_.,@:-]*:/[A-Za-z0-9_-]+(/[A-Za-z0-9_./+@-]*)?$)",
          "NID[:NID...]:/FILESYSTEM[/PATH], such as 10.0.0.5@o2ib:/scratch"};
}

bool has_word(const std::string& options, const std::string& word) {
  return ("," + options + ",").find("," + word + ",") != std::string::npos;
}

}  // namespace

void SpecReader::read_external(const YamlEntry& entry, const std::string& path, StorageSpec& out) {
  const YamlNode* map = &entry.value;
  if (engine_of(out).reach != Reach::of_a_site) return;
  out.fstype = text(map, "fstype");
  out.source = text(map, "source");
  out.options = text(map, "options");
  const YamlNode* writable = child(map, "writable");
  out.writable = writable && yaml_is_boolean(*writable) && yaml_boolean(*writable);
  if (const YamlNode* at = child(map, "source"); at && at->is_text()) check_source(*at, path, out);
  if (const YamlNode* at = child(map, "options"); at && at->is_text()) check_options(*at, path, out);
}

void SpecReader::check_source(const YamlNode& at, const std::string& path, const StorageSpec& storage) {
  if (storage.fstype != "nfs4" && storage.fstype != "ceph" && storage.fstype != "lustre") return;
  const Form form = form_of(storage.fstype);
  if (storage.source.size() > 512 || !std::regex_match(storage.source, std::regex(form.pattern)))
    error(at, path + ".source",
          fmt::format("'{}' is not a valid {} source: it must be {}", storage.source.substr(0, 80),
                      storage.fstype, form.words));
}

void SpecReader::check_options(const YamlNode& at, const std::string& path, const StorageSpec& storage) {
  const std::string where = path + ".options";
  if (("," + storage.options).find(",secret=") != std::string::npos)
    error(at, where,
          "a key in the spec would also appear in plans and logs: write the key to a file on the nodes "
          "(module `file` with the content 'secret:NAME') and name that file in `secretfile=`");
  for (const char* word : {"bg", "noauto", "remount", "bind"})
    if (has_word(storage.options, word))
      error(at, where, fmt::format("'{}' is not allowed: muster makes and retries this mount itself", word));
  if (storage.writable && has_word(storage.options, "ro"))
    error(at, where, "'ro' contradicts 'writable: true'");
}

void SpecReader::check_external(const YamlEntry& entry, const std::string& path, const StorageSpec& storage) {
  // NFS maps a node's root to `nobody`, which cannot create home directories; and if the server fails,
  // neither the agent, which maintains the keys in them, nor an operator could log in.
  if (storage.mount == "/home")
    error(*child(&entry.value, "mount"), path + ".mount",
          "/home holds the home directories and keys of the spec's users and must not depend on a server: "
          "mount this storage below /home, for example at /home/site");
  if (nodes_incomplete_) return;
  const YamlNode* role = child(child(&entry.value, "nodes"), "role");
  std::set<std::string> roles;
  for (const NodeSpec& node : spec_.nodes) {
    if (mounts(storage, node)) return;
    if (!node.role.empty()) roles.insert(node.role);
  }
  if (role && !roles.count(storage.role))
    return must_be_known(*role, path + ".nodes.role", "role", storage.role, {roles.begin(), roles.end()});
  if (!role) return;  // there are no nodes, which is reported elsewhere
  error(*role, path + ".nodes.role",
        fmt::format("no node would mount this storage: role '{}' does not have the playbook '{}'",
                    storage.role, engine_playbook(storage.engine)));
}

}  // namespace muster
