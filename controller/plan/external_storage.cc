#include "controller/plan/external_storage.h"

#include <algorithm>

#include "controller/engines/engine.h"
#include "controller/engines/sections.h"

namespace muster {
namespace {

// Escapes brackets (of an IPv6 address), because mount sources are compared as globs.
std::string as_glob(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '[' || c == ']' ? std::string("[") + c + "]" : std::string(1, c);
  return out;
}

// Returns the server whose reachability is checked if the mount does not answer. A CephFS source names a
// cluster, not a server; the monitors' addresses may be in the options.
std::string server_of(const StorageSpec& s) {
  if (s.fstype != "ceph") return s.source.substr(0, s.source.find(":/"));
  const std::string options = "," + s.options + ",", mark = ",mon_addr=";
  const auto at = options.find(mark);
  if (at == std::string::npos) return s.source.substr(s.source.find('@') + 1);
  const auto begin = at + mark.size();
  return options.substr(begin, options.find(',', begin) - begin);
}

}  // namespace

Json external_storage(const Spec& spec, const NodeSpec& node, bool writable_only) {
  Json out = Json::array();
  for (const auto& s : spec.storage) {
    if (engine_of(s).reach != Reach::of_a_site || !mounts(s, node) || (writable_only && !s.writable))
      continue;
    const auto first =
        std::find_if(spec.nodes.begin(), spec.nodes.end(), [&](const NodeSpec& n) { return mounts(s, n); });
    out.push_back({{"name", s.name},
                   {"engine", s.engine},
                   {"external", true},
                   {"mount", s.mount},
                   {"is_ceph", s.fstype == "ceph"},
                   {"fs", s.fstype},
                   {"fstype", s.fstype},
                   {"source", as_glob(s.source)},
                   {"device", s.source},
                   {"server", server_of(s)},
                   {"options", s.options},
                   {"writable", s.writable},
                   {"leader", {{"name", first->name}, {"address", first->address}}},
                   {"is_leader", first->name == node.name},
                   {"is_member", false},
                   {"members", Json::array()},
                   {"clients", Json::array()},
                   {"disks", Json::array()}});
  }
  return out;
}

}  // namespace muster
