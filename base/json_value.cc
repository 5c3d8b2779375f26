#include "base/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster {

Json::exception::exception(const char* kind, int code, const std::string& text)
    : text_(fmt::format("[json.exception.{}.{}] {}", kind, code, text)) {}

// ---- construction

Json::Json(const Json& other) : data_(other.data_), kind_(other.kind_) {
  if (kind_ == Kind::string)
    data_.string = new std::string(*other.data_.string);
  else if (kind_ == Kind::array)
    data_.array = new Array(*other.data_.array);
  else if (kind_ == Kind::object)
    data_.object = new Object(*other.data_.object);
}

Json::Json(std::string_view text) {
  data_.string = new std::string(text);
  kind_ = Kind::string;
}

Json::Json(std::string&& text) {
  data_.string = new std::string(std::move(text));
  kind_ = Kind::string;
}

Json::Json(Array list) {
  data_.array = new Array(std::move(list));
  kind_ = Kind::array;
}

Json::Json(Object members) {
  data_.object = new Object(std::move(members));
  kind_ = Kind::object;
}

Json::Json(List list) {
  const bool members = std::all_of(list.begin(), list.end(), [](const JsonItem& item) {
    return item.value_.is_array() && item.value_.size() == 2 && item.value_.front().is_string();
  });
  *this = members ? object(list) : array(list);
}

Json Json::array(List list) {
  Array out;
  out.reserve(list.size());
  for (const JsonItem& item : list) out.push_back(std::move(item.value_));
  return Json(std::move(out));
}

// Of members of one name the first counts, as in nlohmann::json.
Json Json::object(List list) {
  Object out;
  for (const JsonItem& item : list) {
    if (!item.value_.is_array() || item.value_.size() != 2 || !item.value_.front().is_string())
      throw exception("type_error", 301, "cannot create object from initializer list");
    Array& pair = *item.value_.data_.array;
    out.emplace(std::move(*pair[0].data_.string), std::move(pair[1]));
  }
  return Json(std::move(out));
}

Json Json::start(bool object) { return object ? Json(Object()) : Json(Array()); }

void Json::free() noexcept {
  if (kind_ == Kind::string)
    delete data_.string;
  else if (kind_ == Kind::array)
    delete data_.array;
  else if (kind_ == Kind::object)
    delete data_.object;
  kind_ = Kind::null;
}

// ---- types

const char* Json::type_name() const {
  switch (kind_) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "boolean";
    case Kind::string:
      return "string";
    case Kind::array:
      return "array";
    case Kind::object:
      return "object";
    case Kind::integer:
    case Kind::whole:
    case Kind::number:
      break;
  }
  return "number";
}

void Json::wrong_type(int code, const char* text) const {
  throw exception("type_error", code, std::string(text) + type_name());
}

const std::string& Json::text() const {
  if (!is_string()) wrong_type(302, "type must be string, but is ");
  return *data_.string;
}

const Json::Array& Json::elements() const {
  if (!is_array()) wrong_type(302, "type must be array, but is ");
  return *data_.array;
}

const Json::Object& Json::members() const {
  if (!is_object()) wrong_type(302, "type must be object, but is ");
  return *data_.object;
}

void Json::get_to(bool& out) const {
  if (!is_boolean()) wrong_type(302, "type must be boolean, but is ");
  out = data_.boolean;
}

void Json::get_to(int64_t& out) const {
  if (!is_number()) wrong_type(302, "type must be number, but is ");
  out = is_number_float() ? nearest<int64_t>(data_.number) : data_.integer;
}

void Json::get_to(uint64_t& out) const {
  if (!is_number()) wrong_type(302, "type must be number, but is ");
  out = is_number_float() ? nearest<uint64_t>(data_.number) : data_.whole;
}

void Json::get_to(double& out) const {
  if (!is_number()) wrong_type(302, "type must be number, but is ");
  out = any_number();
}

double Json::any_number() const {
  if (kind_ == Kind::number) return data_.number;
  if (kind_ == Kind::integer) return static_cast<double>(data_.integer);
  return static_cast<double>(any_integer());
}

uint64_t Json::any_integer() const {
  if (kind_ == Kind::boolean) return data_.boolean;
  if (!is_number_integer()) wrong_type(302, "type must be number, but is ");
  return data_.whole;
}

// ---- parts

size_t Json::size() const {
  if (is_null()) return 0;
  return is_array() ? data_.array->size() : is_object() ? data_.object->size() : 1;
}

const Json* Json::member(std::string_view key) const {
  if (!is_object()) return nullptr;
  const auto found = data_.object->lower_bound(key);
  return found != data_.object->end() && found->first == key ? &found->second : nullptr;
}

