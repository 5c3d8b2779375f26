// Walks a YAML tree along a JSON Schema and reports every mistake with line, column, path, rule and nearest
// spelling.
//
// Ready-made validators work on JSON and lose the position, so this is our own, for the subset our schemas
// use: type, properties, patternProperties, additionalProperties, required, enum, pattern, minLength,
// maxLength (of texts without a pattern), items, minItems, uniqueItems (of texts), minimum, maximum, $ref to
// #/$defs. A schema with another keyword is refused (docs/decisions/0001): no rule is silently without
// effect. Annotations: `description` beside a pattern or in propertyNames says the rule in words;
// `x-not-implemented` (true on a property, a list beside an enum) marks what the format knows and this
// release refuses. Thread: pure.
#pragma once

#include "controller/spec/yaml.h"

namespace muster {

void check_schema(const YamlNode& root, const Json& schema, std::vector<SpecError>& errors);
// JSON pointers to the keywords that check_schema() would not apply; empty for a schema it takes.
std::vector<std::string> unsupported_keywords(const Json& schema);

namespace embedded {  // generated at build time from schema/*.json
extern const char* const spec_schema;
extern const char* const playbook_schema;
}  // namespace embedded

}  // namespace muster
