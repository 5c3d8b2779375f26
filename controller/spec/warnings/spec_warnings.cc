#include "controller/spec/warnings/spec_warnings.h"

#include <iterator>
#include <set>
#include <utility>

#include "controller/spec/warnings/observer.h"

namespace muster {

SpecWarnings spec_warnings(const std::string& text, const Spec& spec, const SpecNames& names,
                           std::vector<SpecError> more) {
  const ParsedYaml yaml = parse_yaml(text);
  warnings::Observer observer(yaml.root, spec, names);
  warnings::hardware_warnings(observer);
  warnings::disk_warnings(observer);
  warnings::unused_warnings(observer);
  warnings::access_warnings(observer);
  warnings::variable_warnings(observer);
  warnings::placeholder_warnings(observer);
  std::vector<SpecError> all = std::move(observer.found);
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  sort_errors(all);
  std::set<std::string> silenced;
  if (const YamlNode* list = yaml_child(observer.section("warnings"), "silence"))
    for (const YamlNode& code : list->items) silenced.insert(code.text);
  SpecWarnings out;
  for (SpecError& warning : all)
    if (silenced.count(warning.code))
      ++out.silenced[warning.code];
    else
      out.shown.push_back(std::move(warning));
  return out;
}

}  // namespace muster