const Json* Json::member_or_throw(std::string_view key) const {
  if (!is_object()) wrong_type(306, "cannot use value() with ");
  return member(key);
}

Json::iterator Json::find(std::string_view key) {
  return is_object() ? iterator(data_.object->find(key)) : end();
}

Json::const_iterator Json::find(std::string_view key) const {
  return is_object() ? const_iterator(data_.object->find(key)) : end();
}

const Json& Json::at(std::string_view key) const {
  if (!is_object()) wrong_type(304, "cannot use at() with ");
  if (const Json* found = member(key)) return *found;
  throw exception("out_of_range", 403, fmt::format("key '{}' not found", key));
}

Json& Json::at(std::string_view key) { return const_cast<Json&>(std::as_const(*this).at(key)); }

const Json& Json::operator[](std::string_view key) const {
  if (!is_object()) wrong_type(305, "cannot use operator[] with a string argument with ");
  return at(key);
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) *this = Json(Object());
  if (!is_object()) wrong_type(305, "cannot use operator[] with a string argument with ");
  const auto at = data_.object->lower_bound(key);
  if (at != data_.object->end() && at->first == key) return at->second;
  return data_.object->emplace_hint(at, std::string(key), Json())->second;
}

const Json& Json::element(size_t index) const {
  if (!is_array()) wrong_type(304, "cannot use at() with ");
  if (index < data_.array->size()) return (*data_.array)[index];
  throw exception("out_of_range", 401, fmt::format("array index {} is out of range", index));
}

Json& Json::grown(size_t index) {
  if (is_null()) *this = Json(Array());
  if (!is_array()) wrong_type(305, "cannot use operator[] with a numeric argument with ");
  if (index >= data_.array->size()) data_.array->resize(index + 1);
  return (*data_.array)[index];
}

const Json& Json::front() const {
  if (empty()) throw exception("invalid_iterator", 214, "cannot get value");
  return *begin();
}

const Json& Json::back() const {
  if (empty()) throw exception("invalid_iterator", 214, "cannot get value");
  return *--end();
}

Json& Json::front() { return const_cast<Json&>(std::as_const(*this).front()); }
Json& Json::back() { return const_cast<Json&>(std::as_const(*this).back()); }

std::string Json::value(std::string_view key, const char* otherwise) const {
  const Json* found = member_or_throw(key);
  return found ? found->text() : otherwise;
}

Json::iterator Json::begin() {
  if (is_object()) return iterator(data_.object->begin());
  return iterator(is_array() ? data_.array->data() : this);
}

Json::const_iterator Json::begin() const {
  if (is_object()) return const_iterator(data_.object->cbegin());
  return const_iterator(is_array() ? data_.array->data() : this);
}

Json::iterator Json::end() {
  if (is_object()) return iterator(data_.object->end());
  return iterator((is_array() ? data_.array->data() : this) + size());
}

Json::const_iterator Json::end() const {
  if (is_object()) return const_iterator(data_.object->cend());
  return const_iterator((is_array() ? data_.array->data() : this) + size());
}

// ---- changes

Json& Json::add(Json&& value) {
  if (is_null()) *this = Json(Array());
  if (!is_array()) wrong_type(308, "cannot use push_back() with ");
  return data_.array->emplace_back(std::move(value));
}

void Json::push_back(List list) {
  if (is_object() && list.size() == 2 && list.begin()->value_.is_string())
    data_.object->emplace(*list.begin()->value_.data_.string, std::move((list.begin() + 1)->value_));
  else
    add(Json(list));
}

std::pair<Json::iterator, bool> Json::emplace(std::string key, Json value) {
  if (is_null()) *this = Json(Object());
  if (!is_object()) wrong_type(311, "cannot use emplace() with ");
  const auto [at, added] = data_.object->emplace(std::move(key), std::move(value));
  return {iterator(at), added};
}

void Json::update(const Json& members) {
  if (is_null()) *this = Json(Object());
  if (!is_object()) wrong_type(312, "cannot use update() with ");
  if (!members.is_object()) members.wrong_type(312, "cannot use update() with ");
  for (const auto& [key, value] : *members.data_.object) (*this)[key] = value;
}

void Json::merge_patch(const Json& patch) {
  if (!patch.is_object()) {
    *this = patch;
    return;
  }
  if (!is_object()) *this = Json(Object());
  for (const auto& [key, value] : *patch.data_.object)
    if (value.is_null())
      data_.object->erase(key);
    else
      (*this)[key].merge_patch(value);
}

