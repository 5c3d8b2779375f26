// The only source that sees nlohmann/json, whose header is half of what a source costs to compile: its parser
// and its text of numbers, which digests are made of.
#include "base/json.h"

#include <nlohmann/json.hpp>

#include "base/json_dump.h"

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

struct Unwanted {
  std::string_view parent, key;
};

}  // namespace

// Receives what nlohmann's parser reads, and builds the value from it.
class JsonBuilder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;

  explicit JsonBuilder(const Unwanted* unwanted) : unwanted_(unwanted) {}

  bool null() { return scalar(Json()); }
  bool boolean(bool value) { return scalar(Json(value)); }
  bool number_integer(number_integer_t value) { return scalar(Json(value)); }
  bool number_unsigned(number_unsigned_t value) { return scalar(Json(value)); }
  bool number_float(double value, const std::string&) { return scalar(Json(value)); }
  bool string(const std::string& value) { return scalar(Json(value)); }
  bool binary(const nlohmann::json::binary_t&) { return false; }  // occurs in no text
  bool start_object(size_t) { return open(Json::Object()); }
  bool start_array(size_t) { return open(Json::Array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(const std::string& value) {
    if (dropped_ > 0) return true;
    if (unwanted_ && open_.size() == 1) within_ = value == unwanted_->parent;
    drop_next_ = within_ && open_.size() == 2 && value == unwanted_->key;
    if (drop_next_) return true;
    // Mostly sorted, because muster wrote it. Of equal keys the last counts.
    Json::Object& members = *open_.back()->data_.object;
    member_ = &members.insert_or_assign(members.end(), value, Json())->second;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) {
    error_ = error.what();
    return false;
  }

  const std::string& error() const { return error_; }
  Json& result() { return root_; }

 private:
  bool scalar(Json&& value) {
    if (dropped_ == 0 && !std::exchange(drop_next_, false)) put(std::move(value));
    return true;
  }
  bool open(Json&& value) {
    if (dropped_ > 0 || std::exchange(drop_next_, false))
      ++dropped_;
    else
      open_.push_back(&put(std::move(value)));
    return true;
  }
  bool close() {
    if (dropped_ > 0)
      --dropped_;
    else
      open_.pop_back();
    return true;
  }
  Json& put(Json&& value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_array()) return open_.back()->emplace_back(std::move(value));
    return *member_ = std::move(value);
  }

  const Unwanted* unwanted_;  // null: everything is kept
  bool within_ = false;       // its parent
  bool drop_next_ = false;
  size_t dropped_ = 0;      // how many arrays and objects of what is dropped are open
  Json* member_ = nullptr;  // the one whose value comes next
  std::string error_ = {};
  std::vector<Json*> open_ = {};
  Json root_ = {};
};

namespace {

Result<Json> parse(std::string_view text, const Unwanted* unwanted) {
  if (too_deep(text)) return fail(Code::invalid, "JSON rejected: more than 100 levels deep");
  JsonBuilder builder(unwanted);
  if (!nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder))
    return fail(Code::invalid, "not JSON: " + builder.error());
  return std::move(builder.result());
}

}  // namespace

Result<Json> parse_json(std::string_view text) { return parse(text, nullptr); }

Result<Json> parse_json_without(std::string_view text, const std::string& parent, const std::string& key) {
  const Unwanted unwanted{parent, key};
  return parse(text, &unwanted);
}

Json Json::parse(std::string_view text) {
  Result<Json> parsed = parse_json(text);
  if (!parsed.ok()) throw exception("parse_error", 101, parsed.error().message);
  return std::move(parsed).value();
}

size_t write_number(double value, std::span<char, kLongestNumber> out) {
  return static_cast<size_t>(nlohmann::detail::to_chars(out.data(), out.data() + out.size(), value) -
                             out.data());
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

void JsonReader::wrong_type(const Json& field, const char* key) {
  problems_.push_back(path_ + "." + key + ": wrong type (" + field.type_name() + ")");
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
