#include "base/printable.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace muster {
namespace {

// U+009B is the escape sequence "ESC [" as one character.
bool is_control(uint32_t unicode) { return unicode < 0x20 || (unicode >= 0x7f && unicode < 0xa0); }

// What follows is shown in another order than it was written.
bool sets_direction(uint32_t unicode) {
  return (unicode >= 0x202a && unicode <= 0x202e) || (unicode >= 0x2066 && unicode <= 0x2069) ||
         unicode == 0x200e || unicode == 0x200f || unicode == 0x061c;
}

bool ends_line(uint32_t unicode) { return unicode == 0x2028 || unicode == 0x2029; }

std::string replaced(std::string_view text, char instead, std::string_view kept) {
  // Nearly all text: agents send megabytes of it.
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; }))
    return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character next = read_utf8(text);
    const bool stays = kept.find(text.front()) != std::string_view::npos;
    if (stays || (next.valid && !controls_display(next.unicode)))
      out += text.substr(0, next.bytes);
    else
      out += instead;
    text.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace

bool controls_display(uint32_t unicode) {
  return is_control(unicode) || sets_direction(unicode) || ends_line(unicode);
}

std::string printable(std::string_view text, char instead) { return replaced(text, instead, ""); }

std::string printable_lines(std::string_view text, char instead) { return replaced(text, instead, "\n\t"); }

void make_printable(Json& value) {
  if (value.is_string()) value = printable_lines(value.get_ref<const std::string&>());
  if (!value.is_array() && !value.is_object()) return;
  std::vector<std::string> names;
  for (const auto& [name, member] : value.items()) {
    make_printable(member);
    if (value.is_object() && printable_lines(name) != name) names.push_back(name);
  }
  for (const std::string& name : names) {
    Json member = std::move(value[name]);
    value.erase(name);
    value[printable_lines(name)] = std::move(member);
  }
}

}  // namespace muster
