// Field cases: what a machine, tool or person really produced, as reported, and what muster
// has to do with it. One folder per case, tests/field/AREA/NAME:
//   case.yaml   one mapping: `area` (the folder above), `kind`, `source` (repository and number, or what is
//               known), `right` (the answer expected), `before` (`wrong` or `right`: what muster did when the
//               case was first tried)
//   its input   the smallest that shows it, in own words and with made-up names
//   try.sh      only where real programs are needed (sshd, ufw, dnsmasq, apt ...): tests/field/run.sh runs it
//               as root, in namespaces of its own; 0 passed, 77 with a reason: left out, anything else: wrong
// A case without try.sh has a test in tests/field/*_test.cc: FIELD_CASE("NAME") { ... }, through production
// code (planner, step module, facts reader, driver), asserting on the effect that the operator would have
// had. A case may have both, and several tests: FIELD_CASE("NAME: what this one is about").
#pragma once

#include <string>

#include "tests/catch.h"

#define FIELD_CASE(name) TEST_CASE("field: " name, "[field]")

namespace muster::tests {

// The folder of a case, absolute; "" for a name that no folder has.
std::string field_folder(const std::string& name);
// What its file holds; fails the test when it is not there.
std::string field_input(const std::string& name, const std::string& file);

}  // namespace muster::tests
