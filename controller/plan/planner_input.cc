#include "controller/plan/planner_input.h"

#include <fmt/format.h>

#include "base/words.h"

namespace muster {
namespace {

// The kinds of plan that `up` may result in are accepted as its names, because older clients use them.
constexpr Words<RequestKind, 12> kRequestWords = {{{RequestKind::up, "auto"},
                                                   {RequestKind::up, "up"},
                                                   {RequestKind::up, "install"},
                                                   {RequestKind::up, "apply"},
                                                   {RequestKind::up, "discover"},
                                                   {RequestKind::reimage, "reimage"},
                                                   {RequestKind::rollback, "rollback"},
                                                   {RequestKind::accept, "accept"},
                                                   {RequestKind::admit, "admit"},
                                                   {RequestKind::adopt, "adopt"},
                                                   {RequestKind::drain, "drain"},
                                                   {RequestKind::undrain, "undrain"}}};

}  // namespace

Result<RequestKind> request_kind_from_string(std::string_view word) {
  if (const auto kind = value_of(kRequestWords, word)) return *kind;
  return fail(Code::invalid, fmt::format("unknown kind of plan '{}': must be auto, reimage, rollback, "
                                         "accept, admit, adopt, drain or undrain",
                                         word));
}

std::string provisioning_address(const Spec& spec) {
  if (!spec.network.controller.empty()) return spec.network.controller;
  const std::string& cidr = spec.network.provisioning.cidr;
  const std::string network = cidr.substr(0, cidr.find('/'));
  const auto dot = network.rfind('.');
  return dot == std::string::npos ? network : network.substr(0, dot) + ".1";
}

}  // namespace muster
