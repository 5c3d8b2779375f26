#include "controller/spec/drive_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace muster {
namespace {

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

double figure(const YamlNode& line, const char* key) {
  const YamlNode* at = line.find(key);
  return at && yaml_is_number(*at) ? std::strtod(at->text.c_str(), nullptr) : 0;
}

std::string text(const YamlNode& line, const char* key) {
  const YamlNode* at = line.find(key);
  return at && at->is_text() ? at->text : "";
}

// True if `earlier` matches every drive that `later` matches. Patterns with '?' are not compared, because the
// corresponding character of the other pattern may be a '*'.
bool covers(const std::string& earlier, const std::string& later) {
  return earlier.find('?') == std::string::npos && glob_match(earlier, later);
}

}  // namespace

std::vector<DriveModel> read_drive_models(const YamlNode& list, const std::string& path,
                                          std::vector<SpecError>& errors) {
  std::vector<DriveModel> out;
  for (size_t i = 0; i < list.items.size(); ++i) {
    const YamlNode& line = list.items[i];
    if (!line.is_map()) continue;
    const DriveModel model = {text(line, "model"), figure(line, "read_mbps"), figure(line, "write_mbps"),
                              figure(line, "random_read_iops"), text(line, "source")};
    const std::string where = fmt::format("{}[{}]", path, i);
    const YamlNode* named = line.find("model");
    if (!named || !named->is_text()) continue;
    const auto wrong = [&](std::string message) {
      errors.push_back({named->line, named->column, where + ".model", std::move(message)});
    };
    if (std::all_of(model.model.begin(), model.model.end(), is_blank))
      wrong("is empty: give the drives' model as in /sys/block/NAME/device/model, or '*'");
    else if (is_blank(model.model.front()) || is_blank(model.model.back()))
      wrong(fmt::format("'{}' begins or ends with a space: it would match no drive", model.model));
    const auto first = std::find_if(out.begin(), out.end(), [&](const DriveModel& earlier) {
      return covers(earlier.model, model.model);
    });
    if (first != out.end())
      wrong(fmt::format(
          "the earlier '{}' already matches every drive that '{}' matches, and the first match counts",
          first->model, model.model));
    const bool tried = line.find("read_mbps") || line.find("write_mbps") || line.find("random_read_iops");
    if (!tried)
      errors.push_back(
          {line.line, line.column, where,
           "gives no values for these drives: add `read_mbps`, `write_mbps` or `random_read_iops`"});
    out.push_back(model);
  }
  return out;
}

const std::vector<DriveModel>& shipped_drive_models() {
  static const std::vector<DriveModel> table = [] {
    const ParsedYaml yaml = parse_yaml(embedded::drive_models);
    std::vector<SpecError> errors;  // none: a test reads them
    const YamlNode* list = yaml.root.find("drives");
    return list ? read_drive_models(*list, "drives", errors) : std::vector<DriveModel>{};
  }();
  return table;
}

std::vector<DriveModel> drive_models_of(const Spec& spec) {
  std::vector<DriveModel> out = spec.drive_models;
  for (DriveModel& own : out)
    if (own.source.empty()) own.source = "the spec, acceptance.drives";
  if (spec.lab) return out;
  const auto& shipped = shipped_drive_models();
  out.insert(out.end(), shipped.begin(), shipped.end());
  return out;
}

const DriveModel* find_drive_model(const std::vector<DriveModel>& table, const std::string& model) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const DriveModel& line) { return glob_match(line.model, model); });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace muster
