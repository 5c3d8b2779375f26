// Mistakes of YAML are named where they were made.
#include "controller/spec/yaml_mistake.h"

#include <filesystem>
#include <limits>

#include "controller/spec/findings.h"
#include "controller/spec/yaml.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

constexpr int kAnywhere = std::numeric_limits<int>::max();

struct Mistake {
  const char* what;
  const char* text;
  std::string_view code;
  int line, column;
};
const Mistake kMistakes[] = {
    {"a tab", "a:\n\tb: 1\n", finding::kYamlTab, 2, 1},
    {"a tab behind blanks", "a:\n  b: 1\n  \tc: 2\n", finding::kYamlTab, 3, 3},
    {"a tab in front of a dash", "a:\n\t- b\n", finding::kYamlTab, 2, 1},
    {"one blank more", "a:\n  b: 1\n   c: 2\n", finding::kYamlIndentation, 3, 4},
    {"one blank less", "a:\n  b: 1\n c: 2\n", finding::kYamlIndentation, 3, 2},
    {"the first of siblings", "a:\n  b:\n   c: 1\n    d: 2\n", finding::kYamlIndentation, 3, 4},
    {"an item", "a:\n    - b\n   - c\n", finding::kYamlIndentation, 3, 4},
    // A compose file, vx3r/wg-gen-web 66; and one with XML, coollabsio/coolify 7244.
    {"a map below a value", "version: '3.6'\n  web:\n    x: 1\n", finding::kYamlIndentation, 2, 3},
    {"quotes in quotes", "a: \"<b c=\"d\">\"\n", finding::kYamlQuote, 1, 4},
    {"no colon between siblings", "a: 1\nb 2\nc: 3\n", finding::kYamlColon, 2, 1},
    {"no colon at the first key", "a:\n  b 1\n  d: 2\n", finding::kYamlColon, 2, 3},
    {"no colon in an item", "a:\n  - name b\n    c: 1\n", finding::kYamlColon, 2, 5},
    {"no colon in front of a map", "a: 1\nb\n  c: 1\n", finding::kYamlColon, 2, 1},
    {"no blank after it", "a:\n  b: 1\n  c:2\n", finding::kYamlColon, 3, 3},
    {"a second one", "a:\n  b: ssh: x\n", finding::kYamlColon, 2, 9},
    {"a double quote", "a: \"x\nb: 1\nc: \"y\"\n", finding::kYamlQuote, 1, 4},
    {"a double quote to the end", "a: \"x\nb: 1\n", finding::kYamlQuote, 1, 4},
    {"a single quote", "a:\n  b: 'it's'\n", finding::kYamlQuote, 2, 6},
    {"a quote in a list", "a: [ \"x, \"y\" ]\n", finding::kYamlQuote, 1, 6},
    {"a pattern", "a: { gpu_model: *H100* }\n", finding::kYamlQuote, 1, 17},
    {"a comparison", "a:\n  memory: >= 512 GiB\n", finding::kYamlQuote, 2, 11},
    {"a range in braces", "power: {driver: redfish, address: 10.20.1.{n+10}, secret: bmc}\n",
     finding::kYamlQuote, 1, 35},
    {"a range in brackets", "a:\n  - [ x, gpu[1-3] ]\n", finding::kYamlQuote, 2, 10},
    {"a range in a line of its own", "a: {\n  b: c{n},\n  d: 1 }\n", finding::kYamlQuote, 2, 6},
    {"a brace", "a: { b: 1\nc: 2\n", finding::kYamlBracket, 1, 4},
    {"a brace in front of a range", "a:\n  b: { c: 1\n  d: e{n}\n", finding::kYamlBracket, 2, 6},
    {"a bracket", "a: [ b, c\nd: [ e ]\n", finding::kYamlBracket, 1, 4},
    {"a brace in a bracket", "a: [ { b: 1 ]\n", finding::kYamlBracket, 1, 6},
    {"one too many", "a:\n  }\n", finding::kYamlBracket, 2, 3},
    {"with the line ends of another system", "a:\r\n  b: 1\r\n  c 2\r\n", finding::kYamlColon, 3, 3},
};

}  // namespace

TEST_CASE("a mistake of YAML is found where it was made", "[spec][yaml]") {
  for (const Mistake& one : kMistakes) {
    CAPTURE(one.what);
    const auto found = find_yaml_mistake(one.text, kAnywhere);
    REQUIRE(found);
    CHECK(found->code == one.code);
    CHECK(found->line == one.line);
    CHECK(found->column == one.column);
  }
}

TEST_CASE("what a parser refuses is reported with the place of the mistake, not its own", "[spec][yaml]") {
  // It is noticed at the end of the text.
  const ParsedYaml parsed = parse_yaml("a: { b: 1\nc: 2\nd: 3\n");
  REQUIRE(parsed.errors.size() == 1);
  CHECK(parsed.errors[0].code == finding::kYamlBracket);
  CHECK(parsed.errors[0].line == 1);
  CHECK(parsed.errors[0].column == 4);
  const ParsedYaml unquoted = parse_yaml("a: {b: c, d: 10.20.1.{n+10}, e: f}\ng: 1\n");
  REQUIRE(unquoted.errors.size() == 1);
  CHECK(unquoted.errors[0].code == finding::kYamlQuote);
  CHECK(unquoted.errors[0].column == 14);
}

TEST_CASE("a mistake below the place where a parser stopped is not the one it stopped at", "[spec][yaml]") {
  CHECK_FALSE(find_yaml_mistake("a: 1\n\tb: 1\n", 1));
  CHECK(find_yaml_mistake("a: 1\n\tb: 1\n", 2));
}

TEST_CASE("no mistake is seen in YAML that is valid", "[spec][yaml]") {
  for (const char* text : {"",
                           "# only\n",
                           "a: 1\n",
                           "a:\n- b\n- c\nd: 1\n",
                           "a: |\n  b: {\n  \tc\nd: 1\n",
                           "a: x\n  y\nb: 1\n",
                           "a: 10.{n}.0\n",
                           "a: [ 1,\n  2 ]\n",
                           "a: \"x\n  y\"\nb: 1\n",
                           "a: 'it''s'\n",
                           "a: \"\\\"\"\n",
                           "a: &x { b: 1 }\nc: *x\n",
                           "- a\n- b: 1\n  c: 2\n",
                           "\"a b\": 1\n",
                           "a: http://x # b: c\n",
                           "--- # x\na: 1\n",
                           "a: >-\n  b\n\n  c\nd: 1\n",
                           "a:\n  - |\n    b: \"\n  - c\n",
                           "a: [ &x { b: 1 }, !t [ c ] ]\n",
                           "a: { b: [ c ] }\n"}) {
    CAPTURE(text);
    CHECK_FALSE(find_yaml_mistake(text, kAnywhere));
  }
  size_t files = 0;
  for (const char* folder : {"docs/specs", "images", "lab", "playbooks", "playbooks/acceptance"})
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/" + folder)) {
      if (entry.path().extension() != ".yaml") continue;
      CAPTURE(entry.path().string());
      const auto found = find_yaml_mistake(text_of(entry.path()), kAnywhere);
      CHECK((found ? found->message : "") == "");
      ++files;
    }
  CHECK(files > 30);
}
