// Walks a YAML tree along a JSON Schema and reports every mistake with line, column, path, rule and nearest
// spelling.
//
// Ready-made validators work on JSON and lose the position, so muster has its own, for the subset that its
// schemas use: type, properties, patternProperties, additionalProperties, required, enum, pattern, minLength,
// maxLength (of texts without a pattern), items, minItems, uniqueItems (of texts), minimum, maximum, $ref to
// #/$defs. A schema with any other keyword is rejected (docs/decisions/0001): no rule is silently without
// effect. Annotations: `x-form` next to a pattern, `description` in propertyNames: the rule in words, for
// messages; `x-not-implemented` (true on a property, a list beside an enum) marks what the format contains
// but this release rejects; `description` otherwise, `default`, `x-default`, `examples` are for people: the
// spec's reference is made of them (scripts/spec_doc.py). Thread: pure.
#pragma once

#include "controller/spec/yaml.h"

namespace muster {

void check_schema(const YamlNode& root, const Json& schema, std::vector<SpecError>& errors);
// JSON pointers to the keywords that check_schema() does not support; empty for a supported schema.
std::vector<std::string> unsupported_keywords(const Json& schema);

namespace embedded {  // generated at build time from schema/*.json
extern const char* const spec_schema;
extern const char* const playbook_schema;
}  // namespace embedded

}  // namespace muster
