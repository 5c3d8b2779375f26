#include "controller/hosts/reached.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/split.h"
#include "controller/spec/host_name.h"
#include "sys/os.h"

namespace muster {
namespace {

constexpr const char* kFile = "/machines.json";

// A plain user can read less than root could in the previous run: parts that are missing now are kept.
MachineParts merged(const MachineParts& before, MachineParts now) {
  if (now.uuid.empty()) now.uuid = before.uuid;
  if (now.gpus.empty()) now.gpus = before.gpus;
  if (now.drives.empty()) now.drives = before.drives;
  if (now.ports.empty()) now.ports = before.ports;
  if (now.machine_id.empty()) now.machine_id = before.machine_id;
  return now;
}

void refuse_one_machine(const std::vector<ReachedHost>& hosts, std::map<std::string, std::string>& out) {
  std::vector<NamedMachine> named;
  for (const auto& host : hosts) named.push_back({host.name, host.parts, host.boot_id});
  for (const auto& one : names_of_one_machine(named)) {
    if (!one.sure) continue;  // may be two machines with copies of one image
    for (const auto& name : one.names) {
      std::vector<std::string> others;
      for (const auto& other : one.names)
        if (other != name) others.push_back(other);
      out[name] = fmt::format("this is the same machine as {}: list the machine once", some_of(others));
    }
  }
}

// The host of the list that a kernel's name belongs to; "": none. The whole name goes before its first part.
std::string listed_as(const std::string& hostname, const ListedNames& names) {
  for (const std::string& one : {hostname, hostname.substr(0, hostname.find('.'))})
    if (const auto found = names.find(host_label(one)); found != names.end()) return found->second;
  return "";
}

// "localhost" and "" name no machine.
bool has_host_name(const ReachedHost& host) {
  const std::string name = host_label(host.hostname);
  return !name.empty() && name != "localhost" && !host.hostname.starts_with("localhost.");
}

void refuse_wrong_names(const std::vector<ReachedHost>& hosts, const ListedNames& names,
                        std::map<std::string, std::string>& out) {
  for (const auto& host : hosts) {
    if (!has_host_name(host) || out.count(host.name)) continue;
    const std::string other = listed_as(host.hostname, names);
    if (other.empty() || other == host.name) continue;
    out[host.name] = fmt::format(
        "the machine reached as {} has the host name {}, and {} is another host of the list: correct the "
        "list, or the machine's host name (hostnamectl)",
        host.name, host.hostname, other);
  }
}

}  // namespace

Result<KnownMachines> KnownMachines::read(const std::string& folder) {
  KnownMachines out(folder);
  const Files files(folder);
  if (!files.exists(kFile)) return out;
  TRY(const auto text, files.read(kFile));
  const auto broken = [&](const std::string& why) {
    return fail(Code::corrupt, fmt::format("{}{}: {}: this file records which machine each host was; if you "
                                           "remove it, all hosts count as new",
                                           folder, kFile, why));
  };
  const auto json = parse_json(text);
  if (!json.ok()) return broken(json.error().message);
  if (!json->is_object()) return broken("not an object");
  for (const auto& [host, known] : json->items()) {
    if (!known.is_object() || !known.contains("parts")) return broken(host + " has no `parts`");
    const auto parts = machine_parts_from_json(known["parts"]);
    if (!parts.ok()) return broken(host + ": " + parts.error().message);
    const Json run = known.value("history_after", Json(0));
    out.hosts_[host] = {*parts, run.is_number_integer() ? run.get<int64_t>() : 0};
  }
  return out;
}

Status KnownMachines::write() const {
  Json out = Json::object();
  for (const auto& [host, known] : hosts_)
    out[host] = {{"parts", to_json(known.parts)}, {"history_after", known.history_after}};
  return Files(folder_).write(kFile, dump_json(out, 2) + "\n", 0600);
}

MachineChange KnownMachines::meet(const std::string& host, const MachineParts& now, int64_t newest_run) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) {
    hosts_[host] = {now, 0};
    return {};
  }
  Known& known = found->second;
  MachineChange change = compare_machines(known.parts, now);
  if (change.same == SameMachine::no)
    known = {now, newest_run};
  else
    known.parts = merged(known.parts, now);
  return change;
}

