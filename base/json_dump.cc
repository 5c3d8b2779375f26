#include "base/json_dump.h"

namespace muster {

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string dump_ascii(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

}  // namespace muster
