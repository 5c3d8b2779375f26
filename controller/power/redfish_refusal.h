// RedfishRefusal: interprets the body of an error response, by message ids, never by their wording.
//
// BMCs put the messages in different places under different names: iLO 4 has `MessageID` and a separate list
// next to the error, others an object instead of the list. No I/O.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace muster {

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
