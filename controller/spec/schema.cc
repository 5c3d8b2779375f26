#include "controller/spec/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include "base/json_dump.h"

namespace muster {

namespace {

constexpr size_t kMaxScalar = 8192;  // bounds the stack: std::regex recurses once per character

std::string type_in_words(const std::string& type) {
  if (type == "object") return "a map";
  if (type == "array") return "a list";
  if (type == "integer") return "a whole number";
  if (type == "number") return "a number";
  if (type == "boolean") return "true or false";
  return "text";
}

std::string found_in_words(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::sequence:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
    case YamlNode::Kind::scalar:
      break;
  }
  return "'" + node.text.substr(0, 60) + "'";
}

bool has_type(const YamlNode& node, const std::string& type) {
  if (type == "object") return node.is_map();
  if (type == "array") return node.is_list();
  if (type == "string") return node.is_text();
  if (type == "integer") return yaml_is_integer(node);
  if (type == "number") return yaml_is_number(node);
  if (type == "boolean") return yaml_is_boolean(node);
  return type == "null" && node.kind == YamlNode::Kind::null;
}

// The keywords that a schema may contain: everything that the checker applies, and annotations for people.
const std::set<std::string>& keywords() {
  static const std::set<std::string> known = {"$ref",
                                              "type",
                                              "properties",
                                              "patternProperties",
                                              "additionalProperties",
                                              "required",
                                              "enum",
                                              "pattern",
                                              "minLength",
                                              "maxLength",
                                              "items",
                                              "minItems",
                                              "uniqueItems",
                                              "minimum",
                                              "maximum",
                                              "$defs",
                                              "$schema",
                                              "title",
                                              "description",
                                              "propertyNames",
                                              "default",
                                              "examples",
                                              "x-default",
                                              "x-form",
                                              "x-not-implemented"};
  return known;
}

// `schema` is a schema, or (names) a map of schemas, whose keys are names in the document, not keywords.
void find_unknown_keywords(const Json& schema, bool names, const std::string& at,
                           std::vector<std::string>& found) {
  if (!schema.is_object()) return;
  for (const auto& [key, value] : schema.items()) {
    const std::string where = at + "/" + key;
    if (names) {
      find_unknown_keywords(value, false, where, found);
      continue;
    }
    if (!keywords().count(key)) found.push_back(where);
    const bool map_of_schemas = key == "properties" || key == "patternProperties" || key == "$defs";
    const bool schema_itself = key == "items" || key == "additionalProperties";
    if (map_of_schemas || schema_itself) find_unknown_keywords(value, map_of_schemas, where, found);
    // propertyNames has a description, shown if no pattern matches; a rule in it would have no effect.
    if (key == "propertyNames")
      for (const auto& [inner, text] : value.items())
        if (inner != "description" && inner != "$ref") found.push_back(where + "/" + inner);
  }
}

class Walker {
 public:
  Walker(const Json& schema, std::vector<SpecError>& errors) : root_(schema), errors_(errors) {}

  const std::vector<SpecError>& padded() const { return padded_; }

  void visit(const YamlNode& node, const Json& given, const std::string& path) {
    const Json& schema = resolve(given);
    if (!check_type(node, schema, path)) return;
    if (node.is_text()) scalar(node, schema, path);
    if (node.is_list()) list(node, schema, path);
    if (node.is_map()) map(node, schema, path);
  }

 private:
  const Json& resolve(const Json& schema) const {
    const auto ref = schema.find("$ref");
    if (ref == schema.end()) return schema;
    const std::string name = ref->get<std::string>();
    return resolve(root_.at(Json::json_pointer(name.substr(1))));
  }

  static bool refused(const Json& property) {
    const auto mark = property.find("x-not-implemented");
    return mark != property.end() && mark->is_boolean() && mark->get<bool>();
  }

  void add(int line, int column, const std::string& path, std::string message) {
    errors_.push_back({line, column, path, std::move(message)});
  }

  bool check_type(const YamlNode& node, const Json& schema, const std::string& path) {
    const auto type = schema.find("type");
    if (type == schema.end()) return true;
    std::vector<std::string> allowed;
    if (type->is_array())
      allowed = type->get<std::vector<std::string>>();
    else
      allowed.push_back(type->get<std::string>());
    for (const std::string& one : allowed)
      if (has_type(node, one)) return true;
    std::vector<std::string> words;
    for (const std::string& one : allowed) words.push_back(type_in_words(one));
    add(node.line, node.column, path,
        fmt::format("must be {}, found {}", fmt::join(words, " or "), found_in_words(node)));
    return false;
  }

  void scalar(const YamlNode& node, const Json& schema, const std::string& path) {
    const size_t most = schema.value("maxLength", kMaxScalar);
    if (node.text.size() > most)
      return add(node.line, node.column, path, fmt::format("is longer than {} characters", most));
    if (schema.contains("minLength") && node.text.size() < schema["minLength"].get<size_t>())
      return add(node.line, node.column, path, node.text.empty() ? "must not be empty" : "is too short");
    if (schema.contains("enum")) check_enum(node, schema, path);
    if (schema.contains("pattern") && !matches(schema["pattern"].get<std::string>(), node.text))
      add(node.line, node.column, path,
          fmt::format("{} is not {}", found_in_words(node),
                      schema.value("x-form", std::string("in the expected format"))));
    if (!yaml_is_number(node)) return;
    const auto type = schema.find("type");
    if (type != schema.end() && *type == "integer" && node.text.size() > 1 && node.text[0] == '0')
      padded_.push_back({node.line, node.column, path, node.text});
    const double value = std::strtod(node.text.c_str(), nullptr);
    if (schema.contains("minimum") && value < schema["minimum"].get<double>())
      add(node.line, node.column, path,
          fmt::format("{} is less than {}", node.text, dump_json(schema["minimum"])));
    if (schema.contains("maximum") && value > schema["maximum"].get<double>())
      add(node.line, node.column, path,
          fmt::format("{} is more than {}", node.text, dump_json(schema["maximum"])));
  }

