#include "controller/report/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/plural.h"
#include "base/record.h"
#include "base/split.h"
#include "base/utf8.h"
#include "controller/report/markup.h"

namespace muster {
namespace {

constexpr size_t kFewestForMajority = 3;
constexpr size_t kShownHosts = 6;
constexpr size_t kShownBytes = 120;  // limit for a value: mount options are long

constexpr Words<Agreement, 6> kWords = {{{Agreement::equal, "equal"},
                                         {Agreement::outliers, "outliers"},
                                         {Agreement::tie, "tie"},
                                         {Agreement::split, "no majority"},
                                         {Agreement::few, "too few"},
                                         {Agreement::unseen, "not looked at"}}};
}  // namespace
MUSTER_WORDS(Agreement, kWords)
namespace {

Agreement agreement_of(const std::vector<DriftValue>& values) {
  size_t looked_at = 0;
  for (const DriftValue& one : values) looked_at += one.hosts.size();
  if (looked_at == 0) return Agreement::unseen;
  if (looked_at < kFewestForMajority) return Agreement::few;
  if (values.size() == 1) return Agreement::equal;
  if (values[0].hosts.size() == values[1].hosts.size()) return Agreement::tie;
  return 2 * values[0].hosts.size() > looked_at ? Agreement::outliers : Agreement::split;
}

DriftProperty property_of(const std::string& name, const std::vector<const HostProperties*>& hosts) {
  DriftProperty out;
  out.name = name;
  std::map<std::string, std::vector<std::string>> by_value;
  for (const HostProperties* host : hosts) {
    const auto found = host->values.find(name);
    const std::string value = found == host->values.end() ? "" : trim(found->second);
    (value.empty() ? out.not_looked_at : by_value[value]).push_back(host->host);
  }
  for (auto& [value, names] : by_value) out.values.push_back({value, std::move(names)});
  std::stable_sort(out.values.begin(), out.values.end(),
                   [](const DriftValue& a, const DriftValue& b) { return a.hosts.size() > b.hosts.size(); });
  out.agreement = agreement_of(out.values);
  return out;
}

// ---- its JSON form

struct ValueText {
  std::string value = {};
  size_t count = 0;
  std::vector<std::string> hosts = {};
};
struct PropertyText {
  std::string name = {};
  Agreement agreement = Agreement::unseen;
  std::optional<std::string> majority = {};
  std::vector<ValueText> values = {};
  std::vector<std::string> outliers = {}, not_looked_at = {};
};
struct GroupText {
  std::string group = {};
  std::vector<std::string> hosts = {};
  std::vector<PropertyText> properties = {};
};
struct DriftText {
  std::vector<GroupText> groups = {};
};
MUSTER_RECORD(ValueText, value, count, sparse(hosts))
MUSTER_RECORD(PropertyText, name, agreement, sparse(majority), values, outliers, not_looked_at)
MUSTER_RECORD(GroupText, group, hosts, properties)
MUSTER_RECORD(DriftText, groups)

// Returns the hosts in the group that are in no other list.
std::vector<std::string> rest_of(const std::vector<std::string>& group, const DriftProperty& property) {
  std::set<std::string> rest(group.begin(), group.end());
  for (const std::string& host : property.not_looked_at) rest.erase(host);
  for (const DriftValue& one : property.values)
    for (const std::string& host : one.hosts) rest.erase(host);
  return {rest.begin(), rest.end()};
}

DriftProperty property_from(PropertyText& text, const std::vector<std::string>& group) {
  DriftProperty out{std::move(text.name), text.agreement, {}, std::move(text.not_looked_at)};
  for (ValueText& one : text.values) out.values.push_back({std::move(one.value), std::move(one.hosts)});
  if (out.majority() && out.values.front().hosts.empty()) out.values.front().hosts = rest_of(group, out);
  return out;
}

std::vector<std::string> outliers_of(const DriftProperty& property) {
  std::vector<std::string> out;
  if (property.agreement != Agreement::outliers) return out;
  for (size_t i = 1; i < property.values.size(); ++i)
    out.insert(out.end(), property.values[i].hosts.begin(), property.values[i].hosts.end());
  std::sort(out.begin(), out.end());
  return out;
}

PropertyText text_of(const DriftProperty& property) {
  const DriftValue* majority = property.majority();
  PropertyText out{property.name, property.agreement, {}, {}, outliers_of(property), property.not_looked_at};
  if (majority) out.majority = majority->value;
  for (const DriftValue& one : property.values)
    out.values.push_back(
        {one.value, one.hosts.size(), &one == majority ? std::vector<std::string>() : one.hosts});
  return out;
}

// ---- text

std::string shown(const std::string& value) {
  return value.size() <= kShownBytes ? value : std::string(first_bytes(value, kShownBytes)) + "...";
}

// Returns the values from `first` on: "1.9 on gpu07, gpu09; 2.0 on gpu11".
std::string values_text(const DriftProperty& property, size_t first) {
  std::string out;
  for (size_t i = first; i < property.values.size(); ++i)
    out += fmt::format("{}{} on {}", i > first ? "; " : "", shown(property.values[i].value),
                       some_of(property.values[i].hosts, kShownHosts));
  return out;
}

std::string what_differs(const DriftProperty& property) {
  const std::vector<DriftValue>& values = property.values;
  switch (property.agreement) {
    case Agreement::equal:
      return fmt::format("{} on {}", shown(values[0].value), counted(values[0].hosts.size(), "host"));
    case Agreement::outliers:
      return fmt::format("{} on {}, but {}", shown(values[0].value), counted(values[0].hosts.size(), "host"),
                         values_text(property, 1));
    case Agreement::tie:
      return "no majority, because of a tie: " + values_text(property, 0);
    case Agreement::split:
      return "no majority: " + values_text(property, 0);
    case Agreement::few:
      return "fewer than three hosts, so no majority: " + values_text(property, 0);
    case Agreement::unseen:
      break;
  }
  return "not looked at on any host";
}

std::string property_line(const DriftProperty& property) {
  std::string out = what_differs(property);
  if (!property.not_looked_at.empty() && property.agreement != Agreement::unseen)
    out += fmt::format("; not looked at on {}", some_of(property.not_looked_at, kShownHosts));
  return markup::plain(property.name + ": " + out);
}

}  // namespace

std::string_view to_string(Agreement agreement) { return word_of(kWords, agreement); }

const DriftValue* DriftProperty::majority() const {
  const bool there = agreement == Agreement::equal || agreement == Agreement::outliers;
  return there && !values.empty() ? &values.front() : nullptr;
}

std::map<std::string, std::string> drift_properties(const HardwareFacts& facts) {
  std::map<std::string, std::string> out = facts.properties;
  const auto put = [&](const char* name, const std::string& value) {
    if (!trim(value).empty()) out[name] = trim(value);
  };
  put("kernel", facts.kernel);
  put("operating system", facts.os);
  put("BIOS version", facts.firmware);
  // If the host's firmware is unknown, so is its boot mode.
  if (!facts.firmware.empty()) put("boot mode", facts.uefi ? "UEFI" : "legacy BIOS");
  put("system", facts.system.vendor + " " + facts.system.product);
  put("processor model", facts.cpus.model);
  // Differs if hyper-threading or cores are switched off in the BIOS.
  if (facts.cpus.count > 0) put("logical processors", fmt::format("{}", facts.cpus.count));
  std::map<std::string, int> gpus, drivers, speeds, drives;
  for (const GpuFacts& gpu : facts.gpus) ++gpus[gpu.model.empty() ? "unknown model" : gpu.model];
  for (const NicFacts& nic : facts.nics) {
    if (!nic.driver.empty()) ++drivers[nic.driver];
    if (nic.link_up && nic.speed_mbps > 0) ++speeds[fmt::format("{} Mbit/s", nic.speed_mbps)];
  }
  for (const DiskFacts& disk : facts.disks)
    if (is_local_transport(disk.transport) && !disk.model.empty()) ++drives[disk.model];
  put("GPU models", tally(gpus));
  put("port drivers", tally(drivers));
  put("port speeds", tally(speeds));
  put("drive models", tally(drives));
  return out;
}

std::string of_all_parts(std::vector<std::string> values) {
  std::set<std::string> distinct;
  for (const std::string& value : values)
    if (std::string text = trim(value); !text.empty()) distinct.insert(std::move(text));
  std::string out;
  for (const std::string& value : distinct) out += (out.empty() ? "" : ", ") + value;
  return out;
}

Drift find_drift(const std::vector<HostProperties>& hosts) {
  std::map<std::string, std::vector<const HostProperties*>> groups;
  std::set<std::string> names;
  for (const HostProperties& host : hosts) {
    groups[host.group].push_back(&host);
    for (const auto& [name, value] : host.values) names.insert(name);
  }
  Drift out;
  for (auto& [name, members] : groups) {
    std::sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return a->host < b->host; });
    DriftGroup& group = out.emplace_back();
    group.name = name;
    for (const HostProperties* host : members) group.hosts.push_back(host->host);
    for (const std::string& property : names) group.properties.push_back(property_of(property, members));
  }
  return out;
}

