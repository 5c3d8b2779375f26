// The order of a role's playbooks: they are applied as listed, so one that needs another must come after it.
#include <fmt/format.h>

#include "controller/spec/gpu_software.h"
#include "controller/spec/reader/reader.h"

namespace muster {
namespace {

using IsPlaybook = bool (*)(const std::string& playbook);

struct PlaybookOrder {
  IsPlaybook first, later;
  const char* why;  // follows the name of the later one
};
const PlaybookOrder kOrders[] = {
    {[](const std::string& p) { return p == "networks"; },
     [](const std::string& p) { return p == "interconnect" || p.starts_with("storage-"); },
     ", which uses the networks"},
    {[](const std::string& p) { return p == "accounting"; },
     [](const std::string& p) { return p == "scheduler"; }, ": slurmctld starts only if its database runs"},
    {installs_gpu_driver, [](const std::string& p) { return p == "containers"; },
     ", which gives the GPUs to containers"},
    {[](const std::string& p) { return p == "storage-local"; },
     [](const std::string& p) { return p == "containers"; }, ", which keeps images on the local storage"},
    {[](const std::string& p) { return p == "containers"; },
     [](const std::string& p) { return p == "scheduler"; }, ", whose jobs run in its containers"},
};

// Returns what the playbook at this place must come before: "'x', why"; "" if it is in its place.
std::string must_precede(const std::vector<YamlNode>& items, size_t place) {
  for (const PlaybookOrder& order : kOrders) {
    if (!order.first(items[place].text)) continue;
    for (size_t i = 0; i < place; ++i)
      if (order.later(items[i].text)) return fmt::format("'{}'{}", items[i].text, order.why);
  }
  return "";
}

}  // namespace

void SpecReader::check_order() {
  const YamlNode* roles = child(&root_, "roles");
  if (!roles || !roles->is_map()) return;
  for (const YamlEntry& role : roles->entries) {
    const YamlNode* list = child(&role.value, "playbooks");
    if (!list || !list->is_list()) continue;
    for (size_t i = 0; i < list->items.size(); ++i)
      if (const std::string later = must_precede(list->items, i); !later.empty())
        error(list->items[i], fmt::format("roles.{}.playbooks[{}]", role.key, i),
              "must come before " + later);
  }
}

}  // namespace muster
