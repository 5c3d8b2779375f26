#include "controller/plan/storage_context.h"

#include <algorithm>

#include "base/disk_source.h"
#include "controller/engines/engine.h"
#include "controller/plan/interconnect.h"

namespace muster {
namespace {

Json disk_list(const NodeDisks& disks, const NodeSpec& node, const std::string& group, bool with_content) {
  Json out = Json::array();
  const auto found = disks.groups.find(group);
  if (found == disks.groups.end()) return out;
  const auto declared = node.disks.find(group);
  const DiskPolicy policy = declared == node.disks.end() ? DiskPolicy::keep : declared->second.policy;
  const char* word = policy == DiskPolicy::keep     ? "keep"
                     : policy == DiskPolicy::format ? "format"
                                                    : "format-if-blank";
  // The hash permits the agent to write: only disks in the destruction list get one. A disk that is reused
  // unchanged gets none, so the agent does not format it, whatever its policy.
  const auto approved = [&](const DiskFacts& d) {
    return std::any_of(disks.destroys.begin(), disks.destroys.end(), [&](const Destruction& gone) {
      return gone.group == group && gone.serial == d.serial && gone.wwid == d.wwid;
    });
  };
  for (const auto& d : found->second)
    out.push_back({{"serial", d.serial},
                   {"wwid", d.wwid},
                   {"model", d.model},
                   {"size_bytes", d.size_bytes},
                   {"content_hash", with_content && approved(d) ? d.content_hash : ""},
                   {"policy", word}});
  return out;
}

// Returns the correct mount source if the section's own disks are mounted.
std::string own_source(const ContextInput& in, const StorageSpec& s) {
  const auto found = in.disks.groups.find(s.disks);
  return disk_source(found == in.disks.groups.end() ? std::vector<DiskFacts>() : found->second);
}

Json local_storage(const ContextInput& in) {
  Json out = Json::array();
  for (const auto& s : in.spec.storage)
    if (engine_of(s).reach == Reach::own && is_member(s, in.node))
      out.push_back({{"name", s.name},
                     {"mount", s.mount},
                     {"level", s.level},
                     {"fs", s.fs},
                     {"source", own_source(in, s)},
                     {"disks", disk_list(in.disks, in.node, s.disks, in.with_content)}});
  return out;
}

// The nodes that mount the section, without the leader, which serves it. Only the leader gets this list.
Json clients_of(const Spec& spec, const StorageSpec& s, const SectionNetwork& network,
                const std::string& leader) {
  Json out = Json::array();
  for (const auto& n : spec.nodes)
    if (n.name != leader && mounts(s, n)) out.push_back({{"name", n.name}, {"address", network.address(n)}});
  return out;
}

// The two lists in which a section appears: `storage_shared`, and that of its engine.
enum List : size_t { of_all, of_engine };

Json shared_section(const ContextInput& in, const StorageSpec& s, List list) {
  const StorageEngine& engine = engine_of(s);
  SharedSection& shared = in.cluster.shared_section(s);
  const SectionNetwork& network = shared.network;
  const NodeSpec& first = *shared.leader;
  const Json leader = {{"name", first.name}, {"address", network.address(first)}};
  const bool member = is_member(s, in.node), leads = first.name == in.node.name;
  const RightMount right = engine.mount({in.spec.cluster, s, leader["address"].get<std::string>(), leads});
  Json out = {{"name", s.name},
              {"engine", s.engine},
              {"external", false},
              {"mount", s.mount},
              {"copies", s.copies},
              {"leader", leader},
              {"level", s.level},
              {"fs", s.fs},
              {"fstype", right.fstype},
              {"source", right.source == kDiskSource ? own_source(in, s) : right.source},
              {"is_leader", leads},
              {"is_member", member},
              {"members", std::move(shared.members[list])},
              {"address", network.address(in.node)},
              {"network", network.cidr()},
              {"clients", leads ? clients_of(in.spec, s, network, in.node.name) : Json::array()},
              {"disks", member ? disk_list(in.disks, in.node, s.disks, in.with_content) : Json::array()}};
  // True if new metadata may be created. The engines' playbooks label a disk only after metadata exists, so a
  // label shows that metadata existed. Not part of the configuration digest.
  if (engine.keeps_metadata) out["may_create"] = !in.with_content || !shared.holds_data;
  if (engine.add_context)
    engine.add_context({in.spec, in.node, in.cluster.machines(), in.with_content, in.forced}, s, out);
  return out;
}

// `only` null: those of all engines.
Json shared_storage(const ContextInput& in, const StorageEngine* only) {
  Json out = Json::array();
  for (const auto& s : in.spec.storage) {
    const StorageEngine& engine = engine_of(s);
    if (engine.reach != Reach::shared || (only && only != &engine)) continue;
    if (mounts(s, in.node) && in.cluster.shared_section(s).leader)
      out.push_back(shared_section(in, s, only ? of_engine : of_all));
  }
  if (!only)
    for (Json& one : external_storage(in.spec, in.node, true)) out.push_back(std::move(one));
  return out;
}

std::string list_of(const StorageEngine& engine) { return "storage_" + std::string(engine.name); }

}  // namespace

Json storage_of(const ContextInput& in) {
  Json out = {{"storage_local", local_storage(in)},
              {"storage_shared", shared_storage(in, nullptr)},
              {"storage_external", external_storage(in.spec, in.node, false)}};
  for (const StorageEngine* engine : storage_engines())
    if (engine->reach == Reach::shared) out[list_of(*engine)] = shared_storage(in, engine);
  return out;
}

void return_members(const ContextInput& in, Json& storage) {
  for (const auto& s : in.spec.storage) {
    if (engine_of(s).reach != Reach::shared) continue;
    for (const List list : {of_all, of_engine})
      for (Json& item : storage[list == of_all ? "storage_shared" : list_of(engine_of(s))])
        if (item["name"] == s.name && item["engine"] == s.engine)
          in.cluster.shared_section(s).members[list] = std::move(item["members"]);
  }
}

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
