// Json: one JSON value. Null, boolean, integer, unsigned integer, number, string, array, or object with
// sorted keys, so that equal values have equal text.
//
// Its members have the names and the behaviour of nlohmann::json's, of which it is a subset; the difference
// is the cost of this header. A braced list is an object when each of its elements is a list of two of which
// the first is a string, else an array: Json{{"a", 1}} is {"a":1}, Json{"a", 1} is ["a",1], and {"a", "b"}
// for an array of pairs needs Json::array(). Differences to nlohmann::json: no implicit conversion to other
// types (write get<T>()); a const operator[] throws when the key or index is absent; dump() never throws.
//
// A wrong type, a missing key and an index out of range throw Json::exception. The keys that an object has
// and the elements of an array stay where they are in memory as those of std::map and std::vector do. A move
// leaves null behind. Copying, comparing and freeing are recursive; parsed text is at most 100 levels deep.
// Thread safety: a value type, no shared state.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster {

class Json;
class JsonItem;
template <typename J>
class JsonIterator;
template <typename J>
class JsonMembers;

template <typename T>
concept JsonNumber = std::is_arithmetic_v<T>;
// A name (base/names.h), whose form is text.
template <typename T>
concept JsonName = requires(const T& name) {
  { name.str() } -> std::same_as<const std::string&>;
};
template <typename T>
concept JsonIndex = std::is_integral_v<T>;
// What becomes an array or, with mapped_type, an object: a container that is no text.
template <typename T>
concept JsonContainer = !std::is_same_v<T, Json> && !std::is_same_v<T, JsonItem> &&
                        !std::is_convertible_v<const T&, std::string_view> && requires(const T& list) {
  typename T::value_type;
  list.begin() != list.end();
};

