#include "controller/spec/carry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/split.h"
#include "controller/spec/yaml.h"

namespace muster {
namespace {

constexpr const char* kKey = "playbooks";

// The spec becomes part of the reports' JSON, which must be UTF-8.
bool is_utf8(const std::string& text) {
  size_t more = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (more > 0) {
      if ((byte & 0xc0) != 0x80) return false;
      --more;
    } else if (byte >= 0x80) {
      more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
      if (byte < 0xc2 || byte > 0xf4) return false;
    }
  }
  return more == 0;
}

// YAML accepts no other control characters and treats a lone CR as the end of a line.
Status check_text(const CarriedText& own) {
  if (says_nothing(own.text) && own.text.find('\n') == std::string::npos)
    return fail(Code::invalid, own.file + ": the file is empty");
  const auto lines = split_lines(own.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!is_utf8(lines[i])) return fail(Code::invalid, fmt::format("{}:{}: not UTF-8", own.file, i + 1));
    for (const char c : lines[i])
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f)
        return fail(Code::invalid, fmt::format("{}:{}: contains a control character", own.file, i + 1));
  }
  return Ok{};
}

std::string entry_of(const CarriedText& own) {
  const bool ends = !own.text.empty() && own.text.back() == '\n';
  const bool several = own.text.size() > 1 && own.text.compare(own.text.size() - 2, 2, "\n\n") == 0;
  // The indentation is stated only if YAML would derive a wrong one from the first line.
  const bool misleads = own.text.empty() || own.text[0] == ' ' || own.text[0] == '\n' || own.text[0] == '\t';
  std::string out = fmt::format("  {}: |{}{}\n", own.key, misleads ? "2" : "",
                                several ? "+"
                                : ends  ? ""
                                        : "-");
  for (const auto& line : split_lines(own.text)) out += line.empty() ? "\n" : "    " + line + "\n";
  return out;
}

Json without(const YamlNode& root, const std::string& section) {
  Json all = to_json(root);
  all.erase(section);
  return all;
}

bool same_spec(const YamlNode& before, const std::string& text, const std::string& section,
               const std::vector<CarriedText>& files) {
  const ParsedYaml after = parse_yaml(text);
  if (!after.errors.empty() || !after.root.is_map()) return false;
  const YamlNode* carried = after.root.find(section);
  if (!carried || carried->entries.size() != files.size()) return false;
  for (size_t i = 0; i < files.size(); ++i)
    if (carried->entries[i].key != files[i].key || carried->entries[i].value.text != files[i].text)
      return false;
  return without(before, section) == without(after.root, section);
}

std::string section_of(const std::string& section, const std::vector<CarriedText>& files) {
  std::string out = section + ":\n";
  for (const CarriedText& own : files) out += entry_of(own);
  return out;
}

}  // namespace

Result<std::string> carry_playbooks(const std::string& text, const std::vector<OwnPlaybook>& files) {
  std::vector<CarriedText> texts;
  for (const OwnPlaybook& own : files) {
    texts.push_back({own.file, own.file, own.text});
    if (own.text.size() > kLargestPlaybook)
      return fail(Code::invalid,
                  fmt::format("{}: the file is larger than {} KiB", own.file, kLargestPlaybook / 1024));
    TRY_(check_text(texts.back()));
  }
  const ParsedYaml yaml = parse_yaml(text);
  if (!yaml.errors.empty()) return fail(Code::invalid, to_string(yaml.errors.front(), "the spec"));
  int first = 0, behind = 0;
  for (const YamlEntry& entry : yaml.root.entries) {
    if (entry.key == kKey) first = entry.line;
    if (first > 0 && entry.key != kKey && (behind == 0 || entry.line < behind)) behind = entry.line;
  }
  if (first == 0) return fail(Code::invalid, "the spec names no playbooks");
  auto lines = split_lines(text);
  size_t end = behind > 0 ? static_cast<size_t>(behind - 1) : lines.size();
  const size_t begin = static_cast<size_t>(first - 1);
  while (end > begin && says_nothing(lines[end - 1])) --end;
  for (size_t i = begin; i < end; ++i)
    if (!lines[i].empty()) lines[i] = "# " + lines[i];
  std::string out;
  for (const auto& line : lines) out += line + "\n";
  out += "\n" + section_of(kKey, texts);
  if (!same_spec(yaml.root, out, kKey, texts))
    return fail(
        Code::invalid,
        fmt::format("{}: the texts of the playbooks cannot be embedded in this spec: write the spec in "
                    "block style, with `playbooks:` at the beginning of its own line",
                    first));
  return out;
}

Result<std::string> carry_section(const std::string& text, const std::string& section,
                                  const std::string& comment, const std::vector<CarriedText>& files) {
  for (const CarriedText& own : files) TRY_(check_text(own));
  const ParsedYaml yaml = parse_yaml(text);
  if (!yaml.errors.empty()) return fail(Code::invalid, to_string(yaml.errors.front(), "the spec"));
  const bool ends = text.empty() || text.back() == '\n';
  std::string out = text + (ends ? "" : "\n") + "# " + comment + "\n" + section_of(section, files);
  if (!same_spec(yaml.root, out, section, files))
    return fail(
        Code::invalid,
        fmt::format("{}: the text of this file cannot be embedded in the spec: write the spec in block style",
                    files.front().file));
  return out;
}

}  // namespace muster
