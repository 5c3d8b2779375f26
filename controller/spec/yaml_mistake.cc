#include "controller/spec/yaml_mistake.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/split.h"
#include "controller/spec/findings.h"

namespace muster {
namespace {

constexpr size_t kNone = std::string::npos;
constexpr const char* kNameEnds = " \t\r\n,[]{}";  // of anchors and aliases

bool blank_at(const std::string& line, size_t at) {
  return at >= line.size() || line[at] == ' ' || line[at] == '\t';
}

bool comment_at(const std::string& line, size_t at) {
  return line[at] == '#' && (at == 0 || blank_at(line, at - 1));
}

// Reads a text line by line, as far as its structure goes: which maps and lists are open by indentation,
// which quotes and brackets by their signs.
class YamlStructure {
 public:
  explicit YamlStructure(const std::string& text) : lines_(split_lines(text)) {
    for (size_t at = text.find('&'), end = 0; at != kNone; at = text.find('&', end)) {
      end = std::min(text.find_first_of(kNameEnds, at), text.size());
      anchors_.insert(text.substr(at + 1, end - at - 1));
    }
    for (std::string& line : lines_)
      if (line.ends_with('\r')) line.pop_back();
    for (const std::string& line : lines_)
      if (const size_t indent = line.find_first_not_of(' '); indent != 0 && !says_nothing(line)) {
        step_ = indent;
        break;
      }
  }

  std::optional<SpecError> first_mistake() {
    for (size_t i = 0; i < lines_.size() && !found_; ++i) read_line(i);
    if (found_) return found_;
    if (quote_) mistake(finding::kYamlQuote, quote_->at, "the quote that begins here is not closed");
    if (!quote_ && !brackets_.empty())
      mistake(finding::kYamlBracket, brackets_.back().at,
              fmt::format("the '{}' here is not closed", brackets_.back().sign));
    return found_;
  }

 private:
  struct At {
    size_t line, column;  // from 0
  };
  struct Open {  // a quote or bracket
    char sign;
    At at;
  };
  struct Level {  // a map or list in block style
    size_t indent;
    bool list;
    size_t line;       // of its first entry
    size_t count = 1;  // of its entries
  };

  void mistake(std::string_view code, const At& at, const std::string& message) {
    if (found_) return;
    found_ = SpecError{static_cast<int>(at.line) + 1, static_cast<int>(at.column) + 1, "",
                       "not valid YAML: " + message};
    found_->code = code;
  }

  void read_line(size_t number) {
    const std::string& line = lines_[number];
    size_t at = 0;
    if (quote_) {
      at = close_quote(number, 0);
      if (at == kNone) return;
    } else if (block_text_) {
      const size_t indent = line.find_first_not_of(' ');
      if (indent == kNone || indent > *block_text_) return;
      block_text_.reset();
      at = begin_line(number);
    } else if (brackets_.empty()) {
      at = begin_line(number);
    }
    if (at != kNone && !found_) read_signs(number, at);
  }

  // Takes in the line's place among the maps and lists. Returns where its first key or value begins.
  size_t begin_line(size_t number) {
    const std::string& line = lines_[number];
    size_t at = line.find_first_not_of(' ');
    if (says_nothing(line)) return kNone;
    if (line[at] == '\t') {
      mistake(finding::kYamlTab, {number, at}, "a tab indents this line: use blanks");
      return kNone;
    }
    if (line.starts_with("---") || line.starts_with("...") || line[0] == '%') {
      levels_.clear();
      return kNone;
    }
    text_parent_ = at;
    bool in_list = false;
    while (line[at] == '-' && blank_at(line, at + 1)) {
      enter(number, at, true);
      has_value_ = false;
      in_list = true;
      text_parent_ = at;
      at = line.find_first_not_of(" \t", at + 1);
      if (at == kNone || line[at] == '#') return kNone;
    }
    if (const size_t colon = end_of_key(line, at); colon != kNone) {
      begin_key(number, at, colon);
      text_parent_ = at;
    } else {
      begin_text(number, at, in_list);
    }
    return at;
  }

  void begin_key(size_t number, size_t at, size_t colon) {
    if (lone_ && lone_->column == at) return no_colon(*lone_);
    enter(number, at, false);
    const std::string& line = lines_[number];
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    const bool given = value != kNone && line[value] != '#';
    // What these begin may go on below.
    has_value_ = given && std::string_view("&!|>").find(line[value]) == std::string_view::npos;
    if (!has_value_ || std::string_view("\"'[{*").find(line[value]) != std::string_view::npos) return;
    if (const size_t second = end_of_key(line, value); second != kNone)
      mistake(finding::kYamlColon, {number, second},
              "a second ':' in one line: put the value in quotes if it is part of it");
  }

