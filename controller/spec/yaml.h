// A YAML document as a small tree that keeps the place of every value. Aliases and merge keys are resolved by
// copying, up to a limit, so that a hostile file cannot exhaust the memory. Duplicate keys are kept (and
// reported by the schema check). Thread safety: plain value types.
#pragma once

#include <string>
#include <vector>

#include "controller/spec/spec.h"

namespace muster {

struct YamlEntry;

struct YamlNode {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  int line = 1, column = 1;        // 1-based; an empty value has the place of its key
  std::string text;                // scalar, after unquoting
  bool plain = true;               // scalar without quotes: may be a number or a boolean
  std::vector<YamlNode> items;     // sequence
  std::vector<YamlEntry> entries;  // map, in file order

  // The value of the first entry with this key, or nullptr.
  const YamlNode* find(const std::string& key) const;
  bool is_map() const { return kind == Kind::map; }
  bool is_list() const { return kind == Kind::sequence; }
  bool is_text() const { return kind == Kind::scalar; }
};
struct YamlEntry {
  std::string key;
  int line = 1, column = 1;
  YamlNode value;
};

struct ParsedYaml {
  YamlNode root;
  std::vector<SpecError> errors;  // errors of syntax; if there are any, `root` is unusable
};
ParsedYaml parse_yaml(const std::string& text);

// A value as JSON: plain numbers and booleans keep their type, the rest is text.
Json to_json(const YamlNode& node);
// Values of a map; one that is absent or of the wrong kind, which the schema check reports, is the fallback.
// `map` may be null.
const YamlNode* yaml_child(const YamlNode* map, const char* key);
std::string yaml_text(const YamlNode* map, const char* key, const std::string& fallback = "");
int64_t yaml_integer(const YamlNode* map, const char* key, int64_t fallback);
int yaml_int(const YamlNode* map, const char* key, int fallback);  // also the fallback if it does not fit
bool yaml_bool(const YamlNode* map, const char* key, bool fallback);
// How plain scalars are read.
bool yaml_is_integer(const YamlNode& node);
bool yaml_is_number(const YamlNode& node);
bool yaml_is_boolean(const YamlNode& node);
bool yaml_boolean(const YamlNode& node);

// Sorts the errors by line and column, and drops duplicates.
void sort_errors(std::vector<SpecError>& errors);

}  // namespace muster
