// FakeMachine's Ceph. State is in files: /ceph/osds/ID "uuid host up in", /ceph/keys/NAME, /ceph/mons and
// /ceph/quorum (names), /ceph/pools/NAME "size min_size", /ceph/fs, /ceph/health "CODE SEVERITY [MESSAGE]",
// /ceph/labels/DISK (what a disk's label says besides its UUID), /ceph/busy (nothing is safe to destroy),
// /ceph/degraded (groups lack a copy), /ceph/unknown (the manager has just begun). All pools have two copies.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "agent/steps/step_modules.h"
#include "base/json_at.h"
#include "tests/fakes/fake_machine.h"

namespace muster::tests {
namespace {

namespace fs = std::filesystem;

Output good(std::string out = "") { return {0, std::move(out), ""}; }
Output bad(int code, std::string err) { return {code, "", std::move(err)}; }
Output json(const Json& value) { return good(value.dump()); }

std::string after(const std::vector<std::string>& argv, const std::string& option) {
  for (size_t i = 0; i + 1 < argv.size(); ++i)
    if (argv[i] == option) return argv[i + 1];
  return "";
}
std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

// What a daemon does when its unit starts.
void FakeMachine::ceph_starts(const std::string& unit) {
  const std::string name = unit.substr(unit.find('@') + 1, unit.rfind('.') - unit.find('@') - 1);
  if (unit.starts_with("ceph-osd@") && files().exists("/ceph/osds/" + name)) {
    auto osd = split(get("/ceph/osds/" + name), ' ');
    put("/ceph/osds/" + name, osd[0] + " node01 1 " + osd[3]);
  }
  if (unit.starts_with("ceph-mon@") && files().exists("/var/lib/ceph/mon/ceph-" + name + "/store.db"))
    for (const char* list : {"/ceph/mons", "/ceph/quorum"})
      if (get(list).find(name) == std::string::npos) append(list, name + " ");
  if (unit.starts_with("muster-ceph-")) {
    const std::string text = get("/etc/systemd/system/" + unit);
    const auto words = split(text.substr(text.find("-t ceph ")), ' ');
    fs::create_directories(root_ + words[3]);
    append("/proc/self/mountinfo",
           fmt::format("41 1 0:51 / {} rw{} - ceph {} rw\n", words[3],
                       text.find(",nosuid,nodev") == std::string::npos ? "" : ",nosuid,nodev", words[2]));
  }
}

Output FakeMachine::ceph_tools(const Command& command) {
  const auto& argv = command.argv;
  if (argv[0] == "chown") return good();
  if (argv[0] == "rm") {
    for (size_t i = 2; i < argv.size(); ++i) fs::remove_all(root_ + argv[i]);
    return good();
  }
  if (argv[0] == "mv") return fs::rename(root_ + argv[2], root_ + argv[3]), good();
  if (argv[0] == "monmaptool") return put(argv.back(), "map"), good();
  if (argv[0] == "ceph-authtool") return good("AQ==\n");
  if (argv[0] == "ceph-mon")
    return put(after(argv, "--mon-data") + "/store.db/CURRENT", get(after(argv, "--keyring"))), good();
  if (argv[0] == "ceph-osd") {
    const std::string disk = base_name(files().read_link(after(argv, "--osd-data") + "/block").value_or(""));
    write_disk(disk, 0, "bluestore block device\n" + after(argv, "--osd-uuid") + "\n");
    return put("/ceph/labels/" + disk, after(argv, "-i")), good();
  }
  if (argv[1] == "prime-osd-dir") return put(after(argv, "--path") + "/ready", "ready\n"), good();
  const std::string device = after(argv, "--dev"), number = get("/ceph/labels/" + base_name(device));
  Json label = {{"description", "main"}};
  if (!number.empty()) label.update({{"mkfs_done", "yes"}, {"ready", "ready"}, {"whoami", number}});
  return json({{device, label}});
}

Output FakeMachine::ceph_osd(const std::vector<std::string>& words, const std::string& input) {
  const std::string verb = words[1];
  Json osds = Json::array(), hosts = Json::object(), used = Json::array();
  int next = 0;
  for (const auto& id : files().list("/ceph/osds")) {
    const auto osd = split(get("/ceph/osds/" + id), ' ');
    const int number = std::stoi(id);
    next = std::max(next, number + 1);
    osds.push_back({{"osd", number}, {"uuid", osd[0]}, {"up", std::stoi(osd[2])}, {"in", std::stoi(osd[3])}});
    const int available = files().exists("/ceph/full") ? 10 : 100000;
    used.push_back({{"id", number},
                    {"kb", 1000 + available},
                    {"kb_used", 1000},
                    {"kb_used_data", 1000},
                    {"kb_avail", available},
                    {"reweight", std::stoi(osd[3])}});
    if (osd[1] != "-") hosts[osd[1]].push_back(number);
  }
  if (verb == "dump") {
    Json flags = Json::object();
    for (const auto& node : files().list("/ceph/noout")) flags[node] = Json::array({"noout"});
    return json({{"osds", osds}, {"crush_node_flags", flags}});
  }
  if (verb == "set-group") put("/ceph/noout/" + words[3], "1");
  if (verb == "unset-group") (void)files().remove("/ceph/noout/" + words[3]).ok();
  if (verb == "df") return json({{"nodes", used}});
  if (verb == "tree") {
    Json nodes =
        Json::array({{{"id", -1}, {"name", "default"}, {"type", "root"}, {"children", Json::array()}}});
    for (const auto& [host, own] : hosts.items()) {
      const int id = -2 - static_cast<int>(nodes.size());
      if (!files().exists("/ceph/stray")) nodes[0]["children"].push_back(id);
      nodes.push_back({{"id", id}, {"name", host}, {"type", "host"}, {"children", own}});
    }
    return json({{"nodes", nodes}});
  }
  if (verb == "new") {
    const std::string id = words[3] == "-i" ? std::to_string(next) : words[3];
    put("/ceph/osds/" + id, words[2] + " - 0 1");
    put("/ceph/keys/osd." + id, text_at(parse_json(input).value_or(Json()), "cephx_secret"));
    return good(id + "\n");
  }
  if (verb == "in" || verb == "out")
    for (size_t i = 2; i < words.size(); ++i) {
      const auto osd = split(get("/ceph/osds/" + words[i]), ' ');
      put("/ceph/osds/" + words[i], fmt::format("{} {} {} {}", osd[0], osd[1], osd[2], verb == "in" ? 1 : 0));
    }
  if (verb == "safe-to-destroy" && files().exists("/ceph/busy"))
    return bad(16, "Error EBUSY: OSD(s) 0 have 29 pgs currently mapped to them.\n");
  if (verb == "ok-to-stop") {
    // A group may have its other copy on any store that is down.
    bool alone = files().exists("/ceph/degraded");
    for (const auto& osd : osds) {
      const bool stops = std::find(words.begin(), words.end(), osd["osd"].dump()) != words.end();
      alone = alone || (osd["up"] == 0 && !stops);
    }
    if (files().exists("/ceph/unknown"))
      return bad(11, "Error EAGAIN: 80 pgs have unknown state; cannot draw any conclusions\n");
    if (alone)
      return bad(16, "Error EBUSY: unsafe to stop osd(s) at this time (9 PGs are or would become offline)\n");
  }
  if (verb == "purge") (void)files().remove("/ceph/osds/" + words[2]).ok();
  if (verb == "pool" && words[2] == "create" && !files().exists("/ceph/pools/" + words[3]))
    put("/ceph/pools/" + words[3], "3 2");
  if (verb == "pool" && words[2] == "set") {
    auto pool = split(get("/ceph/pools/" + words[3]), ' ');
    pool[words[4] == "size" ? 0 : 1] = words[5];
    put("/ceph/pools/" + words[3], pool[0] + " " + pool[1]);
  }
  if (verb == "pool" && words[2] == "ls") {
    Json pools = Json::array();
    for (const auto& name : files().list("/ceph/pools")) {
      const auto pool = split(get("/ceph/pools/" + name), ' ');
      pools.push_back({{"pool_name", name}, {"size", std::stoi(pool[0])}, {"min_size", std::stoi(pool[1])}});
    }
    return json(pools);
  }
  return good();
}

Output FakeMachine::ceph(const Command& command) {
  if (command.argv[0] != "ceph") return ceph_tools(command);
  const std::vector<std::string> words(command.argv.begin() + 3,
                                       command.argv.end());  // without --connect-timeout N
  if (words[0] == "osd") return ceph_osd(words, command.input);
  if (words[0] == "quorum_status") {
    if (get("/ceph/quorum").empty()) return bad(1, "[errno 110] RADOS timed out");
    Json mons = Json::array();
    for (const auto& name : split(get("/ceph/mons"), ' ')) mons.push_back({{"name", name}});
    return json({{"quorum_names", split(get("/ceph/quorum"), ' ')}, {"monmap", {{"mons", mons}}}});
  }
  if (words[0] == "auth") {
    const std::string path = "/ceph/keys/" + words[2];
    if (words[1] == "get-or-create-key" && !files().exists(path)) put(path, "KEY-" + words[2]);
    return files().exists(path) ? good(get(path) + (words[1] == "get-key" ? "" : "\n"))
                                : bad(2, "Error ENOENT: don't have " + words[2]);
  }
  if (words[0] == "mon") {  // remove
    for (const char* list : {"/ceph/mons", "/ceph/quorum"}) {
      std::string rest;
      for (const auto& name : split(get(list), ' ')) rest += name == words[2] ? "" : name + " ";
      put(list, rest);
    }
    return good();
  }
  if (words[0] == "fs" && words[1] == "new") return put("/ceph/fs", words[2]), good();
  if (words[0] == "fs" && words[1] == "set") return put("/ceph/standbys", words[4]), good();
  if (words[0] == "fs" && !files().exists("/ceph/fs")) return json({{"filesystems", Json::array()}});
  if (words[0] == "fs")
    return json({{"filesystems",
                  {{{"mdsmap",
                     {{"fs_name", get("/ceph/fs")},
                      {"standby_count_wanted", std::atoi(get("/ceph/standbys").c_str())},
                      {"info", {{"gid_1", {{"state", "up:active"}}}}}}}}}}});
  if (words[0] == "pg")
    return json(
        {{"pg_summary",
          {{"num_pg_by_state",
            {{{"name", files().exists("/ceph/degraded") ? "active+undersized+degraded" : "active+clean"},
              {"num", 80}}}}}}});
  Json checks = Json::object();
  for (const auto& line : split_lines(get("/ceph/health")))
    if (const auto found = split(line, ' '); found.size() >= 2) {
      const size_t message = found[0].size() + found[1].size() + 2;
      checks[found[0]] = {
          {"severity", found[1]},
          {"summary", {{"message", message < line.size() ? line.substr(message) : "something about it"}}}};
    }
  return json({{"checks", checks}});
}

}  // namespace muster::tests
