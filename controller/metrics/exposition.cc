#include "controller/metrics/exposition.h"

#include <fmt/format.h>

#include <iterator>

#include "base/utf8.h"

namespace muster {

Exposition& Exposition::family(std::string_view name, Type type, std::string_view help) {
  name_ = name, type_ = type, help_ = help;
  named_ = false;
  return *this;
}

Exposition& Exposition::sample(Labels labels, int64_t value) {
  begin(labels);
  fmt::format_to(std::back_inserter(text_), " {}\n", value);
  return *this;
}

Exposition& Exposition::seconds(Labels labels, int64_t ms) {
  begin(labels);
  const int64_t whole = ms / 1000, rest = ms % 1000;
  text_ += ms < 0 ? " -" : " ";
  if (rest == 0)
    fmt::format_to(std::back_inserter(text_), "{}\n", ms < 0 ? -whole : whole);
  else
    fmt::format_to(std::back_inserter(text_), "{}.{:03}\n", ms < 0 ? -whole : whole, ms < 0 ? -rest : rest);
  return *this;
}

void Exposition::begin(Labels labels) {
  if (!named_) {
    fmt::format_to(std::back_inserter(text_), "# HELP {} ", name_);
    escaped(help_, false);
    fmt::format_to(std::back_inserter(text_), "\n# TYPE {} {}\n", name_,
                   type_ == Type::gauge ? "gauge" : "counter");
    named_ = true;
  }
  text_ += name_;
  char before = '{';
  for (const Label& label : labels) {
    text_ += before;
    before = ',';
    text_ += label.name;
    text_ += "=\"";
    escaped(label.value, true);
    text_ += '"';
  }
  if (labels.size() > 0) text_ += '}';
}

// The format escapes line breaks and backslashes, and quotation marks where the text stands in them.
void Exposition::escaped(std::string_view text, bool quoted) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Character one = read_utf8(text.substr(at));
    if (!one.valid)
      text_ += "\xef\xbf\xbd";
    else if (one.unicode == '\n')
      text_ += "\\n";
    else if (one.unicode == '\\' || (quoted && one.unicode == '"'))
      text_ += {'\\', text[at]};
    else
      text_ += text.substr(at, one.bytes);
    at += one.bytes;
  }
}

}  // namespace muster
