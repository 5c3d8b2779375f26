// A record is a struct whose JSON form follows from one list of its members, in the struct's namespace:
//
//   MUSTER_RECORD(Failure, reason, run, opt(canary), sparse(notes), as(faulty_parts, "blame"))
//
//   name               required, under the member's name
//   opt(name)          the member keeps its initialiser if the key is absent
//   sparse(name)       like opt(), and not written while it is empty or has its initialiser
//   as(name, "key")    under a key of another name; likewise opt(name, "key"), sparse(name, "key")
//   flat(name)         the fields of this record stand in the same object
//   lenient            in front: unknown keys are allowed (messages of older and newer peers)
//
// Members: bool, numbers, text, enums with MUSTER_WORDS, records, Json (null if absent), std::optional (none
// if absent or null), and lists, sets and maps of these. `const Json*` is set to the address of the value
// that is read, which is not copied, and is never written. At most 60 fields. A type within a record that has
// a form of its own declares `Status read_own(const Json&, T&)` and `Json to_json(const T&)` next to it.
//
// Reading is strict: an unknown key, a missing key, a wrong type, an unknown word and a number that its
// member cannot hold are problems that name their path (`rollout.failed.gpu01.run: wrong type (null)`), and
// one error reports all of them, nested ones included. Pure functions, no I/O.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/words.h"

#define MUSTER_RECORD(R, ...)                        \
  template <typename Visitor>                        \
  void each_field(const R*, Visitor& visit) {        \
    using Self [[maybe_unused]] = R;                 \
    MUSTER_RECORD_X(MUSTER_RECORD_EACH(__VA_ARGS__)) \
  }
#define MUSTER_WORDS(Enum, table) \
  constexpr const auto& words_of(const Enum*) { return table; }

#define MUSTER_RECORD_EACH(f, ...) \
  visit MUSTER_RECORD_FIELD(f);    \
  __VA_OPT__(MUSTER_RECORD_MORE MUSTER_RECORD_P(__VA_ARGS__))
#define MUSTER_RECORD_MORE() MUSTER_RECORD_EACH
#define MUSTER_RECORD_P ()
// Each level repeats the expansion, so that MUSTER_RECORD_EACH can name itself again.
#define MUSTER_RECORD_X(...) MUSTER_RECORD_X3(MUSTER_RECORD_X3(MUSTER_RECORD_X3(__VA_ARGS__)))
#define MUSTER_RECORD_X3(...) MUSTER_RECORD_X2(MUSTER_RECORD_X2(MUSTER_RECORD_X2(__VA_ARGS__)))
#define MUSTER_RECORD_X2(...) MUSTER_RECORD_X1(MUSTER_RECORD_X1(MUSTER_RECORD_X1(__VA_ARGS__)))
#define MUSTER_RECORD_X1(...) MUSTER_RECORD_X0(MUSTER_RECORD_X0(MUSTER_RECORD_X0(__VA_ARGS__)))
#define MUSTER_RECORD_X0(...) __VA_ARGS__
// opt(name) becomes MUSTER_RECORD_AS_opt(name), which brings its own call as the second of a list; a plain
// name becomes a word without meaning, and the second is the ordinary call.
#define MUSTER_RECORD_FIELD(f) MUSTER_RECORD_SECOND(MUSTER_RECORD_AS_##f, .field(#f, &Self::f), )
#define MUSTER_RECORD_SECOND(...) MUSTER_RECORD_SECOND_(__VA_ARGS__)
#define MUSTER_RECORD_SECOND_(first, second, ...) second
#define MUSTER_RECORD_KEY(name, ...) ::muster::record::key(#name __VA_OPT__(, ) __VA_ARGS__), &Self::name
#define MUSTER_RECORD_AS_as(...) , .field(MUSTER_RECORD_KEY(__VA_ARGS__))
#define MUSTER_RECORD_AS_opt(...) , .field(MUSTER_RECORD_KEY(__VA_ARGS__), ::muster::record::Rule::opt)
#define MUSTER_RECORD_AS_sparse(...) , .field(MUSTER_RECORD_KEY(__VA_ARGS__), ::muster::record::Rule::sparse)
#define MUSTER_RECORD_AS_flat(name) , .flat(&Self::name)
#define MUSTER_RECORD_AS_lenient , .lenient()