class Json {
 public:
  using Array = std::vector<Json>;
  struct KeyLess {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return a < b; }
  };
  using Object = std::map<std::string, Json, KeyLess>;
  using List = std::initializer_list<JsonItem>;
  using iterator = JsonIterator<Json>;
  using const_iterator = JsonIterator<const Json>;
  using value_type = Json;
  class exception;
  class json_pointer;

  Json() noexcept {}
  Json(std::nullptr_t) noexcept {}
  Json(const Json& other);
  Json(Json&& other) noexcept : data_(other.data_), kind_(other.kind_) { other.kind_ = Kind::null; }
  Json(List list);
  Json(const char* text) : Json(std::string_view(text)) {}
  Json(std::string_view text);
  Json(const std::string& text) : Json(std::string_view(text)) {}
  Json(std::string&& text);
  template <JsonName T>
  Json(const T& name) : Json(name.str()) {}
  Json(Array list);
  Json(Object members);
  template <JsonNumber T>
  Json(T value) noexcept {
    if constexpr (std::is_same_v<T, bool>)
      data_.boolean = value, kind_ = Kind::boolean;
    else if constexpr (std::is_floating_point_v<T>)
      data_.number = static_cast<double>(value), kind_ = Kind::number;
    else if constexpr (std::is_signed_v<T>)
      data_.integer = value, kind_ = Kind::integer;
    else
      data_.whole = value, kind_ = Kind::whole;
  }
  template <JsonContainer T>
  Json(const T& list) : Json(start(requires { typename T::mapped_type; })) {
    for (auto&& one : list)
      if constexpr (requires { typename T::mapped_type; })
        (*this)[one.first] = one.second;
      else
        add(Json(one));
  }
  ~Json() {
    if (kind_ >= Kind::string) free();
  }
  // By value: in json["b"] = json, or = json["c"], the copy is made before there is a "b".
  Json& operator=(Json other) noexcept {
    std::swap(data_, other.data_);
    std::swap(kind_, other.kind_);
    return *this;
  }

  static Json array(List list = {});
  static Json object(List list = {});
  // Throws exception on text that is no JSON, or that is nested more than 100 levels deep.
  static Json parse(std::string_view text);

  bool is_null() const { return kind_ == Kind::null; }
  bool is_boolean() const { return kind_ == Kind::boolean; }
  bool is_number() const { return is_number_integer() || is_number_float(); }
  bool is_number_integer() const { return kind_ == Kind::integer || kind_ == Kind::whole; }
  bool is_number_unsigned() const { return kind_ == Kind::whole; }
  bool is_number_float() const { return kind_ == Kind::number; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_array() const { return kind_ == Kind::array; }
  bool is_object() const { return kind_ == Kind::object; }
  bool is_structured() const { return is_array() || is_object(); }
  const char* type_name() const;

  // Numbers convert into each other as static_cast does, but one with a point that an integer cannot hold
  // becomes the nearest; a boolean is a number for all but int64_t, uint64_t and double.
  template <typename T>
  T get() const {
    T out{};
    get_to(out);
    return out;
  }
  // Leaves `out` as it is when it throws.
  void get_to(Json& out) const { out = *this; }
  void get_to(bool& out) const;
  void get_to(std::string& out) const { out = text(); }
  void get_to(int64_t& out) const;
  void get_to(uint64_t& out) const;
  void get_to(double& out) const;
  template <typename T>
  void get_to(T& out) const {
    if constexpr (std::is_floating_point_v<T>)
      out = static_cast<T>(any_number());
    else if constexpr (std::is_integral_v<T>)
      out = kind_ == Kind::number ? nearest<T>(data_.number) : static_cast<T>(any_integer());
    else if constexpr (JsonName<T>)
      out = T(text());
    else if constexpr (requires { out.has_value(); })
      is_null() ? out.reset() : void(out = get<typename T::value_type>());
    else
      get_container(out);
  }
  template <typename T>
  const std::string& get_ref() const {
    static_assert(std::is_same_v<T, const std::string&>);
    if (!is_string()) wrong_type(303, "incompatible ReferenceType for get_ref, actual type is ");
    return *data_.string;
  }

  bool empty() const { return size() == 0; }
  size_t size() const;  // 0 of null, 1 of what holds no others
  bool contains(std::string_view key) const { return member(key) != nullptr; }
  bool contains(const json_pointer& path) const;
  size_t count(std::string_view key) const { return contains(key) ? 1 : 0; }
  iterator find(std::string_view key);
  const_iterator find(std::string_view key) const;
  Json& at(std::string_view key);
  const Json& at(std::string_view key) const;
  Json& at(const json_pointer& path);
  const Json& at(const json_pointer& path) const;
  // Makes an object of null, and a member that is absent.
  Json& operator[](std::string_view key);
  const Json& operator[](std::string_view key) const;
  Json& operator[](const json_pointer& path);
  // Templates, because the literal 0 would be a pointer to text as well.
  template <JsonIndex I>
  Json& at(I index) {
    return element(static_cast<size_t>(index));
  }
  template <JsonIndex I>
  const Json& at(I index) const {
    return element(static_cast<size_t>(index));
  }
  template <JsonIndex I>
  Json& operator[](I index) {
    return grown(static_cast<size_t>(index));
  }
  template <JsonIndex I>
  const Json& operator[](I index) const {
    return element(static_cast<size_t>(index));
  }
  Json& front();
  const Json& front() const;
  Json& back();
  const Json& back() const;

  // The member `key` of an object, or `otherwise` when it is absent.
  template <typename T>
  T value(std::string_view key, T otherwise) const {
    const Json* found = member_or_throw(key);
    return found ? found->get<T>() : otherwise;
  }
  std::string value(std::string_view key, const char* otherwise) const;
  Json value(const json_pointer& path, Json otherwise) const;

  iterator begin();
  iterator end();
  const_iterator begin() const;
  const_iterator end() const;
  // for (const auto& [key, value] : json.items()); the keys of an array are its indices.
  // Not of a temporary: a for loop would read it after its end.
  JsonMembers<Json> items() &;
  JsonMembers<const Json> items() const&;
  void items() const&& = delete;

  void push_back(const Json& value) { add(Json(value)); }
  void push_back(Json&& value) { add(std::move(value)); }
  void push_back(List list);  // {"key", value} becomes a member of an object
  template <typename... T>
  Json& emplace_back(T&&... value) {
    return add(Json(std::forward<T>(value)...));
  }
  std::pair<iterator, bool> emplace(std::string key, Json value);
  // Overwrites members of the same names.
  void update(const Json& members);
  void merge_patch(const Json& patch);  // RFC 7386
  size_t erase(std::string_view key);
  iterator erase(iterator at);
  template <JsonIndex I>
  void erase(I index) {
    erase_element(static_cast<size_t>(index));
  }

  // As dump_json() of base/json_dump.h.
  std::string dump(int indent = -1) const;

  friend bool operator==(const Json& a, const Json& b) { return equal(a, b); }
  friend bool operator==(const Json& a, const char* b) { return a.is_string() && a.text() == b; }
  friend bool operator==(const Json& a, const std::string& b) { return a.is_string() && a.text() == b; }
  friend bool operator==(const Json& a, std::string_view b) { return a.is_string() && a.text() == b; }
  template <JsonName T>
  friend bool operator==(const Json& a, const T& b) {
    return a == b.str();
  }
  friend bool operator==(const Json& a, std::nullptr_t) { return a.is_null(); }
  template <JsonNumber T>
  friend bool operator==(const Json& a, T b) {
    return equal(a, Json(b));
  }
  // Values of different types stand in the order null, boolean, number, object, array, string.
  friend bool operator<(const Json& a, const Json& b) { return less(a, b); }
  friend bool operator>(const Json& a, const Json& b) { return less(b, a); }
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  friend class JsonBuilder;  // base/json.cc
  friend class JsonWriter;   // base/json_dump.cc
  // What owns memory comes last.
  enum class Kind : uint8_t { null, boolean, integer, whole, number, string, array, object };
  union Data {
    bool boolean;
    int64_t integer;
    uint64_t whole;
    double number;
    std::string* string;
    Array* array;
    Object* object;
  };

  static Json start(bool object);
  static bool equal(const Json& a, const Json& b);
  static bool less(const Json& a, const Json& b);
  [[noreturn]] void wrong_type(int code, const char* text) const;
  void free() noexcept;
  const std::string& text() const;
  double any_number() const;
  // A conversion of what T cannot hold is undefined.
  template <typename T>
  static T nearest(double value) {
    constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    if (value >= static_cast<double>(most)) return most;
    if (value <= static_cast<double>(least)) return least;
    return value == value ? static_cast<T>(value) : T{0};
  }
  // The bits of an int64_t or uint64_t, whose conversion to a smaller type is the same; or of a boolean.
  uint64_t any_integer() const;
  const Json* member(std::string_view key) const;  // null when absent, or this is no object
  const Json* member_or_throw(std::string_view key) const;
  const Json& element(size_t index) const;
  Json& element(size_t index) { return const_cast<Json&>(std::as_const(*this).element(index)); }
  Json& grown(size_t index);
  void erase_element(size_t index);
  Json& add(Json&& value);
  const Array& elements() const;
  const Object& members() const;
  const Json* resolved(const json_pointer& path) const;

  template <typename T>
  void get_container(T& out) const {
    T read;
    if constexpr (requires { typename T::mapped_type; })
      for (const auto& [key, value] : members())
        read.emplace(key, value.template get<typename T::mapped_type>());
    else
      for (const Json& one : elements()) read.insert(read.end(), one.get<typename T::value_type>());
    out = std::move(read);
  }

  Data data_ = {};
  Kind kind_ = Kind::null;
};

