#include "base/json_dump.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <ostream>

#include "base/utf8.h"

namespace muster {
namespace {

// What a character is written as after a backslash; 0 when it is written otherwise.
char short_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

}  // namespace

class JsonWriter {
 public:
  JsonWriter(int indent, bool ascii) : indent_(indent), ascii_(ascii) {}

  void value(const Json& json, size_t depth) {
    switch (json.kind_) {
      case Json::Kind::null:
        out_ += "null";
        break;
      case Json::Kind::boolean:
        out_ += json.data_.boolean ? "true" : "false";
        break;
      case Json::Kind::integer:
        integer(json.data_.integer);
        break;
      case Json::Kind::whole:
        integer(json.data_.whole);
        break;
      case Json::Kind::number:
        number(json.data_.number);
        break;
      case Json::Kind::string:
        text(*json.data_.string);
        break;
      case Json::Kind::array:
        array(*json.data_.array, depth);
        break;
      case Json::Kind::object:
        object(*json.data_.object, depth);
        break;
    }
  }
  std::string take() { return std::move(out_); }

 private:
  template <typename T>
  void integer(T value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    out_.append(digits.data(), end.ptr);
  }

  void number(double value) {
    std::array<char, kLongestNumber> digits;
    if (std::isfinite(value))
      out_.append(digits.data(), write_number(value, digits));
    else
      out_ += "null";
  }

  void line(size_t depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(depth * static_cast<size_t>(indent_), ' ');
  }

  void array(const Json::Array& list, size_t depth) {
    out_ += '[';
    bool first = true;
    for (const Json& one : list) {
      if (!std::exchange(first, false)) out_ += ',';
      line(depth + 1);
      value(one, depth + 1);
    }
    if (!first) line(depth);
    out_ += ']';
  }

  void object(const Json::Object& members, size_t depth) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, one] : members) {
      if (!std::exchange(first, false)) out_ += ',';
      line(depth + 1);
      text(key);
      out_ += indent_ < 0 ? ":" : ": ";
      value(one, depth + 1);
    }
    if (!first) line(depth);
    out_ += '}';
  }

  void text(std::string_view text) {
    out_ += '"';
    size_t copied = 0;  // what stands before it is in out_
    for (size_t i = 0; i < text.size();) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
        ++i;
        continue;
      }
      out_.append(text, copied, i - copied);
      const Utf8Character one = read_utf8(text.substr(i));
      character(text.substr(i, one.bytes), one);
      copied = i += one.bytes;
    }
    out_.append(text, copied);
    out_ += '"';
  }

  // One that is not written as it is in every case.
  void character(std::string_view bytes, const Utf8Character& one) {
    if (!one.valid)
      out_ += ascii_ ? "\\ufffd" : "\xef\xbf\xbd";
    else if (const char escape = bytes.size() == 1 ? short_escape(bytes[0]) : '\0')
      out_ += {'\\', escape};
    else if (one.unicode > 0x1f && !ascii_)
      out_ += bytes;
    else if (one.unicode > 0xffff)
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}\\u{:04x}", 0xd7c0 + (one.unicode >> 10),
                     0xdc00 + (one.unicode & 0x3ff));
    else
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", one.unicode);
  }

  int indent_;
  bool ascii_;
  std::string out_ = {};
};

std::string dump_json(const Json& json, int indent) {
  JsonWriter writer(indent, false);
  writer.value(json, 0);
  return writer.take();
}

std::string dump_ascii(const Json& json) {
  JsonWriter writer(-1, true);
  writer.value(json, 0);
  return writer.take();
}

std::string Json::dump(int indent) const { return dump_json(*this, indent); }
std::ostream& operator<<(std::ostream& out, const Json& json) { return out << dump_json(json); }

}  // namespace muster
