#include "controller/current/current_spec.h"

#include <fmt/format.h>

#include "base/mac.h"
#include "controller/spec/reader/parse_spec.h"

namespace muster {

Result<std::shared_ptr<const SpecRevision>> CurrentSpec::get() {
  if (cached_) return cached_;
  auto row = store_.spec(0);
  if (!row.ok()) {
    if (row.error().code == Code::not_found)
      return fail(Code::not_found, "there is no spec yet: run `muster up SPEC`");
    return std::move(row).error();
  }
  ParsedSpec parsed = parse_spec(row->text);
  if (!parsed.errors.empty())
    return fail(Code::invalid, fmt::format("spec revision {}: {}", row->revision,
                                           to_string(parsed.errors.front(), "cluster.yaml")));
  auto made = std::make_shared<SpecRevision>();
  made->revision = row->revision;
  made->digest = row->digest;
  made->spec = std::move(parsed.spec);
  if (recipes_) use_recipes(made->spec, recipes_());
  cached_ = made;
  return cached_;
}

void CurrentSpec::changed() {
  cached_.reset();
  if (listener_) listener_();
}

std::string node_of_mac(CurrentSpec& spec, const std::string& mac) {
  const auto current = spec.get();
  if (!current.ok()) return "";
  for (const auto& node : (*current)->spec.nodes)
    if (!node.mac.empty() && normal_mac(node.mac) == mac) return node.name;
  return "";
}

DurationMs netboot_limit(CurrentSpec& spec) {
  const auto current = spec.get();
  return current.ok() ? (*current)->spec.limits.netboot : LimitsSpec().netboot;
}

bool joins_from_any_port(CurrentSpec& spec) {
  const auto current = spec.get();
  return current.ok() && (*current)->spec.network.join_from_any_port;
}

EventLimits event_limits(CurrentSpec& spec) {
  const auto current = spec.get();
  return current.ok() ? (*current)->spec.limits.events : EventLimits();
}

int prefix_length(const std::string& cidr) {
  const auto slash = cidr.find('/');
  return slash == std::string::npos ? 0 : std::atoi(cidr.c_str() + slash + 1);
}

std::string controller_address(const Spec& spec) {
  if (!spec.network.controller.empty()) return spec.network.controller;
  const std::string& cidr = spec.network.provisioning.cidr;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (std::sscanf(cidr.c_str(), "%u.%u.%u.%u/", &a, &b, &c, &d) != 4) return "";
  return fmt::format("{}.{}.{}.{}", a, b, c, d + 1);
}

}  // namespace muster
