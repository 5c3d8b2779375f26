// The section `warnings`: which ones the check leaves out. They are found in controller/spec/warnings/.
#include <fmt/format.h>

#include "controller/spec/findings.h"
#include "controller/spec/reader/reader.h"

namespace muster {

void SpecReader::read_warnings() {
  const YamlNode* silence = child(child(&root_, "warnings"), "silence");
  for (size_t i = 0; silence && i < silence->items.size(); ++i) {
    const YamlNode& code = silence->items[i];
    const std::string path = fmt::format("warnings.silence[{}]", i);
    const Finding* known = find_finding(code.text);
    if (!code.is_text()) continue;
    if (known && known->severity == Severity::error)
      error(code, path, fmt::format("'{}' is an error, which cannot be silenced", code.text));
    else
      must_be_known(code, path, "warning", code.text, warning_codes());
  }
}

}  // namespace muster