  void check_enum(const YamlNode& node, const Json& schema, const std::string& path) {
    const auto allowed = schema["enum"].get<std::vector<std::string>>();
    for (const std::string& one : allowed)
      if (one == node.text) return;
    const auto later = schema.value("x-not-implemented", std::vector<std::string>{});
    for (const std::string& one : later)
      if (one == node.text)
        return add(node.line, node.column, path,
                   fmt::format("'{}' is not implemented in this release; use {}", node.text,
                               fmt::join(allowed, " or ")));
    const std::string near = nearest_spelling(node.text, allowed);
    add(node.line, node.column, path,
        near.empty() ? fmt::format("{} is not one of: {}", found_in_words(node), fmt::join(allowed, ", "))
                     : fmt::format("{} is not known, did you mean '{}'?", found_in_words(node), near));
  }

  void list(const YamlNode& node, const Json& schema, const std::string& path) {
    if (schema.contains("minItems") && node.items.size() < schema["minItems"].get<size_t>())
      add(node.line, node.column, path,
          fmt::format("has too few entries: at least {} required", dump_json(schema["minItems"])));
    if (schema.value("uniqueItems", false)) unique(node, path);
    if (!schema.contains("items")) return;
    for (size_t i = 0; i < node.items.size(); ++i)
      visit(node.items[i], schema["items"], fmt::format("{}[{}]", path, i));
  }

  void unique(const YamlNode& node, const std::string& path) {
    std::set<std::string> seen;
    for (size_t i = 0; i < node.items.size(); ++i)
      if (node.items[i].is_text() && !seen.insert(node.items[i].text).second)
        add(node.items[i].line, node.items[i].column, fmt::format("{}[{}]", path, i), "given twice");
  }

  void map(const YamlNode& node, const Json& schema, const std::string& path) {
    std::set<std::string> seen;
    for (const YamlEntry& entry : node.entries) {
      const std::string where = path.empty() ? entry.key : path + "." + entry.key;
      if (!seen.insert(entry.key).second)
        add(entry.line, entry.column, where, "given twice");
      else
        this->entry(entry, schema, where);
    }
    if (const auto required = schema.find("required"); required != schema.end())
      for (const auto& name : required->get<std::vector<std::string>>())
        if (!seen.count(name)) add(node.line, node.column, path, fmt::format("missing key '{}'", name));
  }

  void entry(const YamlEntry& entry, const Json& schema, const std::string& where) {
    const auto properties = schema.find("properties");
    if (properties != schema.end() && properties->contains(entry.key)) {
      const Json& property = (*properties)[entry.key];
      if (refused(property)) return add(entry.line, entry.column, where, "not implemented in this release");
      return visit(entry.value, property, where);
    }
    if (const auto patterns = schema.find("patternProperties"); patterns != schema.end())
      for (const auto& [pattern, property] : patterns->items())
        if (entry.key.size() <= kMaxScalar && matches(pattern, entry.key))
          return visit(entry.value, property, where);
    const auto rest = schema.find("additionalProperties");
    if (rest == schema.end() || *rest == true) return;
    if (rest->is_object()) return visit(entry.value, *rest, where);
    unknown_key(entry, schema, where);
  }

  void unknown_key(const YamlEntry& entry, const Json& schema, const std::string& where) {
    std::vector<std::string> known;
    if (const auto properties = schema.find("properties"); properties != schema.end())
      for (const auto& [name, property] : properties->items())
        if (!refused(property)) known.push_back(name);
    if (known.empty() && schema.contains("propertyNames"))
      return add(
          entry.line, entry.column, where,
          fmt::format("the name '{}' is not {}", entry.key.substr(0, 60),
                      schema["propertyNames"].value("description", std::string("in the expected format"))));
    const std::string near = nearest_spelling(entry.key, known);
    add(entry.line, entry.column, where,
        near.empty() ? fmt::format("unknown key; valid keys: {}", fmt::join(known, ", "))
                     : fmt::format("unknown key, did you mean '{}'?", near));
  }

  bool matches(const std::string& pattern, const std::string& text) {
    auto found = compiled_.find(pattern);
    if (found == compiled_.end())
      found = compiled_.emplace(pattern, std::regex(pattern, std::regex::ECMAScript)).first;
    return std::regex_search(text, found->second);
  }

  const Json& root_;
  std::vector<SpecError>& errors_;
  std::vector<SpecError> padded_;
  std::map<std::string, std::regex> compiled_;
};

}  // namespace

std::vector<std::string> unsupported_keywords(const Json& schema) {
  std::vector<std::string> found;
  find_unknown_keywords(schema, false, "", found);
  return found;
}

std::vector<SpecError> padded_numbers(const YamlNode& root, const Json& schema) {
  std::vector<SpecError> ignored;
  Walker walker(schema, ignored);
  walker.visit(root, schema, "");
  return walker.padded();
}

void check_schema(const YamlNode& root, const Json& schema, std::vector<SpecError>& errors) {
  if (root.kind == YamlNode::Kind::null) {
    errors.push_back({1, 1, "", "the file is empty"});
    return;
  }
  if (const auto unknown = unsupported_keywords(schema); !unknown.empty()) {
    errors.push_back(
        {1, 1, "",
         fmt::format("the schema uses keywords that are not supported: {}", fmt::join(unknown, ", "))});
    return;
  }
  Walker(schema, errors).visit(root, schema, "");
}

}  // namespace muster