namespace muster {
namespace record {

enum class Rule { required, opt, sparse };

constexpr const char* key(const char* name) { return name; }
constexpr const char* key(const char*, const char* other) { return other; }

// Where a value stands in what is read; the text is made only for a problem.
struct Place {
  const Place* outer = nullptr;
  std::string_view key = {};
  size_t index = SIZE_MAX;  // in a list, which has no key
  std::string text() const;
};

class Problems {
 public:
  void add(const Place& at, const std::string& what);
  void wrong_type(const Place& at, const Json& found);
  Status status() const;  // Code::invalid with all of them

 private:
  std::vector<std::string> texts_;
  size_t unnamed_ = 0;
};

class Object {
 public:
  Object(const Json& json, const Place& at, Problems& problems);
  const Json* find(const char* key, bool required);
  void allow_unknown() { allow_unknown_ = true; }
  void finish();

  const Place& at;
  Problems& problems;

 private:
  const Json& json_;
  std::vector<std::string_view> known_;
  size_t found_ = 0;
  bool allow_unknown_ = false;
};

struct Nothing {};
template <typename T>
concept IsRecord = requires(const T* value, Nothing& visitor) {
  each_field(value, visitor);
};
template <typename T>
concept IsWord = std::is_enum_v<T> && requires(const T* value) {
  words_of(value);
};
template <typename T>
concept HasOwnForm = requires(const Json& json, T& out) {
  read_own(json, out);
};
template <typename T>
concept IsMap = requires {
  typename T::mapped_type;
};
template <typename T>
concept IsList = requires {
  typename T::value_type;
}
&&!std::is_convertible_v<T, std::string_view>;
template <typename T>
concept IsOptional = requires(T value) {
  value.has_value();
  *value;
  value.reset();
};
template <typename T>
constexpr bool kMayLack = std::is_same_v<T, Json> || std::is_same_v<T, const Json*> || IsOptional<T>;

template <typename T>
void read(const Json& json, const Place& at, Problems& problems, T& out);

template <typename R>
struct Reader {  // Owner below: R, or a base of it
  Object& object;
  R& out;