std::map<std::string, int64_t> KnownMachines::history_after() const {
  std::map<std::string, int64_t> out;
  for (const auto& [host, known] : hosts_)
    if (known.history_after > 0) out[host] = known.history_after;
  return out;
}

Result<ReachedHost> reached_host(const std::string& name, const HostLooked& looked) {
  const auto facts = hardware_facts_from_json(looked.facts);
  if (!facts.ok()) return Error(facts.error()).with("its inventory");
  ReachedHost out;
  out.name = name;
  out.text = dump_ascii(looked.facts);
  out.parts = machine_parts(*facts, facts->machine_id);
  if (looked.look.is_object()) out.look = looked.look;
  return out;
}

bool all_simulated(const std::vector<ReachedHost>& hosts) {
  return !hosts.empty() && std::all_of(hosts.begin(), hosts.end(), [](const ReachedHost& host) {
    const auto facts = host.text.facts();
    return facts && facts->system.vendor == "SIMULATED";
  });
}

std::string busy_words(const Json& look) {
  std::string out;
  for (const Json& reason : list_at(look, "busy"))
    if (const std::string text = text_at(reason, "text"); !text.empty())
      out += (out.empty() ? "" : "; ") + text;
  return out;
}

std::map<std::string, std::string> mistaken_hosts(const std::vector<ReachedHost>& hosts,
                                                  const ListedNames& names) {
  std::map<std::string, std::string> out;
  refuse_one_machine(hosts, out);
  refuse_wrong_names(hosts, names, out);
  return out;
}

std::string note_of_names(const std::vector<ReachedHost>& hosts, const ListedNames& names) {
  std::vector<std::string> others;
  for (const auto& host : hosts)
    if (has_host_name(host) && listed_as(host.hostname, names).empty())
      others.push_back(fmt::format("{} is {}", host.name, host.hostname));
  return others.empty() ? "" : "machines whose host name is not the one in the list: " + some_of(others);
}

std::vector<AcceptHost> accept_hosts(const std::vector<ReachedHost>& hosts) {
  std::vector<AcceptHost> out;
  for (const auto& host : hosts) {
    AcceptHost one;
    one.name = host.name;
    one.address = host.address;
    one.group = host.group;
    one.facts = host.text.facts().get();  // the text keeps it
    if (const auto ports = host.look.find("rdma_ports");
        ports != host.look.end() && ports->is_number_integer())
      one.rdma_ports = ports->get<int>();
    out.push_back(std::move(one));
  }
  return out;
}

Drift drift_of(const std::vector<ReachedHost>& hosts) {
  const auto groups = groups_of(accept_hosts(hosts));
  std::vector<HostProperties> properties;
  for (const auto& host : hosts) {
    const auto facts = host.text.facts();
    const auto group = groups.find(host.name);
    properties.push_back({host.name, group == groups.end() ? "" : group->second,
                          facts ? drift_properties(*facts) : std::map<std::string, std::string>{}});
  }
  return find_drift(properties);
}

std::vector<std::string> look_notes(const std::vector<ReachedHost>& hosts) {
  std::map<std::string, std::vector<std::string>> shares, unseen, noted;
  for (const auto& host : hosts) {
    const auto share = host.look.find("share");
    std::string words;
    if (share != host.look.end())
      for (const Json& word : list_at(*share, "words"))
        if (word.is_string()) words += (words.empty() ? "" : ", ") + word.get<std::string>();
    if (!words.empty()) shares[words].push_back(host.name);
    for (const Json& word : list_at(host.look, "not_looked_at"))
      if (word.is_string()) unseen[word.get<std::string>()].push_back(host.name);
    for (const Json& word : list_at(host.look, "notes"))
      if (word.is_string()) noted[word.get<std::string>()].push_back(host.name);
  }
  std::vector<std::string> out;
  for (const auto& [words, names] : shares)
    out.push_back(fmt::format("only a part of the machine is measured ({}): {}", words, some_of(names)));
  for (const auto& [words, names] : unseen)
    out.push_back(fmt::format("the check for other work is incomplete ({}): {}", words, some_of(names)));
  for (const auto& [words, names] : noted)
    out.push_back(fmt::format("measured all the same ({}): {}", words, some_of(names)));
  return out;
}

}  // namespace muster