size_t Json::erase(std::string_view key) {
  if (!is_object()) wrong_type(307, "cannot use erase() with ");
  const auto found = data_.object->find(key);
  if (found == data_.object->end()) return 0;
  data_.object->erase(found);
  return 1;
}

void Json::erase_element(size_t index) { erase(iterator(&element(index))); }

Json::iterator Json::erase(iterator at) {
  if (is_object()) return iterator(data_.object->erase(at.node_));
  if (!is_array()) wrong_type(307, "cannot use erase() with ");
  const auto next = data_.array->erase(data_.array->begin() + (at.at_ - data_.array->data()));
  return iterator(data_.array->data() + (next - data_.array->begin()));
}

// ---- pointers

Json::json_pointer::json_pointer(std::string_view path) {
  if (!path.empty() && path.front() != '/')
    throw exception("parse_error", 107,
                    fmt::format("JSON pointer must be empty or begin with '/' - was: '{}'", path));
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at + 1), path.size());
    std::string& token = tokens_.emplace_back();
    for (size_t i = at + 1; i < end; ++i) {
      if (path[i] != '~') {
        token += path[i];
        continue;
      }
      if (++i >= end || (path[i] != '0' && path[i] != '1'))
        throw exception("parse_error", 108, "escape character '~' must be followed with '0' or '1'");
      token += path[i] == '0' ? '~' : '/';
    }
    at = end;
  }
}

// Null when a token leads nowhere.
const Json* Json::resolved(const json_pointer& path) const {
  const Json* at = this;
  for (const std::string& token : path.tokens_) {
    size_t index = 0;
    if (!at->is_array()) {
      at = at->member(token);
    } else {
      const char* last = token.data() + token.size();
      const auto [end, error] = std::from_chars(token.data(), last, index);
      const bool number = error == std::errc() && end == last && (token == "0" || token[0] != '0');
      at = number && index < at->size() ? &(*at->data_.array)[index] : nullptr;
    }
    if (!at) return nullptr;
  }
  return at;
}

bool Json::contains(const json_pointer& path) const { return resolved(path) != nullptr; }

const Json& Json::at(const json_pointer& path) const {
  if (const Json* found = resolved(path)) return *found;
  throw exception("out_of_range", 404,
                  fmt::format("unresolved reference token in '/{}'", fmt::join(path.tokens_, "/")));
}

Json& Json::at(const json_pointer& path) { return const_cast<Json&>(std::as_const(*this).at(path)); }

Json& Json::operator[](const json_pointer& path) {
  Json* at = this;
  for (const std::string& token : path.tokens_)
    at = at->is_array() ? &at->at(json_pointer("/" + token)) : &(*at)[token];
  return *at;
}

Json Json::value(const json_pointer& path, Json otherwise) const {
  if (!is_object()) wrong_type(306, "cannot use value() with ");
  const Json* found = resolved(path);
  return found ? *found : otherwise;
}

// ---- comparison

bool Json::equal(const Json& a, const Json& b) {
  if (a.kind_ != b.kind_) {
    if (!a.is_number() || !b.is_number()) return false;
    if (a.is_number_float() || b.is_number_float()) return a.any_number() == b.any_number();
    return a.data_.integer == b.data_.integer;
  }
  switch (a.kind_) {
    case Kind::null:
      return true;
    case Kind::boolean:
      return a.data_.boolean == b.data_.boolean;
    case Kind::integer:
    case Kind::whole:
      return a.data_.integer == b.data_.integer;
    case Kind::number:
      return a.data_.number == b.data_.number;
    case Kind::string:
      return *a.data_.string == *b.data_.string;
    case Kind::array:
      return *a.data_.array == *b.data_.array;
    case Kind::object:
      return *a.data_.object == *b.data_.object;
  }
  return false;
}

bool Json::less(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_number_float() || b.is_number_float()) return a.any_number() < b.any_number();
    const bool both_whole = a.kind_ == Kind::whole && b.kind_ == Kind::whole;
    return both_whole ? a.data_.whole < b.data_.whole : a.data_.integer < b.data_.integer;
  }
  if (a.kind_ == Kind::boolean && b.kind_ == Kind::boolean) return !a.data_.boolean && b.data_.boolean;
  if (a.is_string() && b.is_string()) return *a.data_.string < *b.data_.string;
  if (a.is_array() && b.is_array()) return *a.data_.array < *b.data_.array;
  if (a.is_object() && b.is_object()) return *a.data_.object < *b.data_.object;
  const auto place = [](const Json& json) {
    return json.is_string()   ? 5
           : json.is_array()  ? 4
           : json.is_object() ? 3
           : json.is_number() ? 2
                              : json.is_boolean();
  };
  return place(a) < place(b);
}

}  // namespace muster
