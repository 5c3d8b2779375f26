// Recorded machine types, played whole: a healthy fleet is accepted with nothing at fault, and the planted
// fault of each type is named.
#include <fmt/format.h>

#include <algorithm>

#include "base/split.h"
#include "tests/catch.h"
#include "tests/machines/description.h"
#include "tests/machines/play.h"

using namespace muster;
using namespace muster::machines;

namespace {

using Lines = std::set<std::string>;

Lines lines_of(const Json& list) {
  Lines out;
  for (const Json& line : list) out.insert(line.get<std::string>());
  return out;
}

// What is right, changed to what is said today: each entry of `today` has to be needed.
Lines as_today(Lines right, const Json& today) {
  for (const Json& entry : today) {
    const std::string line = entry.get<std::string>(),
                      statement = line.substr(std::min<size_t>(2, line.size()));
    const bool more = line.starts_with("+ ");
    if (!more && !line.starts_with("- ")) FAIL("an entry of `today` begins with + or -: " << line);
    CHECK(more == !right.count(statement));
    if (more)
      right.insert(statement);
    else
      right.erase(statement);
  }
  return right;
}

void compare(const Lines& said, const Lines& expected) {
  for (const auto& line : said)
    if (!expected.count(line)) FAIL_CHECK("said, but not expected: " << line);
  for (const auto& line : expected)
    if (!said.count(line)) FAIL_CHECK("expected, but not said: " << line);
}

Lines healthy(const Json& machine) {
  Lines out = {"all: accepted"};
  for (const auto& [part, count] : machine.at("expect").at("parts").items())
    out.insert(fmt::format("all: has {} {}", part, count.get<int>()));
  for (const auto& line : lines_of(at(machine, "expect/no_figure")))
    out.insert(has(line, ": ") ? line : "all: no figure for " + line);
  return out;
}

// What is about the fault: not the parts that are there, what has a figure, and what did not run because its
// node was out.
Lines verdicts(Lines said) {
  std::erase_if(said, [](const std::string& line) {
    return has(line, ": has ") || has(line, ": no figure ") || line.ends_with(" skipped") ||
           line.ends_with(" not_judged") || line.ends_with(" not_looked_at");
  });
  return said;
}

}  // namespace

// The nodes of a play meet on the loopback interface, at ports that the kernel chooses.
TEST_CASE("recorded machines: a healthy fleet is accepted, with nothing at fault", "[machines]") {
  for (const auto& name : described()) {
    DYNAMIC_SECTION(name) {
      const Json machine = description(name);
      compare(play(machine, false), as_today(healthy(machine), at(machine, "today/healthy")));
    }
  }
}

TEST_CASE("recorded machines: the planted fault is named", "[machines]") {
  for (const auto& name : described()) {
    DYNAMIC_SECTION(name) {
      const Json machine = description(name);
      const Json& fault = machine.at("fault");
      REQUIRE(!at(fault, "finds").empty());
      compare(verdicts(play(machine, true)), as_today(lines_of(fault["finds"]), at(machine, "today/fault")));
    }
  }
}
