// Checks a YAML tree against a JSON Schema and reports every mistake with line, column, path, rule and
// nearest spelling.
//
// Existing validators work on JSON and lose the position, so muster has its own, for the subset that its
// schemas use: type, properties, patternProperties, additionalProperties, required, enum, pattern, minLength,
// maxLength (of texts without a pattern), items, minItems, uniqueItems (of texts), minimum, maximum, $ref to
// #/$defs. A schema with any other keyword is rejected (docs/decisions/0001), so that no rule is silently
// ignored. Annotations: `x-form` next to a pattern and `description` in propertyNames give the rule in words,
// for messages; `x-not-implemented` (true on a property, a list next to an enum) marks what the format
// contains but this release rejects; other `description`, `default`, `x-default` and `examples` are for
// people: scripts/spec_doc.py makes the spec reference from them. Thread safety: stateless functions.
#pragma once

#include "controller/spec/yaml.h"

namespace muster {

void check_schema(const YamlNode& root, const Json& schema, std::vector<SpecError>& errors);
// Returns the numbers with a leading zero where the schema requires whole numbers; their messages are the
// texts as written.
std::vector<SpecError> padded_numbers(const YamlNode& root, const Json& schema);
// Returns JSON pointers to the keywords that check_schema() does not support; empty for a supported schema.
std::vector<std::string> unsupported_keywords(const Json& schema);

namespace embedded {  // generated at build time from schema/*.json
extern const char* const spec_schema;
extern const char* const playbook_schema;
}  // namespace embedded

}  // namespace muster