// An element of a braced list, which is moved into the value that the list becomes.
class JsonItem {
 public:
  JsonItem() = default;
  JsonItem(std::nullptr_t) {}
  JsonItem(const Json& value) : value_(value) {}
  JsonItem(Json&& value) : value_(std::move(value)) {}
  JsonItem(Json::List list) : value_(list) {}
  JsonItem(const char* text) : value_(text) {}
  JsonItem(std::string_view text) : value_(text) {}
  JsonItem(const std::string& text) : value_(text) {}
  JsonItem(std::string&& text) : value_(std::move(text)) {}
  template <JsonName T>
  JsonItem(const T& name) : value_(name) {}
  template <JsonNumber T>
  JsonItem(T value) : value_(value) {}
  template <JsonContainer T>
  JsonItem(const T& list) : value_(list) {}

 private:
  friend class Json;
  mutable Json value_;
};

class Json::exception : public std::exception {
 public:
  exception(const char* kind, int code, const std::string& text);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// RFC 6901: "/metrics/ranks/value".
class Json::json_pointer {
 public:
  explicit json_pointer(std::string_view path);

 private:
  friend class Json;
  std::vector<std::string> tokens_;
};

// Over the elements of an array, the values of an object, or the one value that is neither.
template <typename J>
class JsonIterator {
 public:
  using Node = std::conditional_t<std::is_const_v<J>, Json::Object::const_iterator, Json::Object::iterator>;
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = Json;
  using difference_type = std::ptrdiff_t;
  using pointer = J*;
  using reference = J&;

  JsonIterator() = default;
  explicit JsonIterator(J* at) : at_(at) {}
  explicit JsonIterator(Node node) : node_(node) {}
  template <typename K>
  requires(std::is_const_v<J> && !std::is_const_v<K>) JsonIterator(const JsonIterator<K>& other)
      : at_(other.at_), node_(other.node_) {}

  J& operator*() const { return at_ ? *at_ : node_->second; }
  J* operator->() const { return &**this; }
  const std::string& key() const { return node_->first; }
  J& value() const { return **this; }
  JsonIterator& operator++() {
    at_ ? void(++at_) : void(++node_);
    return *this;
  }
  JsonIterator& operator--() {
    at_ ? void(--at_) : void(--node_);
    return *this;
  }
  JsonIterator operator++(int) {
    JsonIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const JsonIterator& a, const JsonIterator& b) {
    return a.at_ == b.at_ && a.node_ == b.node_;
  }

 private:
  friend class Json;
  template <typename K>
  friend class JsonIterator;
  J* at_ = nullptr;  // null: an object's
  Node node_ = {};
};

template <typename J>
class JsonMembers {
 public:
  struct Member {
    const std::string& key;
    J& value;
  };
  class Iterator {
   public:
    explicit Iterator(JsonIterator<J> at, bool counted) : at_(at), counted_(counted) {}
    // const, so that `auto& [key, value]` takes it.
    const Member operator*() {
      if (!counted_) return {at_.key(), *at_};
      index_text_ = std::to_string(index_);
      return {index_text_, *at_};
    }
    Iterator& operator++() {
      ++at_;
      ++index_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    JsonIterator<J> at_;
    bool counted_;
    size_t index_ = 0;
    std::string index_text_ = {};
  };

  explicit JsonMembers(J& json) : json_(json) {}
  Iterator begin() const { return Iterator(json_.begin(), !json_.is_object()); }
  Iterator end() const { return Iterator(json_.end(), !json_.is_object()); }

 private:
  J& json_;
};

inline JsonMembers<Json> Json::items() & { return JsonMembers<Json>(*this); }
inline JsonMembers<const Json> Json::items() const& { return JsonMembers<const Json>(*this); }

}  // namespace muster
