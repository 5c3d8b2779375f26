// Strict JSON reading: an unknown key, a missing key and a wrong type are errors that name the path.
// For writing, see base/json_dump.h; objects keep their keys sorted, so equal values give equal text.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "base/result.h"

namespace muster {

// Parses text; Code::invalid with the position, or when it is nested more than 100 levels deep.
Result<Json> parse_json(std::string_view text);
// Likewise, but drops the member `key` of its member `parent`, a large part that is not needed.
Result<Json> parse_json_without(std::string_view text, const std::string& parent, const std::string& key);

// Reads fields of one object and records which ones were read; finish() reports all errors at once:
//   JsonReader r(json, "plan.nodes[3]");
//   r.get("name", node.name); r.get_or("limit", node.limit, 4);
//   TRY_(r.finish());            // also rejects unread keys
class JsonReader {
 public:
  JsonReader(const Json& json, std::string path);

  template <typename T>
  void get(const char* key, T& out) {
    const Json* field = find(key, true);
    if (field) read(*field, key, out);
  }
  template <typename T>
  void get_or(const char* key, T& out, T fallback) {
    const Json* field = find(key, false);
    if (field)
      read(*field, key, out);
    else
      out = std::move(fallback);
  }
  // The raw field (null JSON when absent); counts as read.
  const Json& raw(const char* key);
  // Unread keys are fine (messages from a newer peer).
  void allow_unknown() { allow_unknown_ = true; }
  Status finish();

 private:
  const Json* find(const char* key, bool required);
  void wrong_type(const Json& field, const char* key);
  template <typename T>
  void read(const Json& field, const char* key, T& out) {
    try {
      field.get_to(out);
    } catch (const Json::exception&) {
      wrong_type(field, key);
    }
  }

  const Json& json_;
  std::string path_;
  std::set<std::string> seen_;
  std::vector<std::string> problems_;
  bool allow_unknown_ = false;
};

}  // namespace muster
