// Turns the checked YAML tree into a Spec and applies the rules that a schema cannot express. Internal to
// controller/spec.
//
// Each part reads what it needs and does not report what the schema check already reported: a value of the
// wrong type counts as absent. So all errors of a file are reported at once, each only once. No I/O.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/spec/address.h"
#include "controller/spec/apt_origin.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/units.h"
#include "controller/spec/yaml.h"

namespace muster {

struct NodeEntry {  // place of a node's entry
  const YamlNode* entry = nullptr;
  std::string path;  // "nodes[0]"
  size_t index = 0;  // index of the name in its range
};

struct ValuePlace {  // place of a value
  const YamlNode* at = nullptr;
  std::string path;
};

class SpecReader {
 public:
  SpecReader(const YamlNode& root, const SpecNames& names)
      : root_(root), names_(names), only_for_(names.only_for), optional_vars_(names.optional_vars) {}
  ParsedSpec read();

 private:
  // Access to values; one of the wrong kind counts as absent.
  static std::string text(const YamlNode* map, const char* key) { return yaml_text(map, key); }
  static const YamlNode* child(const YamlNode* map, const char* key) { return yaml_child(map, key); }
  static int64_t integer(const YamlNode* map, const char* key, int64_t fallback) {
    return yaml_integer(map, key, fallback);
  }
  void error(const YamlNode& at, const std::string& path, std::string message);
  // For values that are checked once per name in a range: reports only the first error.
  void error_once(const YamlNode& at, const std::string& path, std::string message);
  // more: how a user names more than the known ones; may be empty.
  void must_be_known(const YamlNode& at, const std::string& path, const std::string& what,
                     const std::string& name, const std::vector<std::string>& known,
                     const std::string& more = "");

