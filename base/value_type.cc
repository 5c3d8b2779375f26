#include "base/value_type.h"

namespace muster {

bool has_type(const Json& value, const std::string& type) {
  if (type == "string") return value.is_string();
  if (type == "int") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "bool") return value.is_boolean();
  if (type == "list") return value.is_array();
  if (type == "object") return value.is_object();
  return type == "any";
}

}  // namespace muster
