#include "base/json.h"

#include "base/json_without.h"

namespace muster {

namespace {

// Nothing that muster writes or reads is nested nearly as deep; the code that copies and writes JSON is
// recursive, and the stack is limited.
constexpr int kDeepest = 100;

bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{') && ++depth > kDeepest)
      return true;
    else if (!quoted && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

Result<Json> parse(std::string_view text, const Json::parser_callback_t& wanted) {
  if (too_deep(text)) return fail(Code::invalid, "JSON rejected: more than 100 levels deep");
  try {
    return Json::parse(text, wanted);
  } catch (const Json::parse_error& e) {
    return fail(Code::invalid, std::string("not JSON: ") + e.what());
  }
}

}  // namespace

Result<Json> parse_json(std::string_view text) { return parse(text, nullptr); }

Result<Json> parse_json_without(std::string_view text, const std::string& parent, const std::string& key) {
  bool within = false;
  return parse(text, [&](int depth, Json::parse_event_t event, const Json& parsed) {
    if (event != Json::parse_event_t::key) return true;
    if (depth == 1) within = parsed == parent;
    return !(depth == 2 && within && parsed == key);
  });
}

JsonReader::JsonReader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
  if (!json_.is_object()) problems_.push_back(path_ + ": expected an object, got " + json_.type_name());
}

const Json* JsonReader::find(const char* key, bool required) {
  seen_.insert(key);
  if (!json_.is_object()) return nullptr;
  const auto it = json_.find(key);
  if (it != json_.end()) return &*it;
  if (required) problems_.push_back(path_ + "." + key + ": missing");
  return nullptr;
}

const Json& JsonReader::raw(const char* key) {
  static const Json kNull;
  const Json* field = find(key, false);
  return field ? *field : kNull;
}

Status JsonReader::finish() {
  if (json_.is_object() && !allow_unknown_)
    for (const auto& [key, value] : json_.items())
      if (!seen_.count(key)) problems_.push_back(path_ + "." + key + ": unknown key");
  if (problems_.empty()) return Ok{};
  std::string all;
  for (const auto& p : problems_) all += (all.empty() ? "" : "; ") + p;
  return fail(Code::invalid, all);
}

}  // namespace muster