  void read_network();
  Subnet read_subnet(const YamlNode* network, const char* name, std::optional<Cidr>& cidr);
  // The rate of ports that a section declares; 0: none.
  double read_link_rate(const YamlNode* section, const std::string& path);
  void read_network_address(const YamlNode* network, const char* key, std::string& out);
  void read_users();
  void read_key(const YamlNode& at, const std::string& path);
  void read_images();
  void check_recipe(const YamlNode& at, const ImageSpec& image);
  void read_roles();
  void read_leads(const YamlEntry& role, const std::vector<std::string>& playbooks);
  void read_limits();
  struct Between {
    DurationMs least, most;
  };
  // The limits of a trial's duration, and of the time that jobs have to end.
  static constexpr DurationMs kShortestTrial = 2 * kMinute, kLongestTrial = kDay, kShortestDrain = kMinute,
                              kLongestDrain = 14 * kLongestTrial;
  void read_duration(const ValuePlace& section, const char* key, const Between& range, DurationMs& out);
  void read_rate(const YamlNode* limits, const char* key, int64_t& out);
  void read_event_limits(const YamlNode* limits);
  struct Sizes {
    int64_t least, most;
    const char* words;  // "64 KiB and 8 MiB"
  };
  void read_size(const ValuePlace& section, const char* key, const Sizes& range, int64_t& out);
  void check_playbooks(const YamlNode* list, const std::string& path);
  // Reports playbooks that are for another distribution than the systems that the spec names them for.
  void check_only_for();
  std::map<std::string, std::string> read_vars(const YamlNode* map, const std::string& path);
  // Reports optional variables of the playbooks in use that are set in part, in vain, or misspelt.
  void check_optional_vars();
  void check_bridge(const YamlNode* vars, const std::string& path);
  void check_second_sources();
  VarGroups optional_vars_in_use() const;
  // The first role or image that has this playbook and one that reads the variable; "" if there is none.
  std::string with_both(const std::string& playbook, const std::string& variable) const;
  void read_services();
  void read_dns(const YamlNode* network);
  void read_ntp(const YamlNode* network);
  void read_proxy(const YamlNode* network);
  void read_firewall();
  void read_rule(const YamlNode& entry, const std::string& path);
  bool check_ports(const YamlNode& at, const std::string& path);
  void read_additions(const YamlNode* map, const std::string& path, Additions& out);
  void check_services();
  void must_have_playbook(const YamlNode& at, const std::string& path, const std::string& playbook,
                          const std::string& role);
  void read_apt(const YamlNode* network);
  void read_mirror(const YamlNode* section, const Distribution& distribution);
  std::string mirror_url(const YamlNode* at, const std::string& path, const Distribution& distribution);
  std::string mirror_key(const YamlNode* at, const std::string& path);
  void check_mirrors();
  // The section of `network` that apt_path() names; null if it is not there.
  static const YamlNode* mirror_section(const YamlNode* network, const Distribution& distribution);
  void read_playbooks();
  void read_playbook_path(const YamlNode& at, const std::string& path);
  void read_own_playbook(const YamlEntry& entry, std::map<std::string, std::string>& files);
  // The names in names_ and the spec's own. Empty, so that none is rejected, if names_ has none or the spec's
  // own playbooks are still paths.
  std::vector<std::string> known_playbooks() const;
  std::vector<std::string> known_profiles() const;
  void read_lab();
  void read_rollout();
  void read_max_unavailable(const YamlNode& rollout, RolloutSpec& out);
  void read_rollout_roles(const YamlNode& rollout, RolloutSpec& out);
  void check_rollout_role(const YamlNode& at, const std::string& path, const std::string& role);
  void check_canaries(const YamlNode& at, const RolloutSpec& rollout);
  void read_rebuild(const YamlNode& rollout, RolloutSpec& out);
  void check_rollout_times(const YamlNode& rollout, const RolloutSpec& out);
  void read_warnings();
  void read_notify();
  void read_kinds(const YamlNode* section, const std::string& path, const char* key,
                  std::set<std::string>& out);
  void read_receiver(const YamlEntry& entry, const std::string& path);
  void read_way(const YamlEntry& entry, const std::string& path, Receiver& out);
  void read_webhook(const YamlNode& section, const std::string& path, Webhook& out);
  void read_mail(const YamlNode& section, const std::string& path, Mail& out);
  // "07:30" -> minutes of the day; -1 if it is absent or wrong.
  int read_time_of_day(const YamlNode& at, const std::string& path, const std::string& text);
  void read_acceptance();
  void read_gpu_acceptance();
  struct NicWishes {  // of a role or a node
    std::optional<int> rails;
    std::vector<std::string> rail_ports;
    std::string storage_port;
  };
  void read_rails();
  void read_rail_ports(const YamlNode* list, const std::string& path, bool one_node,
                       std::vector<std::string>& out);
  bool check_port(const YamlNode& at, const std::string& path, bool one_node, std::string& out);
  void read_qos(const YamlNode* qos);
  void read_priorities(const YamlNode* map, const std::string& path, int most_key, std::map<int, int>& out);
  void make_rail_networks(const YamlNode& rails);
  void check_rail_networks(const YamlNode& rails);
  // The first network of the cluster that overlaps this one, in words; "" if none does. Of the rails, the
  // first ones are looked at.
  std::string overlapped(const Cidr& network, size_t rails) const;
  NicWishes read_wishes(const YamlNode* map, const std::string& path, bool one_node);
  void assign_rails();
  void give_rails(NodeSpec& node, const NicWishes& role, const NicWishes& own);
  void give_ports(NodeSpec& node, const NodeEntry& place, const NicWishes& role, const NicWishes& own);
  void give_storage(NodeSpec& node, const YamlNode& at, const std::string& path, const NicWishes& wishes);
  std::string address_in(const Cidr& network, const NodeSpec& node, const YamlNode& at,
                         const std::string& path);
  void check_same_port(const NodeSpec& node, const YamlNode& at, const std::string& path);
  void check_order();
  void read_nodes();
  void read_node_entry(const YamlNode& entry, const std::string& path);
  void expand_node(const YamlNode& entry, const std::string& path, const YamlNode* name,
                   const NodeSpec& common);
  NodeSpec read_common(const YamlNode& entry, const std::string& path);
  void read_power(const YamlNode& power, const std::string& path, PowerSpec& out);
  void read_person(const YamlNode& power, const std::string& path, PowerSpec& out);
  void check_power_keys(const YamlNode& power, const std::string& path, const std::string& driver);
  void read_adopt(const YamlNode& entry, const std::string& path, NodeSpec& node);
  void check_adopted(const YamlNode& entry, const std::string& path, size_t count, NodeSpec& node);
  void read_hardware(const YamlNode* hardware, const std::string& path, HardwareSpec& out);
  void read_disks(const YamlNode* disks, const std::string& path, bool imaged,
                  std::map<std::string, DiskGroup>& out);
  bool check_selector_text(const YamlNode& at, const std::string& path);
  std::optional<std::string> selector_text(const YamlNode* match, const char* key, const std::string& path);
  void read_serials(const YamlNode& serials, const std::string& path, std::vector<std::string>& out);
  DiskGroup read_disk_group(const YamlEntry& group, const std::string& path, bool imaged);
  void check_disk_overlap(const YamlNode* disks, const std::string& path,
                          const std::map<std::string, DiskGroup>& groups);
  struct InRange {  // one name of an entry's range
    int number;
    size_t index, count;
  };
  void number_node(const YamlNode& entry, const std::string& path, const InRange& name, NodeSpec& node);
  std::optional<std::string> value_of(const ValuePlace& value, const InRange& name, const char* what,
                                      NumberForm form);
  static ValuePlace own_value(const ValuePlace& value, size_t index);
  void read_mac(const ValuePlace& mac, const InRange& name, std::string& out);
  void read_label(const YamlNode& entry, const std::string& path, const InRange& name, const char* key,
                  std::string& out);
  void check_nodes();
  void check_driver_variables();
  void check_gpu_software();
  static ValuePlace place_of(const NodeEntry& place, const char* key);
  static ValuePlace place_of_address(const NodeEntry& place);
  static ValuePlace place_of_power_address(const NodeEntry& place);
  void check_address(const NodeSpec& node, const NodeEntry& place);
  void check_server_name(const std::string& name, const ValuePlace& place);
  void check_power_address(const NodeSpec& node, const NodeEntry& place);
  void check_unique(const std::string& what, const std::string& value, const NodeSpec& node,
                    const ValuePlace& place);
  void assign_addresses();
  void check_leads();
  bool has_nodes(const std::string& role) const;
  void check_accounting(const YamlNode& roles);
  void read_storage();
  StorageSpec read_one_storage(const YamlEntry& entry, const std::string& path);
  bool check_engine_playbook(const YamlEntry& entry, const std::string& path, const StorageSpec& storage);
  bool check_server(const YamlEntry& entry, const std::string& path, const StorageSpec& storage);
  void read_external(const YamlEntry& entry, const std::string& path, StorageSpec& out);
  void check_source(const YamlNode& at, const std::string& path, const StorageSpec& storage);
  void check_options(const YamlNode& at, const std::string& path, const StorageSpec& storage);
  void check_external(const YamlEntry& entry, const std::string& path, const StorageSpec& storage);
  void check_keys(const YamlEntry& entry, const std::string& path, const StorageSpec& storage);
  void check_level(const YamlEntry& entry, const std::string& path, const StorageSpec& storage,
                   const std::vector<const NodeSpec*>& nodes);
  void check_storage(const YamlEntry& entry, const std::string& path, const StorageSpec& storage);
  std::vector<const NodeSpec*> members(const YamlEntry& entry, const std::string& path,
                                       const StorageSpec& storage);
  void check_mount(const YamlEntry& entry, const std::string& path, const StorageSpec& storage);

  const YamlNode& root_;
  const SpecNames& names_;
  std::map<std::string, OnlyFor> only_for_;         // the spec's own playbooks included
  std::map<std::string, VarGroups> optional_vars_;  // likewise
  Spec spec_;
  std::vector<SpecError> errors_;
  std::vector<SpecError> of_driver_;  // variables that are wrong where a driver is installed
  std::vector<NodeEntry> places_;     // parallel to spec_.nodes until they are sorted
  struct Among {
    std::string playbook, file;
    int line = 0, column = 0;
  };
  std::vector<Among> among_;  // `among` of the steps of own playbooks
  std::optional<Cidr> provisioning_, bmc_, storage_;
  std::vector<Cidr> rail_networks_;         // one per rail; empty if any is wrong
  std::vector<std::string> rail_gateways_;  // likewise
  bool nodes_incomplete_ = false;           // an entry could not be expanded: nodes are not checked further
  std::set<const YamlNode*> complained_;
  std::map<std::string, std::string> seen_;  // "mac 52:.." -> node that has it
};

}  // namespace muster
