// Tolerant parsing of JSON from BMCs: decompresses gzip that was not requested, and replaces bytes that are
// invalid in JSON. Some vendors output a part's raw memory as text, and an unneeded text must not make the
// state of the machine unreadable.
//
// Invalid UTF-8 and control characters inside a string become U+FFFD; outside of strings control characters
// are removed. All texts are then made printable (base/printable.h). Pure functions, no I/O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace muster {

// `encoding`: the header Content-Encoding, "" for none. `most`: limit in bytes after decompression.
// Code::invalid: the body is not JSON; the message describes it.
Result<Json> parse_bmc_json(std::string_view body, const std::string& encoding, size_t most);

// Safe field access: return "" or null if the JSON has a different structure.
std::string json_text(const Json& json, const char* key);
const Json& json_at(const Json& json, const std::vector<std::string>& path);

// RedfishRefusal: interprets the body of an error response, by message ids, never by their wording.
//
// BMCs put the messages in different places under different names: iLO 4 has `MessageID` and a separate list
// next to the error, others an object instead of the list. No I/O.

class RedfishRefusal {
 public:
  explicit RedfishRefusal(const Json& body);

  // Returns the first message, "ActionParameterValueConflict: The host is powering down"; "" if none.
  std::string text() const;
  // True if the condition is temporary: power-on self test, services starting, full tables.
  bool passes() const;
  // Returns the path that the BMC names for the request instead; "" if none.
  std::string moved_to() const;

 private:
  struct Message {
    std::string id, text;
    std::vector<std::string> args;
  };
  void add(const Json& list);

  std::vector<Message> messages_;
};

// Returns "/redfish/v1/x" for "/redfish/v1/x" or "https://10.20.1.11/redfish/v1/x".
std::string redfish_path(const std::string& uri);

}  // namespace muster