  // A line that has no key: text, or a key whose colon is missing.
  void begin_text(size_t number, size_t at, bool in_list) {
    const std::string& line = lines_[number];
    if (line[at] == '}' || line[at] == ']')
      return mistake(finding::kYamlBracket, {number, at}, fmt::format("this '{}' closes nothing", line[at]));
    if (!in_list && !levels_.empty() && levels_.back().indent == at && !levels_.back().list)
      return no_colon({number, at});
    const bool goes_on = has_value_ && !in_list;  // text of several lines
    if (!goes_on && !lone_) lone_ = At{number, at};
  }

  void no_colon(const At& at) {
    const std::string& line = lines_[at.line];
    const std::string word = line.substr(at.column, line.find_first_of(" \t", at.column) - at.column);
    const size_t colon = word.find(':');
    if (colon != kNone && colon > 0)
      return mistake(finding::kYamlColon, at,
                     fmt::format("no blank after the ':' of '{}'", word.substr(0, colon)));
    mistake(finding::kYamlColon, at, fmt::format("no ':' after '{}'", word));
  }

  // An entry at this column: of a map or list that is open, or of a new one.
  void enter(size_t number, size_t at, bool list) {
    lone_.reset();
    std::vector<Level> left;  // that this entry ends, the outermost at the end
    while (!levels_.empty() &&
           (levels_.back().indent > at || (levels_.back().indent == at && levels_.back().list && !list))) {
      left.push_back(levels_.back());
      levels_.pop_back();
    }
    if (!levels_.empty() && levels_.back().indent == at && levels_.back().list == list) {
      ++levels_.back().count;
      return;
    }
    if (!left.empty() && left.back().indent > at) {  // less than before, but as much as nothing above it
      Level sibling = left.back();
      if (sibling.list != list && !levels_.empty()) sibling.indent = levels_.back().indent;
      unlike(sibling, {number, at});
    } else if (left.empty() && has_value_ && !levels_.empty() && levels_.back().indent < at) {
      unlike(levels_.back(), {number, at});
    }
    levels_.push_back({at, list, number});
  }

  // Of two that differ, the wrong one is a single line whose indentation is none that the file has elsewhere.
  void unlike(const Level& earlier, const At& later) {
    const bool first_is_wrong =
        earlier.count == 1 && earlier.indent % step_ != 0 && later.column % step_ == 0;
    const At at = first_is_wrong ? At{earlier.line, earlier.indent} : later;
    mistake(finding::kYamlIndentation, at,
            fmt::format("line {} is indented by {}, its siblings by {}", at.line + 1, at.column,
                        first_is_wrong ? later.column : earlier.indent));
  }

  // Where the ':' is that ends the key which begins at this column; kNone: there is no key.
  static size_t end_of_key(const std::string& line, size_t at) {
    if (line[at] == '[' || line[at] == '{') return kNone;
    if (line[at] == '"' || line[at] == '\'') {
      const size_t close = line.find(line[at], at + 1);
      const size_t colon = close == kNone ? kNone : line.find_first_not_of(' ', close + 1);
      return colon != kNone && line[colon] == ':' && blank_at(line, colon + 1) ? colon : kNone;
    }
    for (; at < line.size() && !comment_at(line, at); ++at)
      if (line[at] == ':' && blank_at(line, at + 1)) return at;
    return kNone;
  }

  // Quotes, brackets and texts of several lines, from this column to the end of the line.
  void read_signs(size_t number, size_t at) {
    const std::string& line = lines_[number];
    bool begins = true;  // a value may begin here
    size_t value = at;   // where the latest one began
    while (at < line.size() && !found_) {
      const char c = line[at];
      const bool ends_word = blank_at(line, at + 1);
      if (comment_at(line, at)) return;
      if (begins && (c == '"' || c == '\'')) {
        quote_ = Open{c, {number, at}};
        at = close_quote(number, at + 1);
        if (at == kNone) return;
        begins = false;
        continue;
      }
      if (begins && (c == '|' || c == '>')) return begin_block_text({number, at});
      if (begins && c == '*' && !ends_word) check_alias({number, at});
      const bool dash = c == '-' && ends_word;
      if (begins && c != ' ' && c != '\t') value = at;
      if (!begins && in_plain_text(number, value) && (c == '[' || c == '{'))
        return needs_quotes({number, value}, fmt::format("contains '{}' within brackets", c));
      if (read_bracket(c, {number, at}, begins))
        begins = c == '[' || c == '{';
      else if (c != ' ' && c != '\t')
        begins = (c == ':' && ends_word) || (c == ',' && !brackets_.empty()) || (begins && dash);
      ++at;
    }
  }