  template <typename T, typename Owner>
  void field(const char* key, T Owner::*member, Rule rule = Rule::required) {
    const Json* found = object.find(key, rule == Rule::required && !kMayLack<T>);
    if (found) return read(*found, Place{&object.at, key}, object.problems, out.*member);
    if constexpr (std::is_same_v<T, Json>)
      if (rule == Rule::required) out.*member = Json();
  }
  template <typename T, typename Owner>
  void flat(T Owner::*member) {
    Reader<T> inner{object, out.*member};
    each_field(&inner.out, inner);
  }
  void lenient() { object.allow_unknown(); }
};

template <typename T>
void read_all(const Json& json, const Place& at, Problems& problems, T& out) {
  out.clear();
  if (IsMap<T> ? !json.is_object() : !json.is_array()) return problems.wrong_type(at, json);
  if constexpr (IsMap<T>) {
    for (const auto& [key, item] : json.items()) read(item, Place{&at, key}, problems, out[key]);
  } else {
    size_t index = 0;
    for (const Json& item : json) {
      typename T::value_type one{};
      read(item, Place{&at, {}, index++}, problems, one);
      out.insert(out.end(), std::move(one));
    }
  }
}

// Whether T holds this number; a conversion would make another one of it.
template <typename T>
bool holds(const Json& number) {
  if (number.is_number_unsigned()) return std::in_range<T>(number.get<uint64_t>());
  if (number.is_number_integer()) return std::in_range<T>(number.get<int64_t>());
  const double value = number.get<double>();
  return value >= static_cast<double>(std::numeric_limits<T>::min()) &&
         value < static_cast<double>(std::numeric_limits<T>::max()) + 1;
}

template <typename T>
void read_leaf(const Json& json, const Place& at, Problems& problems, T& out) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    if (json.is_number() && !holds<T>(json)) return problems.add(at, "out of range");
  try {
    json.get_to(out);
  } catch (const Json::exception&) {
    problems.wrong_type(at, json);
  }
}

template <IsRecord T>
void read_fields(const Json& json, const Place& at, Problems& problems, T& out) {
  Object object(json, at, problems);
  Reader<T> reader{object, out};
  each_field(&out, reader);
  object.finish();
}

template <typename T>
void read(const Json& json, const Place& at, Problems& problems, T& out) {
  if constexpr (std::is_same_v<T, const Json*>) {
    out = &json;
  } else if constexpr (std::is_same_v<T, Json>) {
    out = json;
  } else if constexpr (HasOwnForm<T>) {
    if (const Status own = read_own(json, out); !own.ok()) problems.add(at, own.error().message);
  } else if constexpr (IsRecord<T>) {
    read_fields(json, at, problems, out);
  } else if constexpr (IsWord<T>) {
    std::string word;
    if (!json.is_string()) return problems.wrong_type(at, json);
    json.get_to(word);
    if (const auto known = value_of(words_of(&out), word)) return void(out = *known);
    problems.add(at, "unknown word '" + word + "'");
  } else if constexpr (IsOptional<T>) {
    out.reset();
    if (!json.is_null()) read(json, at, problems, out.emplace());
  } else if constexpr (IsMap<T> || IsList<T>) {
    read_all(json, at, problems, out);
  } else {
    read_leaf(json, at, problems, out);
  }
}

template <typename T>
Json written(const T& value);

template <typename T>
bool is_left_out(const T& value, const T& initial) {
  if constexpr (std::is_same_v<T, Json>)
    return value.is_null();
  else if constexpr (IsOptional<T>)
    return !value.has_value();
  else if constexpr (requires { value.empty(); } && !std::is_same_v<T, std::string>)
    return value.empty();
  else if constexpr (requires { value == initial; })
    return value == initial;
  else
    return written(value) == written(initial);
}

template <typename R>
struct Writer {
  Json& out;
  const R& from;

  template <typename T, typename Owner>
  void field(const char* key, T Owner::*member, Rule rule = Rule::required) {
    if constexpr (!std::is_same_v<T, const Json*>)
      if (rule != Rule::sparse || !is_left_out(from.*member, R{}.*member)) out[key] = written(from.*member);
  }
  template <typename T, typename Owner>
  void flat(T Owner::*member) {
    Writer<T> inner{out, from.*member};
    each_field(&inner.from, inner);
  }
  void lenient() {}
};

template <IsRecord T>
Json written_fields(const T& value) {
  Json out = Json::object();
  Writer<T> writer{out, value};
  each_field(&value, writer);
  return out;
}

template <typename T>
Json written(const T& value) {
  if constexpr (std::is_same_v<T, Json>) {
    return value;
  } else if constexpr (HasOwnForm<T>) {
    return to_json(value);
  } else if constexpr (IsRecord<T>) {
    return written_fields(value);
  } else if constexpr (IsWord<T>) {
    return Json(std::string(word_of(words_of(&value), value)));
  } else if constexpr (IsOptional<T>) {
    return value ? written(*value) : Json();
  } else if constexpr (IsMap<T>) {
    Json out = Json::object();
    for (const auto& [key, item] : value) out[key] = written(item);
    return out;
  } else if constexpr (IsList<T>) {
    Json out = Json::array();
    for (const auto& item : value) out.push_back(written(item));
    return out;
  } else {
    return Json(value);
  }
}

}  // namespace record

template <record::IsRecord T>
Json record_json(const T& value) {
  return record::written_fields(value);
}

// `path` is the name of the value in errors. Code::invalid.
template <record::IsRecord T>
Result<T> read_record(const Json& json, std::string_view path) {
  T out{};
  record::Problems problems;
  record::read_fields(json, record::Place{nullptr, path}, problems, out);
  TRY_(problems.status());
  return out;
}

}  // namespace muster
