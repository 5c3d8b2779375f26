#include "controller/spec/yaml.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <tuple>
#include <utility>

#include "controller/spec/yaml_mistake.h"

namespace muster {

namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxNodes = 200'000;
constexpr size_t kMaxText = 4 << 20;

// Copies yaml-cpp's graph (aliases are shared nodes, even cycles) into a tree.
class Copier {
 public:
  explicit Copier(std::vector<SpecError>& errors) : errors_(errors) {}

  YamlNode copy(const YAML::Node& from, int line, int column, int depth) {
    YamlNode to;
    to.line = line;
    to.column = column;
    if (--budget_ < 0 || depth > kMaxDepth) {
      if (errors_.empty())
        errors_.push_back(
            {line, column, "",
             depth > kMaxDepth ? "nested too deeply" : "too many values (do aliases multiply them?)"});
      return to;
    }
    const YAML::Mark mark = from.Mark();
    if (!from.IsNull() && !mark.is_null()) {
      to.line = mark.line + 1;
      to.column = mark.column + 1;
    }
    if (from.IsScalar()) {
      to.kind = YamlNode::Kind::scalar;
      to.text = from.Scalar();
      to.plain = from.Tag() != "!";
    } else if (from.IsSequence()) {
      to.kind = YamlNode::Kind::sequence;
      for (const auto& item : from) to.items.push_back(copy(item, to.line, to.column, depth + 1));
    } else if (from.IsMap()) {
      to.kind = YamlNode::Kind::map;
      std::vector<YamlEntry> merged;
      for (const auto& entry : from) add_entry(to, merged, entry.first, entry.second, depth);
      for (YamlEntry& entry : merged)  // explicit keys take precedence over merged ones
        if (!to.find(entry.key)) to.entries.push_back(std::move(entry));
    }
    return to;
  }

 private:
  void add_entry(YamlNode& to, std::vector<YamlEntry>& merged, const YAML::Node& key, const YAML::Node& value,
                 int depth) {
    const int line = key.Mark().line + 1, column = key.Mark().column + 1;
    if (!key.IsScalar()) {
      errors_.push_back({line, column, "", "a key must be plain text"});
      return;
    }
    YamlNode copied = copy(value, line, column, depth + 1);
    if (key.Scalar() != "<<" || !copied.is_map()) {
      to.entries.push_back({key.Scalar(), line, column, std::move(copied)});
      return;
    }
    for (YamlEntry& entry : copied.entries) merged.push_back(std::move(entry));
  }

  std::vector<SpecError>& errors_;
  int budget_ = kMaxNodes;
};

}  // namespace

const YamlNode* YamlNode::find(const std::string& key) const {
  for (const YamlEntry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

ParsedYaml parse_yaml(const std::string& text) {
  ParsedYaml out;
  if (text.size() > kMaxText) {
    out.errors.push_back({0, 0, "", "the file is larger than 4 MiB"});
    return out;
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      const YAML::Mark mark = documents[1].Mark();
      out.errors.push_back({mark.line + 1, mark.column + 1, "",
                            "this is a second YAML document; put everything into one document"});
      return out;
    }
    if (!documents.empty()) out.root = Copier(out.errors).copy(documents[0], 1, 1, 0);
  } catch (const YAML::Exception& e) {
    const int line = e.mark.is_null() ? std::numeric_limits<int>::max() : e.mark.line + 1;
    if (auto mistake = find_yaml_mistake(text, line))
      out.errors.push_back(std::move(*mistake));
    else
      out.errors.push_back({e.mark.line + 1, e.mark.column + 1, "", "not valid YAML: " + e.msg});
  } catch (const std::exception& e) {  // yaml-cpp throws a few standard exceptions on malformed input
    out.errors.push_back({0, 0, "", std::string("not valid YAML: ") + e.what()});
  }
  return out;
}

const YamlNode* yaml_child(const YamlNode* map, const char* key) {
  return map && map->is_map() ? map->find(key) : nullptr;
}

std::string yaml_text(const YamlNode* map, const char* key, const std::string& fallback) {
  const YamlNode* value = yaml_child(map, key);
  return value && value->is_text() ? value->text : fallback;
}

int64_t yaml_integer(const YamlNode* map, const char* key, int64_t fallback) {
  const YamlNode* value = yaml_child(map, key);
  return value && yaml_is_integer(*value) ? std::strtoll(value->text.c_str(), nullptr, 10) : fallback;
}

int yaml_int(const YamlNode* map, const char* key, int fallback) {
  const int64_t value = yaml_integer(map, key, fallback);
  return value == static_cast<int>(value) ? static_cast<int>(value) : fallback;
}

bool yaml_bool(const YamlNode* map, const char* key, bool fallback) {
  const YamlNode* value = yaml_child(map, key);
  return value && yaml_is_boolean(*value) ? yaml_boolean(*value) : fallback;
}

bool yaml_is_integer(const YamlNode& node) {
  if (!node.is_text() || !node.plain || node.text.empty() || node.text.size() > 18) return false;
  const size_t start = node.text[0] == '-' ? 1 : 0;
  return start < node.text.size() && node.text.find_first_not_of("0123456789", start) == std::string::npos;
}

bool yaml_is_number(const YamlNode& node) {
  if (yaml_is_integer(node)) return true;
  if (!node.is_text() || !node.plain || node.text.empty()) return false;
  if (node.text.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  char* end = nullptr;
  (void)std::strtod(node.text.c_str(), &end);
  return *end == 0;
}

bool yaml_boolean(const YamlNode& node) {
  return node.text == "true" || node.text == "yes" || node.text == "on";
}

bool yaml_is_boolean(const YamlNode& node) {
  if (!node.is_text() || !node.plain) return false;
  return yaml_boolean(node) || node.text == "false" || node.text == "no" || node.text == "off";
}

Json to_json(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return nullptr;
    case YamlNode::Kind::sequence: {
      Json out = Json::array();
      for (const YamlNode& item : node.items) out.push_back(to_json(item));
      return out;
    }
    case YamlNode::Kind::map: {
      Json out = Json::object();
      for (const YamlEntry& entry : node.entries) out[entry.key] = to_json(entry.value);
      return out;
    }
    case YamlNode::Kind::scalar:
      break;
  }
  // Only true and false are booleans inside free-form parameters: `when: yes` of a template or a mode "on"
  // stay text.
  if (node.plain && (node.text == "true" || node.text == "false")) return node.text == "true";
  // A leading zero is a file mode or a serial number, not a number.
  const bool padded = node.text.size() > 1 && node.text[0] == '0' && node.text[1] != '.';
  if (!padded && yaml_is_integer(node)) return std::strtoll(node.text.c_str(), nullptr, 10);
  if (!padded && yaml_is_number(node)) return std::strtod(node.text.c_str(), nullptr);
  return node.text;
}

void sort_errors(std::vector<SpecError>& errors) {
  const auto key = [](const SpecError& e) { return std::tie(e.file, e.line, e.column, e.path, e.message); };
  std::stable_sort(errors.begin(), errors.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  const auto same = [&](const auto& a, const auto& b) { return key(a) == key(b); };
  errors.erase(std::unique(errors.begin(), errors.end(), same), errors.end());
}

}  // namespace muster