HostProperties drift_host(const std::string& node, const std::string& role, const HardwareFacts& facts) {
  const std::string product = trim(facts.system.vendor + " " + facts.system.product);
  return {node, product.empty() ? role : role + ", " + product, drift_properties(facts)};
}

Drift drift_of_run(const std::vector<HostProperties>& hosts) {
  Drift out = find_drift(hosts);
  std::erase_if(out, [](const DriftGroup& group) { return group.hosts.size() < kFewestForMajority; });
  return out;
}

Json to_json(const Drift& drift) {
  DriftText out;
  for (const DriftGroup& group : drift) {
    GroupText& text = out.groups.emplace_back(GroupText{group.name, group.hosts});
    for (const DriftProperty& property : group.properties) text.properties.push_back(text_of(property));
  }
  return record_json(out);
}

Result<Drift> drift_from_json(const Json& json) {
  TRY(auto read, read_record<DriftText>(json, "drift"));
  Drift out;
  for (GroupText& text : read.groups) {
    DriftGroup& group = out.emplace_back(DriftGroup{std::move(text.group), std::move(text.hosts), {}});
    for (PropertyText& property : text.properties)
      group.properties.push_back(property_from(property, group.hosts));
  }
  return out;
}

Status read_own(const Json& json, Drift& out) {
  TRY(out, drift_from_json(json));
  return Ok{};
}

std::string render_drift(const Drift& drift) {
  std::string out;
  for (const DriftGroup& group : drift) {
    size_t alike = 0;
    std::string lines;
    for (const DriftProperty& property : group.properties) {
      const bool one_value = property.agreement == Agreement::equal ||
                             (property.agreement == Agreement::few && property.values.size() == 1);
      if (one_value && property.not_looked_at.empty())
        ++alike;
      else
        lines += "  " + property_line(property) + "\n";
    }
    const std::string title = group.name.empty() ? "all hosts" : "group " + group.name;
    out += markup::plain(fmt::format("{} ({}): {} of {} properties are equal on all hosts", title,
                                     counted(group.hosts.size(), "host"), alike, group.properties.size()));
    out += "\n" + lines;
  }
  return out.empty() ? "no hosts\n" : out;
}

}  // namespace muster
