// config: sets values in a structured file that other programs also write to (ini, key = value, JSON). All
// other values stay as they are, and so do comments.
#include <algorithm>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

struct WantedConfig {
  std::string path, format, section;
  std::map<std::string, Json> values;  // null removes the key
  std::string separator = "=";
};
MUSTER_PARAMETERS(WantedConfig, required(path, "absolute path; created if it does not exist"),
                  required(format, "ini | keyvalue | json"),
                  optional(section,
                           "section that the values belong to (required for ini, not allowed otherwise)"),
                  required(values, "keys and their values; for JSON, they are merged as in RFC 7396",
                           kMayBeSecret),
                  optional(separator, "separator between key and value in new or changed lines"))

Status complete_config(const StepContext&, WantedConfig& want) {
  if (!want.path.starts_with('/')) return fail(Code::invalid, "config: 'path' must be absolute");
  if (want.format != "ini" && want.format != "keyvalue" && want.format != "json")
    return fail(Code::invalid, "config: 'format' must be ini, keyvalue or json");
  if (want.values.empty()) return fail(Code::invalid, "config: 'values' is empty");
  if ((want.format == "ini") == want.section.empty())
    return fail(Code::invalid,
                "config: 'section' is required for format ini and not allowed for other formats");
  if (want.format == "json") return Ok{};
  const std::string mark = trimmed(want.separator);
  if (mark != "=" && mark != ":" && !mark.empty())
    return fail(Code::invalid,
                "config: 'separator' must be '=', ':' or a space; spaces around it are allowed");
  for (const auto& [key, value] : want.values)
    if (key.empty() || key.find_first_of("=\n#;[") != std::string::npos ||
        value_text(value).find('\n') != std::string::npos || value.is_structured())
      return fail(Code::invalid,
                  "config: '" + key + "' cannot be written as one line: the key or the value is not valid");
  return Ok{};
}

// Returns the key of a line, "" for comments, sections and blank lines.
std::string key_of(const WantedConfig& want, const std::string& line) {
  const std::string text = trimmed(line);
  if (text.empty() || text[0] == '#' || text[0] == ';' || text[0] == '[') return "";
  const std::string mark = trimmed(want.separator);
  return trimmed(text.substr(0, mark.empty() ? text.find_first_of(" \t") : text.find(mark)));
}

// Returns the wanted text. A key is replaced at its first occurrence, and further occurrences are removed;
// new keys go at the end of the section.
std::string edited_lines(const WantedConfig& want, const std::string& text) {
  std::vector<std::string> out;
  std::vector<std::string> placed;
  bool inside = want.section.empty();
  size_t end = want.section.empty() ? 0 : std::string::npos;  // where new keys go
  for (const auto& line : split_lines(text)) {
    const std::string bare = trimmed(line);
    if (!want.section.empty() && !bare.empty() && bare[0] == '[') inside = bare == "[" + want.section + "]";
    const std::string key = inside ? key_of(want, line) : "";
    const auto value = key.empty() ? want.values.end() : want.values.find(key);
    if (value == want.values.end()) {
      out.push_back(line);
    } else if (!value->second.is_null() && std::find(placed.begin(), placed.end(), key) == placed.end()) {
      const std::string now = trimmed(bare.substr(key.size()));
      const std::string mark = trimmed(want.separator);
      const bool same = trimmed(now.substr(std::min(mark.size(), now.size()))) == value_text(value->second);
      out.push_back(same ? line : key + want.separator + value_text(value->second));
      placed.push_back(key);
    }
    if (inside && !(bare.empty() && !want.section.empty())) end = out.size();
  }
  std::vector<std::string> fresh;
  for (const auto& [key, value] : want.values)
    if (!value.is_null() && std::find(placed.begin(), placed.end(), key) == placed.end())
      fresh.push_back(key + want.separator + value_text(value));
  if (!fresh.empty() && end == std::string::npos) {
    if (!out.empty() && !trimmed(out.back()).empty()) out.push_back("");
    out.push_back("[" + want.section + "]");
    end = out.size();
  }
  if (!fresh.empty()) out.insert(out.begin() + static_cast<std::ptrdiff_t>(end), fresh.begin(), fresh.end());
  return out.empty() ? "" : join(out, "\n") + "\n";
}

Result<std::string> edited_json(const WantedConfig& want, const std::string& text) {
  Json have = Json::object();
  if (!trimmed(text).empty()) {
    auto parsed = parse_json(text);
    if (!parsed.ok()) return fail(Code::conflict, want.path + " is not JSON: " + parsed.error().message);
    have = std::move(*parsed);
  }
  if (!have.is_object()) return fail(Code::conflict, want.path + " does not contain a JSON object");
  Json merged = have;
  merged.merge_patch(Json(want.values));
  return merged == have && !trimmed(text).empty() ? text : dump_json(merged, 2) + "\n";
}

// Returns the current and the wanted text.
Result<std::pair<FileText, std::string>> texts(const StepContext& context, const WantedConfig& want) {
  TRY(FileText now, text_or_none(context.files, want.path));
  if (want.format != "json") {
    std::string then = edited_lines(want, now.text);
    return std::pair{std::move(now), std::move(then)};
  }
  TRY(std::string then, edited_json(want, now.text));
  return std::pair{std::move(now), std::move(then)};
}

Result<CheckResult> check_config(StepContext& context, const WantedConfig& want) {
  TRY(const auto both, texts(context, want));
  if (both.first.text == both.second) return holds();
  const FileState& state = both.first.state;
  const unsigned mode = state.exists ? state.mode : mode_of_new(context.secrets, both.second);
  return differs(want.path + " " + text_difference(context.secrets, mode, both.first.text, both.second));
}

Status apply_config(StepContext& context, const WantedConfig& want) {
  TRY(const auto both, texts(context, want));
  if (both.first.text == both.second) return Ok{};
  return replace_text(context.files, want.path, both.first, both.second,
                      mode_of_new(context.secrets, both.second));
}

}  // namespace

StepModule config_module() {
  return step_module<WantedConfig>({
      .name = "config",
      .help = "Sets values in a structured file that other programs also write to: ini, key = value, or "
              "JSON (merged, never overwritten). Keys that are not in `values` stay; a null value removes "
              "its key. A new file with a secret has mode 0600.",
      .check = check_config,
      .apply = apply_config,
      .complete = complete_config,
  });
}

}  // namespace muster::steps
