// Storage sections of engine external: served by the site, only mounted by muster. Source and options become
// words in a systemd unit: characters with a special meaning in it are rejected by these functions, and again
// by the agent.
#include <fmt/format.h>

#include "base/scan.h"
#include "controller/engines/engine.h"
#include "controller/spec/reader/reader.h"

namespace muster {
namespace {

bool is_word(char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; }

// The rest is a path: "/", "/export/a".
bool is_path(Scan scan) {
  if (!scan.skip("/")) return false;
  scan.take([](char c) { return is_word(c) || c == '/' || c == '+' || c == '@'; });
  return scan.ended();
}

bool skip_name(Scan& scan, bool (*is)(char)) {
  if (!scan.skip(1, is_alphanumeric)) return false;
  scan.take(is);
  return true;
}

// "10.0.0.5:/export", "[fd00::1]:/export"
bool is_nfs_source(Scan scan) {
  if (scan.skip("[")) {
    if (scan.take([](char c) { return is_hex(c) || c == ':' || c == '.'; }).empty() || !scan.skip("]"))
      return false;
  } else if (!skip_name(scan, is_word)) {
    return false;
  }
  return scan.skip(":") && is_path(scan);
}

bool skip_uuid(Scan& scan) {
  const auto is_digit_of_it = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
  if (!scan.skip(8, is_digit_of_it)) return false;
  for (int i = 0; i < 3; ++i)
    if (!scan.skip("-") || !scan.skip(4, is_digit_of_it)) return false;
  return scan.skip("-") && scan.skip(12, is_digit_of_it);
}

// "hpc@11111111-2222-8333-a444-555555555555.scratch=/path"
bool is_ceph_source(Scan scan) {
  return skip_name(scan, is_word) && scan.skip("@") && skip_uuid(scan) && scan.skip(".") &&
         !scan.take(is_word).empty() && scan.skip("=") && is_path(scan);
}

// "10.0.0.5@o2ib:10.0.0.6@o2ib:/scratch/path". NIDs contain colons, so they end at the first slash.
bool is_lustre_source(std::string_view source) {
  const size_t slash = source.find('/');
  if (slash == source.npos || !source.substr(0, slash).ends_with(':')) return false;
  Scan nids(source.substr(0, slash - 1)), path(source.substr(slash + 1));
  if (!skip_name(nids, [](char c) { return is_word(c) || c == ',' || c == '@' || c == ':'; })) return false;
  if (!nids.ended()) return false;
  if (path.take([](char c) { return is_alphanumeric(c) || c == '_' || c == '-'; }).empty()) return false;
  return path.ended() || is_path(path);
}

// Source formats must be those in which the kernel shows a mount: that is how the mount is recognised.
bool is_source(const std::string& fstype, const std::string& source) {
  if (fstype == "nfs4") return is_nfs_source(Scan(source));
  return fstype == "ceph" ? is_ceph_source(Scan(source)) : is_lustre_source(source);
}

const char* form_of(const std::string& fstype) {
  if (fstype == "nfs4") return "SERVER:/PATH, such as 10.0.0.5:/export";
  if (fstype == "ceph") return "USER@FSID.FILESYSTEM=/PATH";
  return "NID[:NID...]:/FILESYSTEM[/PATH], such as 10.0.0.5@o2ib:/scratch";
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
  if (storage.source.size() > 512 || !is_source(storage.fstype, storage.source))
    error(at, path + ".source",
          fmt::format("'{}' is not a valid {} source: it must be {}", storage.source.substr(0, 80),
                      storage.fstype, form_of(storage.fstype)));
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