  // `|` or `>` with nothing behind it but how to treat line ends: a text of several lines follows.
  void begin_block_text(const At& at) {
    const std::string& line = lines_[at.line];
    const size_t rest = std::min(line.find_first_not_of("+-0123456789", at.column + 1), line.size());
    const size_t next = line.find_first_not_of(" \t", rest);
    if (brackets_.empty() && blank_at(line, rest) && (next == kNone || line[next] == '#'))
      block_text_ = text_parent_;
    else
      begins_wrongly(at);
  }

  // Text in brackets, where other brackets would be their own: { address: 10.20.1.{n} }. What begins with an
  // anchor or a tag goes on behind it. A line that is not indented below the one with the open bracket is its
  // sibling: the bracket lacks its end.
  bool in_plain_text(size_t number, size_t value) const {
    if (brackets_.empty() || std::string_view("&!").find(lines_[number][value]) != kNone) return false;
    const size_t opened = brackets_.back().at.line;
    return opened == number || indent_of(number) > indent_of(opened);
  }

  size_t indent_of(size_t number) const { return lines_[number].find_first_not_of(' '); }

  // "*H100*" is the name of an anchor, which is declared as "&H100*".
  void check_alias(const At& at) {
    const std::string& line = lines_[at.line];
    const size_t end = std::min(line.find_first_of(kNameEnds, at.column), line.size());
    if (!anchors_.count(line.substr(at.column + 1, end - at.column - 1))) begins_wrongly(at);
  }

  void begins_wrongly(const At& at) {
    needs_quotes(at, fmt::format("begins with '{}'", lines_[at.line][at.column]));
  }

  void needs_quotes(const At& at, const std::string& what) {
    mistake(finding::kYamlQuote, at, fmt::format("a text that {} needs quotes", what));
  }

  // False for any other sign, and where it is part of a text: 10.100.{rail}.0/24.
  bool read_bracket(char c, const At& at, bool begins) {
    if ((c == '[' || c == '{') && (begins || !brackets_.empty())) {
      brackets_.push_back({c, at});
      return true;
    }
    if ((c != ']' && c != '}') || brackets_.empty()) return false;
    const Open open = brackets_.back();
    brackets_.pop_back();
    if ((open.sign == '[') != (c == ']'))
      mistake(finding::kYamlBracket, open.at,
              fmt::format("the '{}' here is not closed: '{}' follows in line {}", open.sign, c, at.line + 1));
    return true;
  }

  // Returns what is behind the closing quote; kNone: it is not in this line, or wrong.
  size_t close_quote(size_t number, size_t at) {
    const std::string& line = lines_[number];
    const char sign = quote_->sign;
    for (; at < line.size(); ++at) {
      if (sign == '"' && line[at] == '\\') {
        ++at;
        continue;
      }
      if (line[at] != sign) continue;
      if (sign == '\'' && at + 1 < line.size() && line[at + 1] == sign) {
        ++at;
        continue;
      }
      const size_t next = line.find_first_not_of(" \t", at + 1);
      const bool right = next == kNone || line[next] == ':' || comment_at(line, next) ||
                         (!brackets_.empty() && std::string_view(",]}").find(line[next]) != kNone);
      if (!right)
        mistake(finding::kYamlQuote, quote_->at,
                number == quote_->at.line ? fmt::format("after the quote that begins here, '{}' is left over",
                                                        line.substr(next, 20))
                                          : std::string("the quote that begins here is not closed"));
      quote_.reset();
      return right ? at + 1 : kNone;
    }
    return kNone;
  }

  std::vector<std::string> lines_;
  std::set<std::string> anchors_;  // of the whole text
  size_t step_ = 2;                // of the first line that is indented
  std::vector<Level> levels_;
  std::vector<Open> brackets_;
  std::optional<Open> quote_;
  std::optional<size_t> block_text_;  // in a text below `|` or `>`: the indentation of its key
  size_t text_parent_ = 0;            // that of the latest key or dash
  bool has_value_ = false;            // the latest key has its value in its line
  std::optional<At> lone_;            // text without a key at which a map may have been meant to begin
  std::optional<SpecError> found_;
};

}  // namespace

std::optional<SpecError> find_yaml_mistake(const std::string& text, int noticed) {
  auto found = YamlStructure(text).first_mistake();
  // Further down there may be another one, but it is not the one that was noticed.
  if (found && found->line > noticed) return std::nullopt;
  return found;
}

}  // namespace muster
